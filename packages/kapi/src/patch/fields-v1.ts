/**
 * Field sets as FieldsV1 (meta.k8s.io/v1): steps become keys, `{}` is a member, `.` marks a member that has
 * descendants. Also the steps themselves: how list items are named and how a path is printed for people.
 *
 * Reading normalizes: keyed steps get their keys sorted, so equal items have equal steps.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { parseJson } from "../json/json.ts";
import type { TypeNode } from "../resource.ts";
import { own, printJson, put } from "../schema/json-value.ts";
import { compareSteps, FieldSetBuilder, type FieldSet } from "./field-set.ts";

/** Deepest path accepted in a client's FieldsV1. */
export const maxFieldsDepth = 200;

/** FieldsV1 that cannot be read. */
export class FieldsError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "FieldsError";
  }
}

function normalizeStep(step: string): string {
  switch (step.slice(0, 2)) {
    case "f:":
      return step;
    case "k:":
    case "v:": {
      const value = parseStepJson(step);
      if (step.startsWith("k:") && !isObject(value))
        throw new FieldsError(`not a keyed item: ${JSON.stringify(step)}`);
      return step.slice(0, 2) + printJson(value, true);
    }
    case "i:":
      if (/^i:\d{1,9}$/.test(step)) return step;
      break;
  }
  throw new FieldsError(`not a path element: ${JSON.stringify(step)}`);
}

function parseStepJson(step: string): unknown {
  try {
    return parseJson(step.slice(2));
  } catch {
    throw new FieldsError(`not a path element: ${JSON.stringify(step)}`);
  }
}

function decodeInto(builder: FieldSetBuilder, json: unknown, depth: number): void {
  if (!isObject(json)) throw new FieldsError("fieldsV1 must hold objects only");
  if (depth > maxFieldsDepth)
    throw new FieldsError(`fieldsV1 is nested deeper than ${maxFieldsDepth} levels`);
  const keys = Object.keys(json);
  if (keys.length === 0) builder.isMember = true;
  for (const key of keys) {
    if (key === ".") builder.isMember = true;
    else decodeInto(builder.at(normalizeStep(key)), json[key], depth + 1);
  }
}

/**
 * Reads FieldsV1.
 *
 * @throws FieldsError when it is not FieldsV1.
 */
export function decodeFieldsV1(json: unknown): FieldSet {
  const builder = new FieldSetBuilder();
  decodeInto(builder, json, 0);
  builder.isMember = false;
  return builder.build();
}

/** Writes FieldsV1, keys in a fixed order. */
export function encodeFieldsV1(set: FieldSet): JsonObject {
  const json: JsonObject = {};
  if (set.children.size === 0) return json;
  if (set.isMember) json["."] = {};
  for (const step of [...set.children.keys()].sort(compareSteps)) {
    const child = set.children.get(step);
    if (child) put(json, step, encodeFieldsV1(child));
  }
  return json;
}

/** Why a list item has no place in a set or keyed list. */
export interface StepError {
  readonly error: string;
}

type AssociativeList = Extract<TypeNode, { readonly type: "list" }>;

/** The step of an item in a `set` or `map` list, or why it has none. */
export function itemStep(list: AssociativeList, item: unknown): string | StepError {
  return list.listType === "map" ? keyedStep(list, item) : valueStep(item);
}

function keyedStep(list: AssociativeList, item: unknown): string | StepError {
  if (item === null) return { error: "associative list with keys may not have a null element" };
  if (!isObject(item)) return { error: "associative list with keys may not have non-map elements" };
  const keys: JsonObject = {};
  let count = 0;
  for (const name of list.keys) {
    const value =
      own(item, name) ??
      (list.keyDefaults && Object.hasOwn(list.keyDefaults, name) ? list.keyDefaults[name] : undefined);
    if (value === undefined) continue;
    put(keys, name, value);
    count++;
  }
  if (count === 0) {
    const names = `[${list.keys.map((name) => JSON.stringify(name)).join(" ")}]`;
    return {
      error: `associative list with keys has an element that omits all key fields ${names} (and doesn't have default values for any key fields)`,
    };
  }
  return `k:${printJson(keys, true)}`;
}

function valueStep(item: unknown): string | StepError {
  if (item === null) return { error: "associative list without keys has an element that's an explicit null" };
  if (Array.isArray(item)) return { error: "not supported: associative list with lists as elements" };
  if (isObject(item)) return { error: "associative list without keys has an element that's a map type" };
  return `v:${printJson(item)}`;
}

/** A step for people: `.name`, `[name="x"]`, `[="v"]`, `[0]`. */
export function printStep(step: string): string {
  const body = step.slice(2);
  switch (step.slice(0, 2)) {
    case "f:":
      return `.${body}`;
    case "v:":
      return `[=${body}]`;
    case "k:": {
      const keys = parseStepJson(step);
      const pairs = isObject(keys) ? Object.keys(keys).map((name) => `${name}=${printJson(keys[name])}`) : [];
      return `[${pairs.join(",")}]`;
    }
    default:
      return `[${body}]`;
  }
}

/** A path for people, as conflict messages print it: `.spec.containers[name="a"].image`. */
export function printPath(steps: readonly string[]): string {
  return steps.map(printStep).join("");
}
