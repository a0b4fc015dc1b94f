/**
 * What a pool reports.
 */
import { isConditionTrue, setCondition, type Condition } from "@kontinuum/controller";
import type { Clock } from "@kontinuum/std";
import { isDeepStrictEqual } from "node:util";
import type { Instance, InstancePool, InstancePoolStatus } from "../../kinds/index.ts";

/** The status of a pool that holds `held`, or `undefined` when nothing changes. */
export function poolStatus(
  pool: InstancePool,
  held: readonly Instance[],
  clock: Clock,
): InstancePoolStatus | undefined {
  const before = pool.status ?? {};
  const conditions: Condition[] = structuredClone(before.conditions ?? []);
  const enough = held.length >= pool.spec.replicas;
  const common = {
    reason: enough ? "Claimed" : "CandidatesExhausted",
    message: `${held.length} of ${pool.spec.replicas} machines claimed`,
    observedGeneration: pool.metadata.generation ?? 0,
  };
  setCondition(
    conditions,
    { type: "InsufficientCapacity", status: enough ? "False" : "True", ...common },
    clock,
  );
  setCondition(conditions, { type: "Ready", status: enough ? "True" : "False", ...common }, clock);
  const readyReplicas = held.filter((one) => isConditionTrue(one.status?.conditions, "Discovered")).length;
  const status: InstancePoolStatus = { ...before, readyReplicas, conditions };
  return isDeepStrictEqual(before, status) ? undefined : status;
}
