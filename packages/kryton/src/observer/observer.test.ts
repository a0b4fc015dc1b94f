import assert from "node:assert/strict";
import { test } from "node:test";
import { requestFor, patientCall } from "../provider-contract/conformance.ts";
import { DemoProvider } from "../providers/demo/demo-provider.ts";
import { start } from "../kryton.fixture.ts";
import { Change } from "../store/change.ts";
import { Leadership } from "../store/leadership.ts";
import { ReplicaSession } from "../store/session.ts";
import { Observer } from "./observer.ts";

test("what changed outside is seen, told once, adopted or reported missing", async () => {
  await using api = await start({ env: { KRYTON_PROJECTS: "default,alpha" } });
  const { store, edges } = api;
  const kept = await api.machine("kept");
  const lost = await api.machine("lost");
  const outside = new DemoProvider({ store, edges });
  const ref = (machine: typeof kept) => ({ ...machine, providerRef: machine.providerRef });
  await outside.stop(ref(kept));
  await outside.delete(ref(lost));
  await outside.create(requestFor("debian-13", "stranger"), patientCall);

  const session = new ReplicaSession(store, edges);
  const observer = new Observer({
    store,
    edges,
    leadership: new Leadership(store, edges, session),
    provider: outside,
    projects: () => ["default", "alpha"],
  });
  const key = "/kryton/leaders/test";
  const { revision } = await new Change().absent(key).put(key, {}).commit(store, edges);
  const never = new AbortController().signal;
  await observer.look({ key, revision }, never);
  await observer.look({ key, revision }, never);

  assert.equal((await api.call("GET", `/api/v1/machines/${kept.id}`)).json.state, "stopped");
  const gone = (await api.call("GET", `/api/v1/machines/${lost.id}`)).json;
  assert.equal(gone.state, "failed");
  assert.match(gone.message, /does not exist/);
  assert.equal((await api.call("DELETE", `/api/v1/machines/${lost.id}`)).status, 204);
  const adopted = (await api.call("GET", "/api/v1/machines?project=alpha")).json.items;
  assert.deepEqual(
    adopted.map((m: { spec: { name: string } }) => m.spec.name),
    ["stranger"],
  );
  const types = (await api.call("GET", "/api/v1/events")).json.items.map((e: { type: string }) => e.type);
  assert.equal(types.filter((type: string) => type === "io.kryton.machine.state.changed").length, 1);
  assert.equal(types.filter((type: string) => type === "io.kryton.machine.failed").length, 1);
  await session.stop();
});

test("old news of a machine that was changed or deleted meanwhile changes nothing; what a late call left is removed", async () => {
  await using api = await start();
  const { store, edges } = api;
  const stopped = await api.machine("stopped");
  const deleted = await api.machine("deleted");
  const session = new ReplicaSession(store, edges);
  const key = "/kryton/leaders/test";
  const { revision } = await new Change().absent(key).put(key, {}).commit(store, edges);
  const never = new AbortController().signal;
  const observer = (provider: DemoProvider): Observer =>
    new Observer({
      store,
      edges,
      leadership: new Leadership(store, edges, session),
      provider,
      projects: () => ["default"],
    });
  /** Tells what it saw only after both machines were changed. */
  class Late extends DemoProvider {
    override async *inventory(): ReturnType<DemoProvider["inventory"]> {
      const seen = [];
      for await (const found of super.inventory()) seen.push(found);
      assert.equal((await api.call("POST", `/api/v1/machines/${stopped.id}/stop`)).status, 200);
      assert.equal((await api.call("DELETE", `/api/v1/machines/${deleted.id}`)).status, 204);
      yield* seen;
    }
  }
  const before = (await api.call("GET", "/api/v1/events")).json.items.length;
  await observer(new Late({ store, edges })).look({ key, revision }, never);
  const { items } = (await api.call("GET", "/api/v1/machines")).json;
  assert.deepEqual(
    items.map((m: { id: string; state: string }) => [m.id, m.state]),
    [[stopped.id, "stopped"]],
  );
  assert.equal((await api.call("GET", "/api/v1/events")).json.items.length, before + 2);

  // A process that was cut off makes the guest of a machine that is gone by now.
  const provider = new DemoProvider({ store, edges });
  await provider.create({ ...requestFor("debian-13", "deleted", "default"), id: deleted.id }, patientCall);
  await observer(provider).look({ key, revision }, never);
  assert.equal(await provider.observe({ ...deleted, providerRef: deleted.providerRef }), undefined);
  assert.equal((await api.call("GET", "/api/v1/machines")).json.items.length, 1);
  await session.stop();
});
