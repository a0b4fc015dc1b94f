/**
 * The decision of a pool: which machines to claim and which to give back. Pure: from what was observed to
 * what to do.
 */
import { isConditionTrue, isDeleting, matches } from "@kontinuum/controller";
import { annotations, labels, type Instance, type InstancePool } from "../../kinds/index.ts";

/** What to do for a pool. */
export interface PoolPlan {
  /** Claimed, and wanted. */
  readonly keep: readonly Instance[];
  /** Claimed, no longer wanted, not yet told so. */
  readonly release: readonly Instance[];
  /** Claimed, told so, still being reset. */
  readonly leaving: readonly Instance[];
  /** Free and fitting, best first: claim until {@link missing} are won. */
  readonly candidates: readonly Instance[];
  /** How many more machines are wanted. */
  readonly missing: number;
}

const byName = (a: Instance, b: Instance): number => (a.metadata.name < b.metadata.name ? -1 : 1);

/** Whether a pool holds the machine. */
const claimedBy = (instance: Instance): string | undefined => instance.metadata.labels?.[labels.claimedBy];

const isLeaving = (instance: Instance): boolean =>
  instance.metadata.annotations?.[annotations.release] !== undefined;

/**
 * Plans for `pool` with all machines of its namespace. `wanted` is its number of replicas, or 0 while the
 * pool or its cluster is being deleted.
 *
 * Machines that are being reset or deleted don't count as held. Too many: those with the last names go.
 * A free machine must match the selector, be discovered and not be on its way out.
 */
export function planPool(pool: InstancePool, instances: readonly Instance[], wanted: number): PoolPlan {
  const claimed = instances.filter((instance) => claimedBy(instance) === pool.metadata.name).sort(byName);
  const leaving = claimed.filter((instance) => isLeaving(instance) || isDeleting(instance));
  const held = claimed.filter((instance) => !leaving.includes(instance));
  const keep = held.slice(0, Math.max(0, wanted));
  const missing = Math.max(0, wanted - keep.length);
  const selector = selectorOf(pool);
  const candidates =
    missing === 0
      ? []
      : instances
          .filter(
            (instance) =>
              claimedBy(instance) === undefined &&
              !isDeleting(instance) &&
              !isLeaving(instance) &&
              isConditionTrue(instance.status?.conditions, "Discovered") &&
              selector !== undefined &&
              matches(selector, instance.metadata.labels),
          )
          .sort(byName);
  return { keep, release: held.slice(keep.length), leaving, candidates, missing };
}

const operators = ["In", "NotIn", "Exists", "DoesNotExist"] as const;

/** The selector with known operators only; one that can't be understood selects nothing. */
function selectorOf({ spec }: InstancePool): Parameters<typeof matches>[0] | undefined {
  const requirements = [];
  for (const { key, operator, values } of spec.selector.matchExpressions ?? []) {
    const known = operators.find((name) => name === operator);
    if (!known) return undefined;
    requirements.push({ key, operator: known, ...(values ? { values } : {}) });
  }
  return { matchLabels: spec.selector.matchLabels ?? {}, matchExpressions: requirements };
}
