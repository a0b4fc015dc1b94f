/**
 * JSON Patch (RFC 6902) over trees that hold `bigint` integers.
 *
 * Never changes its input: the document is copied along the touched paths only. A patch that cannot be
 * read is `invalid_argument`; one that does not fit the document is `unprocessable`, as the API server
 * answers it. Keys named `__proto__` are ordinary keys.
 */
import { CodedError, isObject, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson, own, printJson, put } from "../schema/json-value.ts";

/** Most operations one patch may hold (Kubernetes limit). */
export const maxPatchOperations = 10_000;

/** Most values all `copy` operations of one patch may add together: bounds repeated doubling. */
export const maxCopiedValues = 200_000;

/** Most array items all operations of one patch may move to make room or close a gap. */
export const maxShiftedItems = 20_000_000;

interface Operation {
  readonly op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  readonly path: readonly string[];
  readonly from?: readonly string[];
  readonly value?: unknown;
  readonly text: string;
}

const malformed = (message: string): CodedError => new CodedError("invalid_argument", message);
const refused = (message: string): CodedError => new CodedError("unprocessable", message);

function parsePointer(value: unknown, index: number, member: string): readonly string[] {
  if (typeof value !== "string")
    throw malformed(`json patch operation ${index}: "${member}" must be a string`);
  if (value === "") return [];
  if (!value.startsWith("/"))
    throw malformed(
      `json patch operation ${index}: "${member}" must start with "/": ${JSON.stringify(value)}`,
    );
  return value
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function parseOperation(value: unknown, index: number): Operation {
  if (!isObject(value)) throw malformed(`json patch operation ${index} must be an object`);
  const op = own(value, "op");
  const path = parsePointer(own(value, "path"), index, "path");
  const text = String(own(value, "path"));
  switch (op) {
    case "remove":
      return { op, path, text };
    case "add":
    case "replace":
    case "test": {
      if (!Object.hasOwn(value, "value"))
        throw malformed(`json patch operation ${index}: "${op}" needs a "value"`);
      return { op, path, text, value: value["value"] };
    }
    case "move":
    case "copy":
      return { op, path, text, from: parsePointer(own(value, "from"), index, "from") };
    default:
      throw malformed(`json patch operation ${index}: unknown operation ${printJson(op)}`);
  }
}

/** A document being patched: nodes are copied the first time they are written. */
class Draft {
  root: unknown;
  readonly #fresh = new WeakSet<object>();
  #shifted = 0;

  constructor(root: unknown) {
    this.root = root;
  }

  #writable(value: unknown): unknown {
    if (typeof value !== "object" || value === null || this.#fresh.has(value)) return value;
    let copy: unknown[] | JsonObject;
    if (Array.isArray(value)) copy = value.slice();
    else {
      copy = {};
      for (const [key, item] of Object.entries(value)) put(copy, key, item);
    }
    this.#fresh.add(copy);
    return copy;
  }

  /** `splice` with its work counted. */
  #splice(list: unknown[], index: number, removed: number, ...added: readonly unknown[]): void {
    this.#shifted += list.length - index;
    if (this.#shifted > maxShiftedItems) throw refused("json patch: operations move too many array items");
    list.splice(index, removed, ...added);
  }

  get(path: readonly string[], text: string): unknown {
    let node = this.root;
    for (const key of path) node = step(node, key, text);
    return node;
  }

  /** The container of the last key of `path`, safe to write. */
  #parent(path: readonly string[], text: string): unknown[] | JsonObject {
    this.root = this.#writable(this.root);
    let node = this.root;
    for (const key of path.slice(0, -1)) {
      const next = this.#writable(step(node, key, text));
      if (Array.isArray(node)) node[arrayIndex(key, node.length - 1, text)] = next;
      else if (isObject(node)) put(node, key, next);
      node = next;
    }
    if (Array.isArray(node) || isObject(node)) return node;
    throw refused(`json patch: the parent of ${text} is not an object or array`);
  }

  add(path: readonly string[], value: unknown, text: string): void {
    const key = path.at(-1);
    if (key === undefined) {
      this.root = value;
      return;
    }
    const parent = this.#parent(path, text);
    if (!Array.isArray(parent)) put(parent, key, value);
    else if (key === "-") parent.push(value);
    else this.#splice(parent, arrayIndex(key, parent.length, text), 0, value);
  }

  replace(path: readonly string[], value: unknown, text: string): void {
    this.get(path, text);
    const key = path.at(-1);
    if (key === undefined) {
      this.root = value;
      return;
    }
    const parent = this.#parent(path, text);
    if (Array.isArray(parent)) parent[arrayIndex(key, parent.length - 1, text)] = value;
    else put(parent, key, value);
  }

  remove(path: readonly string[], text: string): unknown {
    const removed = this.get(path, text);
    const key = path.at(-1);
    if (key === undefined) {
      this.root = null;
      return removed;
    }
    const parent = this.#parent(path, text);
    if (Array.isArray(parent)) this.#splice(parent, arrayIndex(key, parent.length - 1, text), 1);
    else delete parent[key];
    return removed;
  }
}

function arrayIndex(key: string, last: number, text: string): number {
  if (!/^(0|[1-9][0-9]{0,8})$/.test(key))
    throw refused(`json patch: ${text}: ${JSON.stringify(key)} is not an array index`);
  const index = Number(key);
  if (index > last) throw refused(`json patch: ${text}: index ${index} is beyond the end of the array`);
  return index;
}

function step(node: unknown, key: string, text: string): unknown {
  if (Array.isArray(node)) return node[arrayIndex(key, node.length - 1, text)];
  if (isObject(node) && Object.hasOwn(node, key)) return node[key];
  throw refused(`json patch: ${text} does not exist: no ${JSON.stringify(key)}`);
}

function countValues(value: unknown, budget: number): number {
  let count = 1;
  if (typeof value !== "object" || value === null) return count;
  for (const item of Object.values(value)) {
    count += countValues(item, budget - count);
    if (count > budget) return count;
  }
  return count;
}

/**
 * Applies a JSON Patch and returns the new document; `document` is not changed.
 *
 * @throws CodedError `invalid_argument` (not a patch), `unprocessable` (a failed `test`, a missing path).
 */
export function applyJsonPatch(document: JsonObject, patch: unknown): JsonObject {
  if (!Array.isArray(patch)) throw malformed("json patch must be an array of operations");
  if (patch.length > maxPatchOperations) {
    throw new CodedError(
      "payload_too_large",
      `The allowed maximum operations in a JSON patch is ${maxPatchOperations}, got ${patch.length}`,
    );
  }
  const draft = new Draft(document);
  let copied = 0;
  const operations = patch.map((value: unknown, index) => parseOperation(value, index));
  for (const { op, path, from = [], value, text } of operations) {
    switch (op) {
      case "add":
        draft.add(path, cloneJson(value), text);
        break;
      case "replace":
        draft.replace(path, cloneJson(value), text);
        break;
      case "remove":
        draft.remove(path, text);
        break;
      case "test":
        if (!equalJson(draft.get(path, text), value))
          throw refused(`json patch: testing path ${text} failed`);
        break;
      case "copy": {
        const source = draft.get(from, text);
        copied += countValues(source, maxCopiedValues);
        if (copied > maxCopiedValues) throw refused("json patch: copy operations add too many values");
        draft.add(path, cloneJson(source), text);
        break;
      }
      case "move": {
        if (path.length > from.length && from.every((key, i) => path[i] === key))
          throw refused(`json patch: cannot move a value into itself at ${text}`);
        const moved = draft.get(from, text);
        draft.remove(from, text);
        draft.add(path, moved, text);
        break;
      }
    }
  }
  if (!isObject(draft.root)) throw refused("json patch: the result is not an object");
  return draft.root;
}
