/**
 * Verbs beyond the original's: pause and resume, stops with a limit, restores that start, retries.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage/client";
import { bearer, start, until, type Parsed } from "../kryton.fixture.ts";
import {
  ProviderError,
  type CreateRequest,
  type Resize,
  type MachineRef,
  type Observation,
  type ProviderCall,
} from "../provider-contract/contract.ts";
import { DemoProvider } from "../providers/demo/demo-provider.ts";

const machines = "/api/v1/machines";

/** Guests that ignore polite stops, and a provider that fails as often as it is told to. */
class StubbornProvider extends DemoProvider {
  ignored = 0;
  forced = 0;
  failures = 0;

  override async stop(
    machine: MachineRef,
    options?: { readonly force: boolean },
    call?: ProviderCall,
  ): Promise<Observation> {
    if (options?.force) {
      this.forced++;
      return super.stop(machine, options, call);
    }
    this.ignored++;
    const seen = await this.observe(machine);
    assert.ok(seen);
    return seen;
  }

  #mayFail(): void {
    if (this.failures <= 0) return;
    this.failures--;
    throw new ProviderError("failed", "the host has no power");
  }

  override async create(request: CreateRequest, call: ProviderCall): Promise<Observation> {
    this.#mayFail();
    return super.create(request, call);
  }

  override async resize(machine: MachineRef, size: Resize, call?: ProviderCall): Promise<Observation> {
    this.#mayFail();
    return super.resize(machine, size, call);
  }

  override async delete(machine: MachineRef, call?: ProviderCall): Promise<void> {
    this.#mayFail();
    return super.delete(machine, call);
  }

  override async start(machine: MachineRef, call?: ProviderCall): Promise<Observation> {
    this.#mayFail();
    return super.start(machine, call);
  }
}

async function stubborn(env: Record<string, string> = {}) {
  const edges = systemEdges();
  const store = await openStore("memory://", edges);
  const provider = new StubbornProvider({ store, edges });
  const api = await start({ store, edges, provider, env });
  return {
    api,
    provider,
    async [Symbol.asyncDispose]() {
      await api.stop();
      await store.close();
    },
  };
}

test("a machine is paused and resumed, with events, and only while it runs", async () => {
  await using api = await start();
  const { id } = await api.machine("m");
  const verb = (name: string) => api.call("POST", `${machines}/${id}/${name}`);
  assert.equal((await verb("pause")).json.state, "paused");
  assert.equal((await verb("pause")).json.state, "paused", "harmless when repeated");
  assert.equal((await verb("resume")).json.state, "running");
  assert.equal((await verb("stop")).json.state, "stopped");
  const refused = await verb("pause");
  assert.equal(refused.status, 409);
  assert.match(refused.json.error.message, /only one that runs can be paused/);
  assert.equal((await api.call("GET", `${machines}/${id}`)).json.state, "stopped", "it is what it was");
  assert.equal((await api.call("GET", "/api/v1/capabilities")).json.pause, true);
  const seen = (await api.call("GET", "/api/v1/events")).json.items.map((event: Parsed) =>
    event.type.slice(10),
  );
  assert.ok(seen.includes("machine.paused") && seen.includes("machine.resumed"), String(seen));
});

test("a stop with a limit is polite first, and forced when the guest does not obey", async () => {
  await using site = await stubborn();
  const { api, provider } = site;
  const { id } = await api.machine("m");
  const stop = (query: string) => api.call("POST", `${machines}/${id}/stop${query}`);
  for (const query of [
    "?forceAfterSeconds=0",
    "?forceAfterSeconds=x",
    "?forceAfterSeconds=3601",
    "?force=true&forceAfterSeconds=5",
    "?force=yes",
  ])
    assert.equal((await stop(query)).status, 400, query);
  assert.equal((await stop("?forceAfterSeconds=1")).status, 200);
  await until(async () =>
    (await api.call("GET", `${machines}/${id}`)).json.state === "stopped" ? true : undefined,
  );
  assert.deepEqual([provider.ignored, provider.forced], [1, 1]);
});

test("a restore can start the machine afterwards", async () => {
  await using api = await start();
  const { id } = await api.machine("m");
  const snapshot = (await api.call("POST", `${machines}/${id}/snapshot`)).json;
  await api.call("POST", `${machines}/${id}/stop`);
  const restore = (query: string) =>
    api.call("POST", `${machines}/${id}/snapshots/${snapshot.id}/restore${query}`);
  assert.equal((await restore("")).status, 202);
  assert.equal(
    (await api.call("GET", `${machines}/${id}`)).json.state,
    "stopped",
    "the power state stays by default",
  );
  assert.equal((await restore("?start=true")).status, 202);
  assert.equal((await api.call("GET", `${machines}/${id}`)).json.state, "running");
  assert.equal((await restore("?start=maybe")).status, 400);
});

test("what failed is retried as a new operation, by operators of its project; what succeeded is not", async () => {
  await using site = await stubborn();
  const { api, provider } = site;
  const { id } = await api.machine("m");
  provider.failures = 1;
  assert.ok((await api.call("POST", `${machines}/${id}/start`)).status >= 400);
  const list = async (): Promise<Parsed[]> =>
    (await api.call("GET", `${machines}/${id}/operations`)).json.items;
  const [failed] = await list();
  assert.equal(failed.state, "failed");
  assert.equal(failed.error.retryClass, "needs-person");
  const retried = await api.call("POST", `/api/v1/operations/${failed.id}/retry`);
  assert.equal(retried.status, 202, retried.text);
  assert.notEqual(retried.json.id, failed.id);
  assert.deepEqual([retried.json.kind, retried.json.machineId], ["start", id]);
  await until(async () => ((await list())[0]?.state === "succeeded" ? true : undefined));
  assert.equal((await api.call("GET", `${machines}/${id}`)).json.state, "running");
  const again = await api.call("POST", `/api/v1/operations/${retried.json.id}/retry`);
  assert.equal(again.status, 409);
  const created = (await list()).find((operation) => operation.kind === "create");
  assert.equal((await api.call("POST", `/api/v1/operations/${created.id}/retry`)).status, 409);
  assert.equal((await api.call("POST", "/api/v1/operations/nope/retry")).status, 404);
});

test("a failed creation, resize and deletion can each be retried, within the quota", async () => {
  await using site = await stubborn({ KRYTON_QUOTAS: '{"*":{"cpu":4}}' });
  const { api, provider } = site;
  const newest = async (id: string): Promise<Parsed> =>
    (await api.call("GET", `${machines}/${id}/operations`)).json.items?.[0];
  const retried = async (id: string, kind: string): Promise<void> => {
    const operation = await newest(id);
    assert.deepEqual([operation.kind, operation.state], [kind, "failed"]);
    assert.equal((await api.call("POST", `/api/v1/operations/${operation.id}/retry`)).status, 202);
    await until(async () => {
      const { status, json } = await api.call("GET", `/api/v1/operations/${operation.id}`);
      assert.deepEqual([status, json.state], [200, "failed"], "the first one stays as it ended");
      const last = await newest(id);
      return last === undefined || last.state === "succeeded" ? true : undefined;
    });
  };
  provider.failures = 1;
  const { id, state } = await api.machine("m");
  assert.equal(state, "failed");
  await retried(id, "create");
  assert.equal((await api.call("GET", `${machines}/${id}`)).json.state, "running");
  provider.failures = 1;
  await api.call("PATCH", `${machines}/${id}`, { compute: { cpu: 3 } });
  const resize = await newest(id);
  const { id: other } = await api.machine("other", { compute: { cpu: 2, memoryMiB: 1024 } });
  const over = await api.call("POST", `/api/v1/operations/${resize.id}/retry`);
  assert.deepEqual([over.status, over.json.error.code], [403, "QUOTA_EXCEEDED"]);
  await api.call("DELETE", `${machines}/${other}`);
  await retried(id, "resize");
  assert.equal((await api.call("GET", `${machines}/${id}`)).json.spec.compute.cpu, 3);
  provider.failures = 1;
  await api.call("DELETE", `${machines}/${id}`);
  await retried(id, "delete");
  assert.equal((await api.call("GET", `${machines}/${id}`)).status, 404);
});

test("retrying and cancelling need the operator of the operation's own project", async () => {
  await using api = await start({
    env: { KRYTON_PROJECTS: "ci,qa" },
    keys: {
      op: { role: "operator", projects: ["ci"] },
      viewer: { role: "viewer", projects: ["ci"] },
      other: { role: "operator", projects: ["qa"] },
    },
  });
  await api.machine("m", { project: "ci" }, bearer("op"));
  const [operation] = (await api.call("GET", "/api/v1/operations?project=ci", undefined, bearer("op"))).json
    .items;
  for (const verb of ["retry", "cancel"]) {
    const ask = async (who: string): Promise<number> =>
      (await api.call("POST", `/api/v1/operations/${operation.id}/${verb}`, undefined, bearer(who))).status;
    assert.equal(await ask("viewer"), 403);
    assert.equal(await ask("other"), 404);
    assert.equal(await ask("op"), 409);
  }
});
