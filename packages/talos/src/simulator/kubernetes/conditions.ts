/**
 * Conditions of built-in kinds: like ours, but with optional messages and without generations.
 */
import { formatTime } from "@kontinuum/controller";
import type { Clock } from "@kontinuum/std";
import type { BuiltinCondition } from "./kinds.ts";

/** `all` with one condition set; its transition time moves only with its status. */
export function withCondition(
  all: readonly BuiltinCondition[],
  update: { type: string; status: "True" | "False" | "Unknown"; reason?: string; message?: string },
  clock: Clock,
): BuiltinCondition[] {
  const index = all.findIndex(({ type }) => type === update.type);
  const present = all[index];
  const lastTransitionTime =
    present?.status === update.status && present.lastTransitionTime !== undefined
      ? present.lastTransitionTime
      : formatTime(clock.now());
  const next = { ...update, lastTransitionTime };
  return index < 0 ? [...all, next] : all.with(index, next);
}

/** Whether the condition of a type is `True`. */
export function isTrue(all: readonly BuiltinCondition[] | undefined, type: string): boolean {
  return all?.some((condition) => condition.type === type && condition.status === "True") ?? false;
}
