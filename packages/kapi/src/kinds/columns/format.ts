/**
 * Texts that cells of several kinds share: selectors, containers, lists that end in `+ 2 more...`.
 */
import { isObject } from "@kontinuum/std";
import { humanDuration } from "../../crd/human-duration.ts";
import { entries, items, text, texts } from "../read.ts";

/** What stands in a cell without a value. */
export const none = "<none>";

/** Time since a timestamp as kubectl shows it, `<unknown>` without one. */
export function age(timestamp: unknown, now: number): string {
  const time = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
  return Number.isNaN(time) ? "<unknown>" : humanDuration(now - time);
}

/** A map of labels as `a=b,c=d`. */
export function labels(map: unknown): string {
  if (!isObject(map)) return none;
  const parts = Object.entries(map).map(([key, value]) => `${key}=${String(value)}`);
  return parts.length === 0 ? none : parts.toSorted().join(",");
}

/** A label selector in the form the `-l` flag takes. */
export function selector(value: unknown): string {
  const parts: [string, string][] = entries(value, "matchLabels").map(([key, wanted]) => [
    key,
    `${key}=${String(wanted)}`,
  ]);
  for (const expression of items(value, "matchExpressions")) {
    const key = text(expression, "key");
    const values = texts(expression, "values").toSorted().join(",");
    switch (text(expression, "operator")) {
      case "In":
        parts.push([key, `${key} in (${values})`]);
        break;
      case "NotIn":
        parts.push([key, `${key} notin (${values})`]);
        break;
      case "Exists":
        parts.push([key, key]);
        break;
      case "DoesNotExist":
        parts.push([key, `!${key}`]);
    }
  }
  const sorted = parts.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.length === 0 ? none : sorted.map(([, part]) => part).join(",");
}

/** Names of the containers of a pod spec. */
export const containerNames = (podSpec: unknown): string =>
  items(podSpec, "containers")
    .map((container) => text(container, "name"))
    .join(",");

/** Images of the containers of a pod spec. */
export const containerImages = (podSpec: unknown): string =>
  items(podSpec, "containers")
    .map((container) => text(container, "image"))
    .join(",");

/** The first `max` parts, and how many more there are. */
export function shortened(parts: readonly string[], max: number, separator = ","): string {
  const shown = parts.slice(0, max).join(separator);
  return parts.length > max ? `${shown} + ${parts.length - max} more...` : shown;
}

/** Whether a condition of a type is `True`. */
export const hasCondition = (object: unknown, type: string): boolean =>
  items(object, "status", "conditions").some(
    (condition) => text(condition, "type") === type && text(condition, "status") === "True",
  );
