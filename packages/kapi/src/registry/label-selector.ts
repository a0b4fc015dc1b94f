/**
 * Label selectors: the text form of queries and the object form of webhooks and owners (Kubernetes API, "Label
 * selectors").
 */
import { isObject } from "@kontinuum/std";
import { plainText } from "../schema/json-value.ts";
import { badRequest } from "../status/status.ts";

/** Labels of an object. */
export type Labels = Readonly<Record<string, string>>;

/** One requirement. */
interface Requirement {
  readonly key: string;
  readonly operator: "in" | "notin" | "exists" | "absent" | "gt" | "lt";
  readonly values: readonly string[];
}

/** A parsed selector. */
export interface LabelSelector {
  /** True when it selects everything. */
  readonly empty: boolean;
  matches(labels: Labels): boolean;
}

/** Longest selector text and greatest number of requirements. */
const maxLength = 32 * 1024;
const maxRequirements = 500;

const keyPattern =
  /^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const valuePattern = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

function fail(what: string): never {
  throw badRequest(`unable to parse requirement: ${what}`);
}

/** Reads a selector text. Fails with 400. */
export function parseLabelSelector(text: string | undefined): LabelSelector {
  if (text === undefined || text.trim() === "") return everything;
  if (text.length > maxLength) fail(`selector is longer than ${maxLength}`);
  const requirements = splitTop(text).map(parseRequirement);
  if (requirements.length > maxRequirements) fail(`more than ${maxRequirements} requirements`);
  return fromRequirements(requirements);
}

function splitTop(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === "(") depth++;
    else if (char === ")") depth--;
    else if (char === "," && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  if (depth !== 0) fail(`found unbalanced parentheses in ${JSON.stringify(text)}`);
  parts.push(text.slice(start));
  return parts;
}

function checkKey(key: string): string {
  if (!keyPattern.test(key)) {
    fail(
      `invalid label key ${JSON.stringify(key)}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`,
    );
  }
  return key;
}

function checkValue(value: string): string {
  if (!valuePattern.test(value)) {
    fail(
      `invalid label value ${JSON.stringify(value)}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`,
    );
  }
  return value;
}

function parseRequirement(part: string): Requirement {
  const text = part.trim();
  if (text === "") fail("found '', expected: identifier");
  if (text.startsWith("!")) return { key: checkKey(text.slice(1).trim()), operator: "absent", values: [] };
  const set = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(text);
  if (set) {
    const [, key = "", operator, list = ""] = set;
    const values = list.split(",").map((value) => checkValue(value.trim()));
    return { key: checkKey(key), operator: operator === "in" ? "in" : "notin", values };
  }
  const simple = /^([^\s=!<>]+)\s*(==|=|!=|>|<)\s*([^\s=!<>]*)$/.exec(text);
  if (simple) {
    const [, key = "", operator = "", value = ""] = simple;
    if (operator === ">" || operator === "<") {
      if (!/^-?\d+$/.test(value))
        fail(`for 'Gt', 'Lt' operators, the value must be an integer: ${JSON.stringify(value)}`);
      return { key: checkKey(key), operator: operator === ">" ? "gt" : "lt", values: [value] };
    }
    return { key: checkKey(key), operator: operator === "!=" ? "notin" : "in", values: [checkValue(value)] };
  }
  if (/\s/.test(text)) fail(`found '${text.split(/\s+/)[1]}', expected: in, notin, =, ==, !=, gt, lt`);
  return { key: checkKey(text), operator: "exists", values: [] };
}

const everything: LabelSelector = { empty: true, matches: () => true };
/** Selects no object. */
export const nothing: LabelSelector = { empty: false, matches: () => false };

function holds({ key, operator, values }: Requirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "in":
      return value !== undefined && values.includes(value);
    case "notin":
      return value === undefined || !values.includes(value);
    case "exists":
      return value !== undefined;
    case "absent":
      return value === undefined;
    case "gt":
    case "lt": {
      if (value === undefined || !/^-?\d+$/.test(value)) return false;
      const bound = BigInt(values[0] ?? "0");
      return operator === "gt" ? BigInt(value) > bound : BigInt(value) < bound;
    }
  }
}

function fromRequirements(requirements: readonly Requirement[]): LabelSelector {
  if (requirements.length === 0) return everything;
  return {
    empty: false,
    matches: (labels) => requirements.every((requirement) => holds(requirement, labels)),
  };
}

const operators: Readonly<Record<string, Requirement["operator"]>> = {
  In: "in",
  NotIn: "notin",
  Exists: "exists",
  DoesNotExist: "absent",
};

/** Reads a `metav1.LabelSelector` object: absent selects nothing, empty everything, unreadable nothing. */
export function labelSelectorOf(value: unknown): LabelSelector {
  if (!isObject(value)) return nothing;
  const requirements: Requirement[] = [];
  const { matchLabels, matchExpressions } = value;
  if (isObject(matchLabels)) {
    for (const [key, item] of Object.entries(matchLabels)) {
      if (typeof item !== "string") return nothing;
      requirements.push({ key, operator: "in", values: [item] });
    }
  }
  if (Array.isArray(matchExpressions)) {
    for (const expression of matchExpressions) {
      if (!isObject(expression) || typeof expression["key"] !== "string") return nothing;
      const operator = operators[plainText(expression["operator"])];
      if (!operator) return nothing;
      const values = Array.isArray(expression["values"]) ? expression["values"].map(plainText) : [];
      requirements.push({ key: expression["key"], operator, values });
    }
  }
  return fromRequirements(requirements);
}
