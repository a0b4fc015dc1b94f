/**
 * Conditions: what a controller reports of an object.
 *
 * `setCondition` changes a list in place and says whether anything changed, so that a controller
 * writes status only when there is something to say (a write per reconcile would wake itself for ever).
 *
 * Source: Kubernetes API conventions ("Typical status properties").
 */
import type { Clock } from "@kontinuum/std";
import type { Condition } from "./object.ts";
import { list, number, object, oneOf, optional, string, type Shape } from "./shape.ts";

/** A condition without its transition time. */
export type ConditionUpdate = Omit<Condition, "lastTransitionTime">;

/** Shape of `status.conditions`. */
export const conditions: Shape<Condition[]> = list(
  object<Condition>({
    type: string,
    status: oneOf("True", "False", "Unknown"),
    reason: string,
    message: string,
    lastTransitionTime: string,
    observedGeneration: optional(number),
  }),
);

/** A time as Kubernetes writes it in metadata and conditions: RFC 3339, UTC, whole seconds. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** A `MicroTime`: six decimals, as leases carry it. */
export function formatMicroTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`;
}

/**
 * Sets the condition of `update.type`, appending it when missing. `lastTransitionTime` moves only
 * when `status` does. Returns whether anything changed.
 */
export function setCondition(all: Condition[], update: ConditionUpdate, clock: Clock): boolean {
  const index = all.findIndex((condition) => condition.type === update.type);
  const present = all[index];
  if (!present) {
    all.push({ ...update, lastTransitionTime: formatTime(clock.now()) });
    return true;
  }
  const same =
    present.status === update.status &&
    present.reason === update.reason &&
    present.message === update.message &&
    present.observedGeneration === update.observedGeneration;
  if (same) return false;
  const lastTransitionTime =
    present.status === update.status ? present.lastTransitionTime : formatTime(clock.now());
  all[index] = { ...update, lastTransitionTime };
  return true;
}

/** The condition of a type, or `undefined`. */
export function findCondition(all: readonly Condition[] | undefined, type: string): Condition | undefined {
  return all?.find((condition) => condition.type === type);
}

/** Whether the condition of a type is `True`. */
export function isConditionTrue(all: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(all, type)?.status === "True";
}

/** Removes the condition of a type in place. Returns whether there was one. */
export function removeCondition(all: Condition[], type: string): boolean {
  const index = all.findIndex((condition) => condition.type === type);
  if (index < 0) return false;
  all.splice(index, 1);
  return true;
}
