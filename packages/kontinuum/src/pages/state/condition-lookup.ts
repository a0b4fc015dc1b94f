/**
 * Reading conditions, for the tables that turn an object into a word and a tone.
 */
import type { Condition } from "@kontinuum/controller";

/** What the state tables ask of an object's conditions. */
export interface ConditionLookup {
  /** Whether the condition has this status, and this reason when one is given. */
  is(type: string, status: Condition["status"], reason?: string): boolean;
  readonly none: boolean;
  of(type: string): Condition | undefined;
}

/** A lookup over a possibly absent list. */
export function lookup(conditions: readonly Condition[] | undefined): ConditionLookup {
  const all = conditions ?? [];
  return {
    none: all.length === 0,
    of: (type) => all.find((condition) => condition.type === type),
    is: (type, status, reason) =>
      all.some(
        (c) => c.type === type && c.status === status && (reason === undefined || c.reason === reason),
      ),
  };
}

/** The condition that changed last; on a tie the earlier list entry. */
export function newest(conditions: readonly Condition[] | undefined): Condition | undefined {
  let best: Condition | undefined;
  for (const condition of conditions ?? []) {
    if (!best || condition.lastTransitionTime > best.lastTransitionTime) best = condition;
  }
  return best;
}
