/**
 * A simulated installation: some replicas over one store, clients that insist, and what must hold at the end.
 *
 * No sockets, no real time: one seed gives one run. A replica is everything of the machine API that
 * touches the store, wired as the server wires it, around a demo provider whose calls take time.
 */
import assert from "node:assert/strict";
import {
  isCoded,
  SimulatedClock,
  seededRandom,
  silentLog,
  systemNetwork,
  type Clock,
  type Edges,
  type Random,
} from "@kontinuum/std";
import { openStore, prefixRange, type Store } from "@kontinuum/storage/client";
import { builtInCatalog } from "../catalog/catalog.ts";
import { EventLog } from "../events/event-log.ts";
import { Keeper } from "../housekeeping/keeper.ts";
import { Idempotency } from "../http/idempotency.ts";
import { machineBody } from "../kryton.fixture.ts";
import { eventSchema, type CloudEvent } from "../model/event.ts";
import { createMachineSchema } from "../model/machine.ts";
import { isFinal, operationSchema, type Operation } from "../model/operation.ts";
import { Observer } from "../observer/observer.ts";
import { machineRecordSchema, type MachineRecord } from "../operations/record.ts";
import { OperationRunner } from "../operations/runner.ts";
import type { Found, Observation, ProviderCall } from "../provider-contract/contract.ts";
import { DemoProvider } from "../providers/demo/demo-provider.ts";
import type { Asking } from "../service/asking.ts";
import { MachineService } from "../service/machines.ts";
import { OperationService } from "../service/operations.ts";
import { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { Leadership } from "../store/leadership.ts";
import { createSealer } from "../store/sealer.ts";
import { ReplicaSession } from "../store/session.ts";
import { Expiry } from "../ttl/expiry.ts";
import { Wire, type Weather } from "./wire.fixture.ts";

const project = "default";
/** Longest time everything may take to come to rest once nothing goes wrong any more, simulated milliseconds. */
const restMs = 5 * 60_000;

/** A demo provider whose calls take time and whose inventory is old by the time it is read. */
class SlowProvider extends DemoProvider {
  override readonly observeEveryMs = 700;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #slowMs: number;
  readonly #working: Map<string, object>;
  readonly #overlaps: string[];

  constructor(
    options: { store: Store; edges: Edges },
    slowMs: number,
    working: Map<string, object>,
    overlaps: string[],
  ) {
    super(options);
    this.#clock = options.edges.clock;
    this.#random = options.edges.random;
    this.#slowMs = slowMs;
    this.#working = working;
    this.#overlaps = overlaps;
  }

  override create(...args: Parameters<DemoProvider["create"]>): Promise<Observation> {
    return this.#slowly(args[0].id, args[1], () => super.create(...args));
  }

  override start(...args: Parameters<DemoProvider["start"]>): Promise<Observation> {
    return this.#slowly(args[0].id, args[1], () => super.start(...args));
  }

  override stop(...args: Parameters<DemoProvider["stop"]>): Promise<Observation> {
    return this.#slowly(args[0].id, args[2], () => super.stop(...args));
  }

  override delete(...args: Parameters<DemoProvider["delete"]>): Promise<void> {
    return this.#slowly(args[0].id, args[1], () => super.delete(...args));
  }

  override async *inventory(): AsyncIterable<Found> {
    for await (const found of super.inventory()) {
      await this.#pause();
      yield found;
    }
  }

  async #slowly<T>(id: string, call: ProviderCall | undefined, work: () => Promise<T>): Promise<T> {
    const mine = {};
    if (this.#working.has(id)) this.#overlaps.push(id);
    this.#working.set(id, mine);
    try {
      await this.#pause();
      call?.signal.throwIfAborted();
      const result = await work();
      await this.#pause();
      return result;
    } finally {
      if (this.#working.get(id) === mine) this.#working.delete(id);
    }
  }

  #pause(): Promise<void> {
    return this.#clock.sleep(this.#random.integer(this.#slowMs + 1));
  }
}

/** Everything of one process. */
class Replica {
  readonly wire: Wire;
  readonly machines: MachineService;
  readonly operations: OperationService;
  readonly events: EventLog;
  readonly #idempotency: Idempotency;
  readonly #session: ReplicaSession;
  readonly #runner: OperationRunner;
  readonly #loops: (() => Promise<void>)[];
  readonly #stop = new AbortController();

  constructor(wire: Wire, edges: Edges, provider: DemoProvider) {
    this.wire = wire;
    const { store } = wire;
    const documents = new Documents(store, edges.log);
    const catalog = builtInCatalog();
    const session = new ReplicaSession(store, edges);
    const runner = new OperationRunner({
      store,
      edges,
      session,
      tools: {
        provider,
        clock: edges.clock,
        documents,
        image: (id) => catalog.get(id),
        secrets: () => Promise.resolve({}),
        machine: async (name, id) =>
          (await documents.get(keys.machine(name, id), machineRecordSchema))?.value,
      },
    });
    const sealer = createSealer(edges.random.bytes(32), edges.random);
    this.machines = new MachineService({
      store,
      edges,
      session,
      runner,
      provider,
      catalog,
      sealer,
      available: (entry) => Promise.resolve({ ...entry, ready: true }),
      quota: () => undefined,
    });
    this.operations = new OperationService({ store, edges });
    this.events = new EventLog(store, edges);
    this.#idempotency = new Idempotency(store, edges, session);
    this.#session = session;
    this.#runner = runner;
    const leadership = new Leadership(store, edges, session);
    const { signal } = this.#stop;
    const expiry = new Expiry({ store, edges, leadership, machines: this.machines, intervalMs: 500 });
    const observer = new Observer({ store, edges, leadership, provider, projects: () => [project] });
    const keeper = new Keeper({ store, edges, leadership, retention: 10_000 });
    this.#loops = [
      () => this.events.run(() => {}, signal),
      () => runner.start(),
      () => expiry.run(signal),
      () => observer.run(signal),
      () => keeper.run(signal),
    ];
  }

  start(): void {
    for (const loop of this.#loops) void loop();
  }

  /** Ends it in good order. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#runner.stop();
    await this.#session.stop();
  }

  /** Does `work` once for `key`, whoever is asked how often; as the HTTP pipeline does it. */
  async once(key: string, work: (asking: Asking) => Promise<unknown>): Promise<void> {
    const keyed = { caller: "client", key, fingerprint: key };
    const reserved = await this.#idempotency.reserve(keyed);
    if (reserved.kind !== "new") return;
    try {
      await work({ requestedBy: "client", record: reserved.record });
    } catch (error) {
      await this.#idempotency.finish(reserved, keyed, { status: statusOf(error) });
      throw error;
    }
    await this.#idempotency.finish(reserved, keyed, { status: 200, json: {} });
  }
}

function statusOf(error: unknown): number {
  return isCoded(error, "not_found") || isCoded(error, "conflict") ? 409 : 503;
}

/** What can be varied. */
export interface SiteOptions {
  readonly seed: number;
  readonly replicas: number;
  readonly weather: Weather;
  /** Longest time one call of the provider takes, milliseconds. */
  readonly slowMs: number;
  /** Greatest difference between a replica's clock and the true time, milliseconds. */
  readonly skewMs: number;
  /** Two calls of the provider for one machine may be under way at once. */
  readonly mayOverlap?: boolean;
}

/** See the module comment. */
export class Site {
  readonly time = new SimulatedClock();
  readonly random: Random;
  readonly weather: Weather;
  readonly replicas: Replica[] = [];
  /** Machines on which two calls of the provider were under way at once. */
  readonly overlaps: string[] = [];
  readonly #options: SiteOptions;
  readonly #working = new Map<string, object>();
  readonly #truth: Store;
  #preferred: number | undefined;
  #born = 0;

  private constructor(options: SiteOptions, random: Random, time: SimulatedClock, truth: Store) {
    this.#options = options;
    this.random = random;
    this.time = time;
    this.weather = { ...options.weather };
    this.#truth = truth;
    for (let i = 0; i < options.replicas; i++) this.replicas.push(this.#replica());
  }

  static async open(options: SiteOptions): Promise<Site> {
    const random = seededRandom(options.seed);
    const time = new SimulatedClock();
    const edges = {
      clock: time,
      random: seededRandom(options.seed + 1),
      network: systemNetwork,
      log: silentLog,
    };
    return new Site(options, random, time, await openStore("memory://", edges));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const replica of this.replicas) replica.wire.kill();
    await this.#truth.close();
  }

  /** Kills a replica and puts a new one in its place. */
  kill(index: number): void {
    this.replicas[index]?.wire.kill();
    // What a dead process had begun outside is over: nobody overlaps with it.
    this.#working.clear();
    this.replicas[index] = this.#replica();
  }

  /** Runs the clock until `work` is done. Fails when it is not after `limitMs` of simulated time. */
  async drive<T>(work: Promise<T>, limitMs = restMs): Promise<T> {
    let outcome: { value: T } | { error: unknown } | undefined;
    work.then(
      (value) => (outcome = { value }),
      (error: unknown) => (outcome = { error }),
    );
    const end = this.time.now() + limitMs;
    while (!outcome) {
      const next = this.time.nextAt();
      assert.ok(next !== undefined && next <= end, "the simulation stands still");
      await this.time.advance(next - this.time.now());
    }
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** The next request goes to this replica first. */
  prefer(index: number): void {
    this.#preferred = index;
  }

  /** Asks one replica after the other until one has done `work` for `key`; true unless it was refused. */
  async insist(key: string, work: (replica: Replica, asking: Asking) => Promise<unknown>): Promise<boolean> {
    for (;;) {
      const replica = this.replicas[this.#preferred ?? this.random.integer(this.replicas.length)];
      this.#preferred = undefined;
      assert.ok(replica);
      const done = replica
        .once(key, (asking) => work(replica, asking))
        .then(
          () => "done",
          (error: unknown) => {
            if (
              isCoded(error, "not_found") ||
              (isCoded(error, "conflict") && !/under way|too many|cancelled/.test(error.message))
            ) {
              return "refused";
            }
            if (isCoded(error, "conflict") || (isCoded(error) && error.meaning.retryable)) return "again";
            throw error;
          },
        );
      const late = this.time.sleep(20_000).then(() => "again");
      const outcome = await Promise.race([done, late, replica.wire.died.then(() => "again")]);
      if (outcome !== "again") return outcome === "done";
      await this.time.sleep(50);
    }
  }

  /** Creates a machine; its id. */
  async create(name: string, more: Record<string, unknown> = {}): Promise<string> {
    const body = createMachineSchema.parse(machineBody(name, more));
    assert.ok(
      await this.insist(`create-${name}`, (replica, asking) =>
        replica.machines.create(project, body, asking),
      ),
    );
    const { kvs } = await this.#truth.range({ key: keys.name(project, name) });
    return kvs[0] ? String(JSON.parse(kvs[0].value.toString("utf8"))) : "";
  }

  /** Waits until no operation waits or runs. */
  async idle(): Promise<void> {
    const end = this.time.now() + restMs;
    for (;;) {
      const { count } = await this.#truth.range({ ...prefixRange(keys.work), countOnly: true });
      if (count === 0) return;
      assert.ok(this.time.now() < end, `work is left: ${(await this.keysUnder(keys.work)).join(", ")}`);
      await this.time.sleep(500);
    }
  }

  /** Lets everything come to rest: nothing goes wrong any more, and every operation ends. */
  async rest(): Promise<void> {
    Object.assign(this.weather, { refused: 0, unanswered: 0 });
    await this.idle();
    // Some looks of the observer, whoever observes by then, so that whatever it would do wrong is done.
    await this.time.sleep(15_000);
  }

  async keysUnder(prefix: string): Promise<string[]> {
    const { kvs } = await this.#truth.range({ ...prefixRange(prefix), keysOnly: true });
    return kvs.map((kv) => kv.key.toString("utf8"));
  }

  /** Everything that is stored, as documents. */
  async contents(): Promise<Contents> {
    const documents = new Documents(this.#truth, silentLog);
    const machines = await documents.list(keys.machines, machineRecordSchema);
    const operations = await documents.list(keys.operation(), operationSchema);
    const { kvs } = await this.#truth.range({ ...prefixRange(keys.event()), sort: { by: "create" } });
    const events = kvs
      .map((kv) => ({
        revision: kv.createRevision,
        event: eventSchema.parse(JSON.parse(kv.value.toString("utf8"))),
      }))
      .sort((a, b) => a.revision - b.revision || (a.event.id < b.event.id ? -1 : 1))
      .map(({ event }) => event);
    const guests = await this.#truth.range(prefixRange(keys.demoGuest()));
    return {
      machines: machines.map(({ value }) => value),
      operations: operations.map(({ value }) => value),
      events,
      power: new Map(
        guests.kvs.map((kv) => {
          const guest = JSON.parse(kv.value.toString("utf8"));
          return [String(guest.id), String(guest.power)];
        }),
      ),
    };
  }

  /** Fails unless everything that always holds at rest does. */
  async verify(): Promise<Contents> {
    const contents = await this.contents();
    const { machines, operations, events, power } = contents;
    assert.deepEqual(await this.keysUnder(keys.work), [], "no queue entry, claim or cancellation is left");
    for (const { machine, operation } of machines) {
      assert.equal(operation, undefined, `machine ${machine.spec.name} shows an operation that is over`);
      assert.equal(
        power.get(machine.id),
        machine.state,
        `machine ${machine.spec.name} is what it is outside`,
      );
    }
    assert.deepEqual(
      [...power.keys()].sort(),
      machines.map(({ machine }) => machine.id).sort(),
      "guests and machines",
    );
    for (const operation of operations)
      assert.ok(isFinal(operation), `operation ${operation.kind} never ended`);
    const names = await this.keysUnder(keys.name(project, ""));
    assert.deepEqual(
      names.sort(),
      machines.map(({ machine }) => keys.name(project, machine.spec.name)).sort(),
      "names and machines",
    );
    for (const key of await this.keysUnder(keys.expiries)) {
      assert.ok(
        machines.some(({ expiryKey }) => expiryKey === key),
        `expiry ${key} belongs to a machine`,
      );
    }
    const told = (id: string, type: string): number =>
      events.filter((e) => e.data?.["machineId"] === id && e.type === `io.kryton.machine.${type}`).length;
    const done = (id: string, kind: string): number =>
      operations.filter((o) => o.machineId === id && o.kind === kind && o.state === "succeeded").length;
    const live = new Set(machines.map(({ machine }) => machine.id));
    for (const id of new Set(operations.map(({ machineId }) => machineId))) {
      assert.equal(told(id, "created"), done(id, "create"), "each creation is told once");
      assert.equal(told(id, "stopped"), done(id, "stop"), "each stop is told once");
      assert.equal(told(id, "started"), done(id, "start"), "each start is told once");
      assert.equal(done(id, "delete"), live.has(id) ? 0 : 1, "each machine that is gone was deleted once");
      assert.equal(told(id, "deleted") + told(id, "expired"), done(id, "delete"), "each end is told once");
      const ended = operations.every((o) => o.machineId !== id || o.state === "succeeded");
      if (ended)
        assert.equal(
          told(id, "state.changed") + told(id, "running") + told(id, "failed"),
          0,
          "nothing changed by itself",
        );
      const last = events.findLast(
        (e) => e.data?.["machineId"] === id && e.type.startsWith("io.kryton.machine."),
      );
      if (!live.has(id)) assert.match(last?.type ?? "", /deleted|expired/, "nothing is told of what is gone");
    }
    assert.ok(
      machines.every(({ machine }) => operations.some((o) => o.machineId === machine.id)),
      "no machine came out of nowhere",
    );
    for (const replica of this.replicas) {
      assert.deepEqual(
        replica.events.window.map(({ event }) => event.id),
        events.map(({ id }) => id),
        "every replica tells the same history in the same order",
      );
    }
    return contents;
  }

  #replica(): Replica {
    const { seed, weather: _, slowMs, skewMs } = this.#options;
    const number = ++this.#born;
    const random = seededRandom(seed * 1_000 + number);
    const skew = random.integer(2 * skewMs + 1) - skewMs;
    const wire = new Wire(this.#truth, this.time, random, this.weather, skew);
    const edges: Edges = { clock: wire.clock, random, network: systemNetwork, log: silentLog };
    const provider = new SlowProvider({ store: wire.store, edges }, slowMs, this.#working, this.overlaps);
    const replica = new Replica(wire, edges, provider);
    replica.start();
    return replica;
  }
}

/** What a site holds. */
export interface Contents {
  readonly machines: readonly MachineRecord[];
  readonly operations: readonly Operation[];
  readonly events: readonly CloudEvent[];
  /** Power of each guest outside, by machine. */
  readonly power: ReadonlyMap<string, string>;
}
