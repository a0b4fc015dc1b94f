/**
 * Strategic merge patch (kubernetes.io "Strategic merge patch"): maps merge, lists merge by their merge key
 * where the type says so, and directives change that: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/x`,
 * `$setElementOrder/x`.
 *
 * Never changes its inputs. No directive survives into the result. A patch that contradicts itself or the
 * type is `invalid_argument`.
 */
import { CodedError, isObject, type JsonObject } from "@kontinuum/std";
import type { TypeNode } from "../resource.ts";
import { cloneJson, own, printJson, put } from "../schema/json-value.ts";
import { orderItems, orderMatches } from "./element-order.ts";

const patchDirective = "$patch";
const retainKeysDirective = "$retainKeys";
const deletePrefix = "$deleteFromPrimitiveList/";
const orderPrefix = "$setElementOrder/";

const untyped: TypeNode = { type: "untyped" };

function bad(message: string): never {
  throw new CodedError("invalid_argument", message);
}

/** How a list merges: by key, as a set of scalars, or not at all. */
interface ListStrategy {
  readonly merges: boolean;
  readonly key: string;
  readonly item: TypeNode;
}

function listStrategy(type: TypeNode): ListStrategy {
  if (type.type !== "list") return { merges: false, key: "", item: untyped };
  return { merges: type.patchStrategy === "merge", key: type.patchMergeKey ?? "", item: type.item() };
}

const fieldType = (type: TypeNode, name: string): TypeNode =>
  (type.type === "map" ? type.field(name) : undefined) ?? untyped;

const isDirective = (key: string): boolean =>
  key === patchDirective ||
  key === retainKeysDirective ||
  key.startsWith(deletePrefix) ||
  key.startsWith(orderPrefix);

function unknownDirective(value: unknown): never {
  return bad(`unknown patch type: ${typeof value === "string" ? value : printJson(value)}`);
}

/** A value that is new to the document: without directives and nulls. */
function fresh(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value
      .filter((item: unknown) => !(isObject(item) && Object.hasOwn(item, patchDirective)))
      .map(fresh);
  }
  if (!isObject(value)) return value;
  if (own(value, patchDirective) === "delete") return {};
  const out: JsonObject = {};
  for (const key of Object.keys(value)) {
    if (!isDirective(key) && value[key] !== null) put(out, key, fresh(value[key]));
  }
  return out;
}

/** The patch's own content when it replaces a map. */
function replacement(patch: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const key of Object.keys(patch)) if (key !== patchDirective) put(out, key, cloneJson(patch[key]));
  return out;
}

function retainedKeys(patch: JsonObject): ReadonlySet<unknown> | undefined {
  const list = own(patch, retainKeysDirective);
  if (list === undefined) return undefined;
  if (!Array.isArray(list)) return bad("invalid patch format of retainKeys");
  const kept = new Set<unknown>(list);
  for (const key of Object.keys(patch)) {
    if (!isDirective(key) && patch[key] !== null && !kept.has(key)) bad("invalid patch format of retainKeys");
  }
  return kept;
}

function mergeMap(type: TypeNode, live: JsonObject, patch: JsonObject): JsonObject {
  const directive = own(patch, patchDirective);
  if (directive === "replace") return replacement(patch);
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge") unknownDirective(directive);

  const retained = retainedKeys(patch);
  const out: JsonObject = {};
  for (const key of Object.keys(live)) if (!retained || retained.has(key)) put(out, key, live[key]);

  const done = new Set<string>();
  for (const key of Object.keys(patch)) {
    if (key.startsWith(orderPrefix)) mergeOrderedList(type, out, patch, key, done);
  }
  for (const key of Object.keys(patch)) {
    if (key.startsWith(deletePrefix)) deleteFromList(out, key.slice(deletePrefix.length), patch[key]);
    else if (!isDirective(key) && !done.has(key)) mergeEntry(fieldType(type, key), out, key, patch[key]);
  }
  return out;
}

function mergeEntry(type: TypeNode, out: JsonObject, key: string, patched: unknown): void {
  if (patched === null) {
    delete out[key];
    return;
  }
  const present = own(out, key);
  if (isObject(patched) && isObject(present)) {
    put(out, key, type.type === "map" && type.replace ? fresh(patched) : mergeMap(type, present, patched));
  } else if (Array.isArray(patched) && Array.isArray(present)) {
    put(out, key, mergeList(type, present, patched));
  } else put(out, key, fresh(patched));
}

function deleteFromList(out: JsonObject, key: string, values: unknown): void {
  if (!Array.isArray(values)) bad(`invalid patch format of primitive list: ${deletePrefix}${key}`);
  const removed = new Set<unknown>(values);
  const present = own(out, key);
  if (Array.isArray(present))
    put(
      out,
      key,
      present.filter((item) => !removed.has(item)),
    );
}

function mergeList(type: TypeNode, live: readonly unknown[], patch: readonly unknown[]): readonly unknown[] {
  const strategy = listStrategy(type);
  if (!strategy.merges) return cloneJson(patch);
  const isMaps = [...live, ...patch].some(isObject);
  if ([...live, ...patch].some(Array.isArray)) bad("lists of lists are not supported");
  if (!isMaps) {
    const merged = [...new Set([...live, ...patch])];
    return orderItems(merged, patch, live, "");
  }
  const { key, item } = strategy;
  if (key === "") bad("cannot merge lists without merge key");
  const { base, items } = applySpecialItems(live, patch, key);
  const merged = [...base];
  const places = new Map<string, number>();
  const note = (value: unknown, index: number): void => {
    const id = isObject(value) ? identityOf(value, key) : undefined;
    // Stored lists may repeat a key: the first item is the one that merges.
    if (id !== undefined && !places.has(id)) places.set(id, index);
  };
  merged.forEach(note);
  for (const patched of items) {
    const id = identityOf(patched, key);
    if (id === undefined) return bad(`map does not contain declared merge key: ${key}`);
    const index = places.get(id);
    const present = index === undefined ? undefined : merged[index];
    if (index !== undefined && isObject(present)) merged[index] = mergeMap(item, present, patched);
    else {
      merged.push(fresh(patched));
      note(patched, merged.length - 1);
    }
  }
  return orderItems(merged, items, live, key);
}

/** Takes items with a `$patch` directive out of a keyed list's patch and does what they say. */
function applySpecialItems(
  live: readonly unknown[],
  patch: readonly unknown[],
  key: string,
): { readonly base: readonly unknown[]; readonly items: readonly JsonObject[] } {
  const removed = new Set<string>();
  let replaces = false;
  const items: JsonObject[] = [];
  for (const patched of patch) {
    if (!isObject(patched)) return bad(`a list merged by ${key} holds an item that is not an object`);
    const directive = own(patched, patchDirective);
    if (directive === undefined) items.push(patched);
    else if (directive === "replace") replaces = true;
    else if (directive === "delete") {
      const id = identityOf(patched, key);
      if (id === undefined) return bad(`map does not contain declared merge key: ${key}`);
      removed.add(id);
    } else if (directive === "merge") {
      const { [patchDirective]: _, ...rest } = patched;
      items.push(rest);
    } else unknownDirective(directive);
  }
  if (replaces) return { base: [], items };
  const base = live.filter((item) => !(isObject(item) && removed.has(identityOf(item, key) ?? "")));
  return { base, items };
}

/** A text equal for items with the same merge key, or `undefined` when the item has none. */
function identityOf(item: JsonObject, key: string): string | undefined {
  const value = own(item, key);
  return value === undefined ? undefined : printJson(value);
}

/** A list with `$setElementOrder`: merged first, then put in the order the directive names. */
function mergeOrderedList(
  type: TypeNode,
  out: JsonObject,
  patch: JsonObject,
  directive: string,
  done: Set<string>,
): void {
  const name = directive.slice(orderPrefix.length);
  const order = patch[directive];
  const live = own(out, name);
  const patched = own(patch, name);
  if (!Array.isArray(order) || (live !== undefined && live !== null && !Array.isArray(live)))
    return bad(`invalid patch format of setElementOrder list: ${directive}`);
  if (patched === null) return;
  if (patched !== undefined && !Array.isArray(patched))
    return bad(`invalid patch format of setElementOrder list: ${directive}`);
  const listType = fieldType(type, name);
  const { key } = listStrategy(listType);
  if (
    Array.isArray(patched) &&
    !orderMatches(
      patched.filter((item) => !isDeleted(item)),
      order,
      key,
    )
  )
    return bad(`The order in patch list of ${name} doesn't match ${directive} list`);
  if (!Array.isArray(live) && !Array.isArray(patched)) return;
  done.add(name);
  const before: readonly unknown[] = Array.isArray(live) ? live : [];
  const merged = !Array.isArray(patched)
    ? before
    : Array.isArray(live)
      ? mergeList(listType, live, patched)
      : fresh(patched);
  put(out, name, Array.isArray(merged) ? orderItems(merged, order, before, key) : merged);
}

const isDeleted = (item: unknown): boolean => isObject(item) && own(item, patchDirective) === "delete";

/**
 * Applies a strategic merge patch to `live`, an object of type `type`, and returns the new object.
 *
 * @throws CodedError `invalid_argument` naming what is wrong with the patch.
 */
export function applyStrategicMergePatch(type: TypeNode, live: JsonObject, patch: unknown): JsonObject {
  if (!isObject(patch)) return bad("strategic merge patch must be a JSON object");
  return mergeMap(type, live, patch);
}
