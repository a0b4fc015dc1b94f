/**
 * Label selectors as data: sent to the server and evaluated on cached objects with the same result.
 *
 * Source: Kubernetes concepts ("Labels and selectors"), `LabelSelector` of the API reference.
 */
import { CodedError } from "@kontinuum/std";

/** One requirement beyond equality. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}

/** All of it must hold. A plain map of labels is `matchLabels`. Empty matches everything. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelRequirement[];
}

/** The wire form: `a=b,c in (d,e),!f`. */
export function formatSelector(selector: LabelSelector): string {
  const equalities = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  return [...equalities, ...(selector.matchExpressions ?? []).map(formatRequirement)].join(",");
}

function formatRequirement({ key, operator, values = [] }: LabelRequirement): string {
  switch (operator) {
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    case "In":
    case "NotIn":
      if (values.length === 0) {
        throw new CodedError("invalid_argument", `label selector: ${operator} for ${key} needs values`);
      }
      return `${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`;
  }
}

/** Whether labels satisfy a selector. */
export function matches(selector: LabelSelector, labels: Readonly<Record<string, string>> = {}): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    if (labels[key] !== value) return false;
  }
  return (selector.matchExpressions ?? []).every((requirement) => matchesOne(requirement, labels));
}

function matchesOne(
  { key, operator, values = [] }: LabelRequirement,
  labels: Readonly<Record<string, string>>,
) {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
  }
}
