/**
 * Small changes to objects, always in the same order: what a person may get wrong in a manifest.
 */
import { isObject, type JsonObject } from "@kontinuum/std";

type Path = readonly (string | number)[];

/** A changed object and what was changed. */
export interface Mutation {
  readonly name: string;
  readonly object: JsonObject;
}

function* places(value: unknown, path: Path = []): Generator<readonly [Path, unknown]> {
  if (path.length > 0) yield [path, value];
  if (Array.isArray(value))
    for (const [index, item] of value.entries()) yield* places(item, [...path, index]);
  else if (isObject(value))
    for (const [key, item] of Object.entries(value)) yield* places(item, [...path, key]);
}

/** A copy with the value at a path replaced; `undefined` takes it out. */
function changed(object: JsonObject, path: Path, value: unknown): JsonObject {
  const copy = structuredClone(object);
  let parent: unknown = copy;
  for (const key of path.slice(0, -1)) parent = (parent as Record<string | number, unknown>)[key];
  const last = path.at(-1) ?? "";
  if (Array.isArray(parent) && typeof last === "number") {
    if (value === undefined) parent.splice(last, 1);
    else parent[last] = value;
  } else if (isObject(parent)) {
    if (value === undefined) delete parent[last];
    else parent[last] = value;
  }
  return copy;
}

function replacements(value: unknown): unknown[] {
  if (typeof value === "string") return ["", "Bad_Value!", "x".repeat(70)];
  if (typeof value === "number") return [0, -1, 70_000];
  if (Array.isArray(value)) return value.length > 0 ? [[], structuredClone([...value, value[0]])] : [[]];
  return isObject(value) ? [{}] : [];
}

/** The object itself, then with each place taken out and replaced; its own name and type stay. */
export function* mutations(object: JsonObject): Generator<Mutation> {
  yield { name: "as it is", object: structuredClone(object) };
  for (const [path, value] of places(object)) {
    const [first, second] = path;
    if (first === "apiVersion" || first === "kind") continue;
    if (first === "metadata" && path.length <= 2 && second !== "labels") continue;
    const where = path.join(".");
    yield { name: `${where} removed`, object: changed(object, path, undefined) };
    for (const [index, replacement] of replacements(value).entries()) {
      yield { name: `${where} replaced ${index}`, object: changed(object, path, replacement) };
    }
  }
}
