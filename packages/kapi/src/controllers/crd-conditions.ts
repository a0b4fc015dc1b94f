/**
 * Conditions of a definition's status, changed one at a time and timed by their last transition.
 */
import { isObject } from "@kontinuum/std";

/** A condition to set. */
export interface ConditionInput {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
  /** Leaves a condition that is already `True` as it is: what was established stays so. */
  readonly keep?: boolean;
}

/** The conditions with one set; `lastTransitionTime` changes only with the status. */
export function withCondition(
  conditions: readonly unknown[],
  input: ConditionInput,
  now: string,
): readonly unknown[] {
  const { type, status, reason, message, keep } = input;
  const present = conditions.find((condition) => isObject(condition) && condition["type"] === type);
  if (isObject(present) && keep && present["status"] === "True") return conditions;
  const same = isObject(present) && present["status"] === status;
  const made = {
    type,
    status,
    lastTransitionTime: same ? present["lastTransitionTime"] : now,
    reason,
    message,
  };
  if (!present) return [...conditions, made];
  return conditions.map((condition) => (condition === present ? made : condition));
}
