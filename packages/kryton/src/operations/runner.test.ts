import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges, type Edges } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage/client";
import { builtInCatalog } from "../catalog/catalog.ts";
import { machineBody, until } from "../kryton.fixture.ts";
import { createMachineSchema, type Machine } from "../model/machine.ts";
import { isFinal, operationSchema, type Operation } from "../model/operation.ts";
import { ProviderError, type Observation, type Provider } from "../provider-contract/contract.ts";
import { DemoProvider } from "../providers/demo/demo-provider.ts";
import { MachineService } from "../service/machines.ts";
import { OperationService } from "../service/operations.ts";
import { Change } from "../store/change.ts";
import { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { createSealer } from "../store/sealer.ts";
import { ReplicaSession } from "../store/session.ts";
import { machineRecordSchema } from "./record.ts";
import { maxBegun, OperationRunner } from "./runner.ts";

const asking = { requestedBy: "test" };

/** One replica: session, runner and service around a provider. */
class Replica {
  readonly session: ReplicaSession;
  readonly runner: OperationRunner;
  readonly machines: MachineService;
  readonly operations: OperationService;
  readonly documents: Documents;

  constructor(store: Store, edges: Edges, provider: Provider) {
    const catalog = builtInCatalog();
    this.documents = new Documents(store, edges.log);
    this.session = new ReplicaSession(store, edges);
    this.runner = new OperationRunner({
      store,
      edges,
      session: this.session,
      tools: {
        provider,
        clock: edges.clock,
        documents: this.documents,
        image: (id) => catalog.get(id),
        secrets: () => Promise.resolve({}),
        machine: async (project, id) =>
          (await this.documents.get(keys.machine(project, id), machineRecordSchema))?.value,
      },
    });
    this.machines = new MachineService({
      store,
      edges,
      session: this.session,
      runner: this.runner,
      provider,
      catalog,
      sealer: createSealer(edges.random.bytes(32), edges.random),
      available: (entry) => Promise.resolve({ ...entry, ready: true }),
      quota: () => undefined,
    });
    this.operations = new OperationService({ store, edges });
  }

  create(name: string): Promise<Machine> {
    return this.machines.create("default", createMachineSchema.parse(machineBody(name)), asking);
  }

  async settled(id: string): Promise<Machine> {
    return until(async () => {
      const machine = await this.machines.get("default", id);
      return machine.operation ? undefined : machine;
    });
  }

  async newest(id: string): Promise<Operation> {
    const [operation] = await this.operations.ofMachine(id);
    assert.ok(operation);
    return operation;
  }

  async stop(): Promise<void> {
    await this.runner.stop();
    await this.session.stop();
  }
}

/** A demo provider whose actions can be held, counted and made to fail. */
class HeldProvider extends DemoProvider {
  creates = 0;
  failures: unknown[] = [];
  gate: Promise<void> = Promise.resolve();
  overlapping = 0;
  #running = new Set<string>();

  override async create(...args: Parameters<DemoProvider["create"]>): Promise<Observation> {
    this.creates++;
    const [request, call] = args;
    if (this.#running.has(request.id)) this.overlapping++;
    this.#running.add(request.id);
    try {
      const made = await super.create(...args);
      const failure = this.failures.shift();
      if (failure !== undefined) throw failure;
      const { promise: aborted, reject } = Promise.withResolvers<never>();
      aborted.catch(() => {});
      const onAbort = (): void => reject(call.signal.reason);
      call.signal.addEventListener("abort", onAbort, { once: true });
      if (call.signal.aborted) onAbort();
      await Promise.race([this.gate, aborted]);
      return made;
    } finally {
      this.#running.delete(request.id);
    }
  }
}

async function withReplica(
  work: (parts: { store: Store; edges: Edges; provider: HeldProvider; replica: Replica }) => Promise<void>,
): Promise<void> {
  const edges = systemEdges();
  const store = await openStore("memory://", edges);
  const provider = new HeldProvider({ store, edges });
  const replica = new Replica(store, edges, provider);
  await replica.runner.start();
  try {
    await work({ store, edges, provider, replica });
  } finally {
    await replica.stop();
    await store.close();
  }
}

test("work that takes longer answers provisioning with its operation and ends by itself", async () => {
  await withReplica(async ({ provider, replica }) => {
    const gate = Promise.withResolvers<void>();
    provider.gate = gate.promise;
    const machine = await replica.create("slow");
    assert.equal(machine.state, "provisioning");
    assert.equal(machine.operation?.kind, "create");
    gate.resolve();
    assert.equal((await replica.settled(machine.id)).state, "running");
    assert.equal((await replica.newest(machine.id)).progressPercent, 100);
  });
});

test("a crash between made outside and written down neither leaks nor doubles the machine", async () => {
  await withReplica(async ({ store, edges, provider, replica }) => {
    provider.gate = new Promise(() => {});
    const machine = await replica.create("crashed");
    // The guest exists, its operation does not know: the process is lost here.
    assert.ok(await provider.observe({ ...machine, providerRef: machine.providerRef }));
    await replica.stop();
    const second = new HeldProvider({ store, edges });
    const successor = new Replica(store, edges, second);
    await successor.runner.start();
    const settled = await successor.settled(machine.id);
    assert.equal(settled.state, "running");
    assert.equal(second.creates, 1);
    const guests = [];
    for await (const guest of second.inventory()) guests.push(guest.id);
    assert.deepEqual(guests, [machine.id]);
    assert.equal((await successor.newest(machine.id)).attempt, 2);
    await successor.stop();
  });
});

test("a failure that may pass is tried again; one that needs a person ends in a failed machine that can be deleted", async () => {
  await withReplica(async ({ provider, replica }) => {
    provider.failures = [new ProviderError("unavailable", "the host is busy")];
    const machine = await replica.create("busy");
    const waiting = await replica.newest(machine.id);
    assert.equal(waiting.state, "queued");
    assert.equal(waiting.error?.retryClass, "retry");
    assert.equal((await replica.settled(machine.id)).state, "running");

    provider.failures = [new ProviderError("failed", "the disk image is broken")];
    const broken = await replica.create("broken");
    assert.equal(broken.state, "failed");
    assert.equal(broken.message, "the disk image is broken");
    const operation = await replica.newest(broken.id);
    assert.deepEqual([operation.state, operation.error?.retryClass], ["failed", "needs-person"]);
    await replica.machines.delete("default", broken.id, asking);
    await assert.rejects(replica.machines.get("default", broken.id), { code: "not_found" });
  });
});

test("a failure that another replica may not have is tried by that one at once; a fatal one is not tried again", async () => {
  await withReplica(async ({ store, edges, provider, replica }) => {
    const elsewhere = new HeldProvider({ store, edges });
    const other = new Replica(store, edges, elsewhere);
    await other.runner.start();
    provider.failures = [new ProviderError("unavailable", "no room here", { retryClass: "retry-elsewhere" })];
    const { id } = await replica.create("moved");
    assert.equal((await replica.settled(id)).state, "running");
    const { state, attempt, avoidReplica } = await replica.newest(id);
    assert.deepEqual([state, attempt], ["succeeded", 2]);
    assert.equal(avoidReplica, replica.session.replicaId);
    assert.deepEqual([provider.creates, elsewhere.creates], [1, 1]);

    provider.failures = [new ProviderError("invalid", "there is no such disk bus")];
    const refused = await replica.create("refused");
    await replica.settled(refused.id);
    const operation = await replica.newest(refused.id);
    assert.deepEqual(
      [operation.state, operation.attempt, operation.error?.retryClass],
      ["failed", 1, "fatal"],
    );
    await other.stop();
  });
});

test("operations of one machine run one at a time and in order, with two replicas competing", async () => {
  await withReplica(async ({ store, edges, replica }) => {
    const other = new Replica(store, edges, new DemoProvider({ store, edges }));
    await other.runner.start();
    const { id } = await replica.create("busy");
    await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        (i % 2 ? replica : other).machines[i % 4 < 2 ? "start" : "restart"]("default", id, asking),
      ),
    );
    // A busy machine answers before the work is done.
    const operations = await until(async () => {
      const found = await replica.operations.ofMachine(id);
      return found.every(isFinal) ? found : undefined;
    });
    assert.equal(operations.length, 9);
    assert.ok(operations.every(({ state, attempt }) => state === "succeeded" && attempt === 1));
    const windows = operations
      .map(({ startedAt = "", finishedAt = "" }) => ({
        from: Date.parse(startedAt),
        to: Date.parse(finishedAt),
      }))
      .sort((a, b) => a.from - b.from || a.to - b.to);
    windows.slice(1).forEach(({ from }, i) => {
      assert.ok(from >= (windows[i]?.to ?? 0), "operations overlap");
    });
    await other.stop();
  });
});

test("delete while creating cancels the creation and removes what was made", async () => {
  await withReplica(async ({ store, provider, replica }) => {
    provider.gate = new Promise(() => {});
    const machine = await replica.create("doomed");
    await replica.machines.delete("default", machine.id, asking);
    await until(async () => {
      const { count } = await store.range({ key: keys.machine("default", machine.id), countOnly: true });
      return count === 0 ? true : undefined;
    });
    for await (const guest of provider.inventory()) assert.fail(`guest ${guest.id} is left`);
    const documents = replica.documents;
    const stored = await documents.list(keys.operation(), operationSchema);
    assert.deepEqual(
      stored.map(({ value }) => value.state),
      ["cancelled", "succeeded"],
    );
  });
});

test("a running operation can be cancelled; the machine says so", async () => {
  await withReplica(async ({ provider, replica }) => {
    provider.gate = new Promise(() => {});
    const machine = await replica.create("unwanted");
    const operation = await replica.newest(machine.id);
    await replica.operations.cancel(operation.id);
    const settled = await replica.settled(machine.id);
    assert.equal(settled.state, "failed");
    assert.match(settled.message ?? "", /cancelled/);
    assert.equal((await replica.newest(machine.id)).state, "cancelled");
    await assert.rejects(replica.operations.cancel(operation.id), { code: "conflict" });
  });
});

test("many machines at once neither overlap nor get lost", async () => {
  await withReplica(async ({ provider, replica }) => {
    const machines = await Promise.all(Array.from({ length: 150 }, (_, i) => replica.create(`m${i}`)));
    await Promise.all(machines.map(({ id }) => replica.settled(id)));
    assert.equal(provider.overlapping, 0);
    assert.equal(provider.creates, 150);
    const { items } = await replica.machines.list(
      "default",
      { limit: 500, after: undefined },
      { labels: [], state: "running" },
    );
    assert.equal(items.length, 150);
  });
});

test("what waits behind a running operation is cancelled at once, and the machine shows what runs", async () => {
  await withReplica(async ({ store, provider, replica }) => {
    const gate = Promise.withResolvers<void>();
    provider.gate = gate.promise;
    const { id } = await replica.create("busy");
    await replica.machines.stop("default", id, {}, asking);
    const waiting = await replica.newest(id);
    assert.deepEqual([waiting.kind, waiting.state], ["stop", "queued"]);
    assert.equal((await replica.machines.get("default", id)).operation?.kind, "stop");
    const cancelled = await replica.operations.cancel(waiting.id);
    assert.equal(cancelled.state, "cancelled");
    assert.equal((await replica.machines.get("default", id)).operation?.kind, "create");
    await assert.rejects(replica.operations.cancel(waiting.id), { code: "conflict" });
    gate.resolve();
    assert.equal((await replica.settled(id)).state, "running");
    assert.equal((await store.range({ key: keys.work, end: "/kryton/work0", countOnly: true })).count, 0);
  });
});

test("an operation that takes its process down again and again is given up in the end", async () => {
  await withReplica(async ({ store, edges, replica }) => {
    const { id } = await replica.create("cursed");
    await replica.stop();
    const key = keys.operation((await replica.newest(id)).id);
    const { value } = (await replica.documents.get(key, operationSchema)) ?? {};
    assert.ok(value);
    // As a process leaves it that died while it began for the last time.
    const left = { ...value, state: "running", attempt: maxBegun };
    await new Change().put(key, left).put(keys.queue(id, value.id), { notBefore: 0 }).commit(store, edges);
    const successor = new Replica(store, edges, new DemoProvider({ store, edges }));
    await successor.runner.start();
    const given = await until(async () => {
      const operation = await successor.newest(id);
      return operation.state === "failed" ? operation : undefined;
    });
    assert.match(given.message ?? "", /was interrupted 25 times/);
    assert.equal(given.error?.retryClass, "needs-person");
    await successor.stop();
  });
});
