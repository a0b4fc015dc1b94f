/**
 * What happens to a machine that leaves, and by which way its reset goes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cluster, condition, holding, instance } from "../objects.fixture.ts";
import { membersOf } from "../taloscluster/members.ts";
import { nextToLeave } from "../taloscluster/taloscluster.teardown.ts";
import { resetRoute } from "./instance-reset.reset.ts";
import { planReset } from "./reset-plan.ts";

const clusters = [cluster("c", ["w"])];
const step = (one: ReturnType<typeof instance>, among = clusters): string => planReset(one, among, 1000).step;
const metadata = (pool: string | undefined, extra = {}) => ({
  metadata: { labels: pool === undefined ? {} : { "kontinuum.sh/claimed-by": pool }, ...extra },
});
const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const guarded = { finalizers: ["kontinuum.sh/talos-reset"] };
const marked = { annotations: { "kontinuum.sh/release": "2026-01-01T00:00:10Z" } };

test("a claimed machine of a cluster is guarded, others are not", () => {
  assert.equal(step(instance("a", metadata("cp"))), "guard");
  assert.equal(step(instance("a", metadata("w"))), "guard");
  assert.equal(step(instance("a", metadata("unused"))), "nothing");
  assert.equal(step(instance("a", metadata(undefined))), "nothing");
});

test("a free machine loses what a former cluster said of it, and a dangling finalizer", () => {
  assert.equal(
    step(instance("a", { ...metadata(undefined), ...holding("Configured") })),
    "forget-membership",
  );
  assert.equal(step(instance("a", metadata(undefined, { ...deleted, ...guarded }))), "finish");
  assert.equal(step(instance("a", metadata(undefined, deleted))), "nothing");
});

test("a machine that leaves is reset exactly when it may carry a configuration", () => {
  const leaving = metadata("cp", { ...deleted, ...guarded });
  assert.equal(step(instance("a", leaving)), "finish");
  assert.equal(step(instance("a", { ...leaving, ...holding("Configured") })), "reset");
  assert.equal(
    step(instance("a", { ...leaving, status: { conditions: [condition("Configured", "False")] } })),
    "reset",
  );
  assert.equal(step(instance("a", { ...leaving, ...holding("Configured") }), []), "finish");
  const released = planReset(
    instance("a", { ...metadata("w", marked), ...holding("Configured") }),
    clusters,
    1000,
  );
  assert.ok(released.step === "reset");
  assert.equal(released.deadlineMs, Date.parse("2026-01-01T00:00:11Z"));
});

test("the reset goes through a control-plane peer, and directly when there is none", () => {
  const peers = membersOf(clusters[0] ?? cluster("c"), [
    instance("cp1", { ...metadata("cp"), ...holding("Configured") }, { interfaces: ["10.0.0.1"] }),
    instance("cp2", { ...metadata("cp"), ...holding("Configured") }, { interfaces: ["10.0.0.2"] }),
    instance("w1", { ...metadata("w"), ...holding("Configured") }, { interfaces: ["10.0.0.3"] }),
  ]);
  const [one] = peers;
  assert.deepEqual(resetRoute({ address: "10.0.0.1", role: "controlplane" }, peers), {
    address: "10.0.0.2",
    node: "10.0.0.1",
    graceful: true,
  });
  assert.deepEqual(resetRoute({ address: "10.0.0.3", role: "worker" }, peers), {
    address: "10.0.0.1",
    node: "10.0.0.3",
    graceful: true,
  });
  assert.deepEqual(resetRoute({ address: "10.0.0.1", role: "controlplane" }, one ? [one] : []), {
    address: "10.0.0.1",
    graceful: false,
  });
});

test("workers leave before the control plane, and nobody is sent twice", () => {
  const owner = cluster("c", ["w"]);
  const cp = instance("cp1", metadata("cp"));
  const leave = (...list: ReturnType<typeof instance>[]): string[] =>
    nextToLeave(owner, list).map(({ metadata: { name } }) => name);
  assert.deepEqual(leave(cp, instance("w2", metadata("w")), instance("w1", metadata("w"))), ["w1", "w2"]);
  assert.deepEqual(leave(cp, instance("w1", metadata("w", marked))), []);
  assert.deepEqual(leave(cp), ["cp1"]);
  assert.deepEqual(leave(instance("cp1", metadata("cp", marked))), []);
});
