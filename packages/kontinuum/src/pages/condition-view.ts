/**
 * Conditions as people read them: the tone says what a condition means, not whether it is true.
 */
import type { Condition } from "@kontinuum/controller";
import type { ConditionView, Tone } from "@kontinuum/web";

/** Condition types whose truth is bad news. */
const badWhenTrue = new Set(["InsufficientCapacity"]);
/** Reasons that need a person rather than time. */
const needsPerson = /Failed|NotFound|Refused|Unhealthy|NoStorage|IdentityChanged|Denied/;

function toneOf(condition: Condition): Tone {
  if (condition.status === "Unknown") return "unknown";
  const good = (condition.status === "True") !== badWhenTrue.has(condition.type);
  if (good) return "ok";
  return needsPerson.test(condition.reason) ? "bad" : "wait";
}

/** Views of a possibly absent list. */
export function conditionViews(conditions: readonly Condition[] | undefined): ConditionView[] {
  return (conditions ?? []).map((condition) => ({
    type: condition.type,
    tone: toneOf(condition),
    reason: condition.reason,
    message: condition.message,
    since: condition.lastTransitionTime,
  }));
}
