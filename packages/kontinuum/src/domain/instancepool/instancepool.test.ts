/**
 * What a pool decides: whom it keeps, claims and lets go.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedClock } from "@kontinuum/std";
import { condition, holding, instance, pool } from "../objects.fixture.ts";
import { needsReset, withoutClaim } from "./instancepool.claim.ts";
import { planPool } from "./instancepool.plan.ts";
import { poolStatus } from "./instancepool.status.ts";

const names = (list: readonly { metadata: { name: string } }[]): string[] =>
  list.map(({ metadata }) => metadata.name);
const claimed = (name: string, by = "p", extra = {}) =>
  instance(name, {
    ...holding("Discovered"),
    metadata: { labels: { "kontinuum.sh/claimed-by": by }, ...extra },
  });
const free = (name: string, labels = {}, extra = {}) =>
  instance(name, { ...holding("Discovered"), metadata: { labels, ...extra } });

test("claims by name among those that match, are discovered, free and staying", () => {
  const plan = planPool(
    pool("p", 3, { matchLabels: { size: "large" } }),
    [
      free("d", { size: "large" }),
      free("b", { size: "large" }),
      free("small", { size: "small" }),
      free("leaving", { size: "large" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      free("marked", { size: "large" }, { annotations: { "kontinuum.sh/release": "2026-01-01T00:00:00Z" } }),
      instance("unseen", { metadata: { labels: { size: "large" } } }),
      claimed("theirs", "other"),
      claimed("mine"),
    ],
    3,
  );
  assert.deepEqual(names(plan.keep), ["mine"]);
  assert.deepEqual(names(plan.candidates), ["b", "d"]);
  assert.equal(plan.missing, 2);
});

test("too many: the last by name go, and those already leaving do not count", () => {
  const leaving = claimed("a", "p", { annotations: { "kontinuum.sh/release": "2026-01-01T00:00:00Z" } });
  const plan = planPool(pool("p", 1), [claimed("c"), leaving, claimed("b")], 1);
  assert.deepEqual([names(plan.keep), names(plan.release), names(plan.leaving)], [["b"], ["c"], ["a"]]);
  assert.equal(plan.missing, 0);
  const emptied = planPool(pool("p", 1), [claimed("c"), leaving, claimed("b")], 0);
  assert.deepEqual(names(emptied.release), ["b", "c"]);
});

test("selectors: expressions work, an unknown operator selects nothing, negative replicas claim nothing", () => {
  const machines = [free("a", { tier: "x" }), free("b")];
  const select = (expression: object) =>
    names(planPool(pool("p", 5, { matchExpressions: [expression] }), machines, 5).candidates);
  assert.deepEqual(select({ key: "tier", operator: "Exists" }), ["a"]);
  assert.deepEqual(select({ key: "tier", operator: "NotIn", values: ["x"] }), ["b"]);
  assert.deepEqual(select({ key: "tier", operator: "Guess" }), []);
  assert.deepEqual(names(planPool(pool("p", 5), machines, 5).candidates), ["a", "b"]);
  assert.equal(planPool(pool("p", -2), machines, -2).missing, 0);
});

test("reports what it holds, once", () => {
  const clock = new SimulatedClock();
  const status = poolStatus(pool("p", 2), [claimed("a")], clock);
  assert.equal(status?.readyReplicas, 1);
  assert.deepEqual(
    status?.conditions?.map(({ type, status: holds, reason, message }) => [type, holds, reason, message]),
    [
      ["InsufficientCapacity", "True", "CandidatesExhausted", "1 of 2 machines claimed"],
      ["Ready", "False", "CandidatesExhausted", "1 of 2 machines claimed"],
    ],
  );
  assert.equal(poolStatus(pool("p", 2, {}, { status }), [claimed("a")], clock), undefined);
});

test("a machine that may carry a configuration is not simply freed", () => {
  assert.equal(needsReset(instance("a", holding("Discovered"))), false);
  assert.equal(
    needsReset(instance("a", { status: { conditions: [condition("Configured", "False")] } })),
    true,
  );
  const freed = withoutClaim(claimed("a", "p", { annotations: { "kontinuum.sh/release": "x", other: "y" } }));
  assert.deepEqual(freed.metadata.labels, {});
  assert.deepEqual(freed.metadata.annotations, { other: "y" });
});
