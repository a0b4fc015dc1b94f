/**
 * Patches to a machine configuration: strategic merge (YAML that looks like the configuration) and
 * RFC 6902.
 *
 * Strategic merge follows Talos: mappings merge, values replace, null means "not given", lists are
 * appended to, except the ones in the tables below. `$patch: delete` removes a document, a key, or
 * the list items that match. All deletions of a patch come before what it adds; deleting a key that
 * is not there is an error, as it is with the official tool. RFC 6902 knows no documents, so it is
 * refused for a configuration of several, again as there.
 */
import { CodedError, isObject, messageOf, stringAt, type JsonObject } from "@kontinuum/std";
import jsonPatch from "fast-json-patch";
import {
  documentId,
  isMainDocument,
  parseYamlStream,
  serializeConfigDocuments,
  parseConfigDocuments,
  type ConfigDocument,
} from "./config-document.ts";

/** Values that a patch replaces as a whole. Paths are `<kind or v1alpha1>:<keys>`. */
const replacedPaths = new Set([
  "v1alpha1:cluster.network.podSubnets",
  "v1alpha1:cluster.network.serviceSubnets",
  // A certificate and its key go together: half a pair would fit nothing.
  "v1alpha1:machine.ca",
  "v1alpha1:cluster.ca",
  "v1alpha1:cluster.aggregatorCA",
  "v1alpha1:cluster.serviceAccount",
  "v1alpha1:cluster.etcd.ca",
  "KubeNetworkConfig:podSubnets",
  "KubeNetworkConfig:serviceSubnets",
  "NetworkRuleConfig:portSelector.ports",
  "NetworkRuleConfig:ingress",
]);

/** Policies that a patch replaces as a whole unless it gives an empty one. */
const policyPaths = new Set([
  "v1alpha1:cluster.apiServer.auditPolicy",
  "KubeAuditPolicyConfig:configuration",
]);

/** Lists whose items merge when one of these keys is equal; the first key an item has counts. */
const mergedLists: ReadonlyMap<string, readonly string[]> = new Map([
  ["v1alpha1:machine.network.interfaces", ["interface", "deviceSelector"]],
  ["v1alpha1:machine.network.interfaces.vlans", ["vlanId"]],
  ["v1alpha1:cluster.apiServer.admissionControl", ["name"]],
  ["ExtensionServiceConfig:configFiles", ["mountPath"]],
]);

/** Most items of one list a patch may delete: each is looked for in the whole list. */
const deletionsMax = 1_000;

/** A configuration text with patches applied in order. Fails with `invalid_argument`. */
export function patchMachineConfig(config: string, patches: readonly string[]): string {
  return serializeConfigDocuments(patchConfigDocuments(parseConfigDocuments(config), patches));
}

/** Documents with patches applied in order. The given documents are not changed. */
export function patchConfigDocuments(
  documents: readonly ConfigDocument[],
  patches: readonly string[],
): ConfigDocument[] {
  let current = [...documents];
  for (const [index, patch] of patches.entries()) {
    const what = `patch ${index + 1}`;
    const values = parseYamlStream(patch, what);
    const [first] = values;
    if (Array.isArray(first)) {
      if (values.length > 1) throw invalid(`${what} mixes RFC 6902 operations with other documents`);
      current = applyOperations(current, first, what);
    } else {
      current = applyStrategic(current, values, what);
    }
  }
  return current;
}

function applyOperations(documents: ConfigDocument[], operations: unknown[], what: string): ConfigDocument[] {
  const [document] = documents;
  if (!document || documents.length > 1) {
    throw invalid(
      `${what}: RFC 6902 is not supported for a configuration of several documents; use a strategic merge`,
    );
  }
  const checked = operations.map((operation, index) =>
    operationOf(operation, `${what}, operation ${index + 1}`),
  );
  let changed: unknown;
  try {
    changed = jsonPatch.applyPatch(structuredClone(document), checked, true, true, true).newDocument;
  } catch (error) {
    // The library appends the tree, which holds keys, after the first line.
    throw invalid(`${what} does not apply: ${messageOf(error).split("\n")[0]}`);
  }
  if (!isObject(changed)) throw invalid(`${what} leaves no mapping`);
  return [changed];
}

function operationOf(value: unknown, what: string): jsonPatch.Operation {
  const op = stringAt(value, "op");
  const path = stringAt(value, "path");
  if (!isObject(value) || path === undefined) throw invalid(`${what} is no RFC 6902 operation with a path`);
  switch (op) {
    case "remove":
      return { op, path };
    case "move":
    case "copy": {
      const from = stringAt(value, "from");
      if (from === undefined) throw invalid(`${what} lacks from`);
      return { op, path, from };
    }
    case "add":
    case "replace":
    case "test":
      if (!("value" in value)) throw invalid(`${what} lacks value`);
      return { op, path, value: value["value"] };
    default:
      throw invalid(`${what} is none of add, remove, replace, move, copy and test`);
  }
}

function applyStrategic(
  documents: ConfigDocument[],
  values: readonly unknown[],
  what: string,
): ConfigDocument[] {
  const parts = values.map((value) => {
    if (!isObject(value)) throw invalid(`${what} is neither a mapping nor a list of operations`);
    const place: Place = { what, trail: [], id: documentId(value), prefix: prefixOf(value) };
    return { place, whole: isDeletion(value, place), patch: value };
  });
  let current = documents;
  for (const { place, whole, patch } of parts) {
    current = whole
      ? current.filter((document) => documentId(document) !== place.id)
      : current.map((document) =>
          documentId(document) === place.id ? deleteMarked(document, patch, place) : document,
        );
  }
  for (const { place, whole, patch } of parts) {
    const addition = whole ? undefined : withoutDirectives(patch);
    if (!isObject(addition)) continue;
    const index = current.findIndex((document) => documentId(document) === place.id);
    const merged = mergeObject(current[index] ?? {}, addition, place);
    current = index < 0 ? [...current, merged] : current.with(index, merged);
  }
  return current;
}

/** Where in which patch and document one is. */
interface Place {
  readonly what: string;
  readonly id: string;
  /** `<kind or v1alpha1>:`, the start of a path in the tables. */
  readonly prefix: string;
  /** Keys from the document's root; list positions are left out. */
  readonly trail: readonly string[];
}

function prefixOf(document: ConfigDocument): string {
  return isMainDocument(document) ? "v1alpha1:" : `${String(document["kind"])}:`;
}

const under = (place: Place, key: string): Place => ({ ...place, trail: [...place.trail, key] });

/** Whether a mapping of a patch is marked for deletion. */
function isDeletion(value: unknown, { what }: Place): value is JsonObject {
  if (!isObject(value) || !("$patch" in value)) return false;
  if (value["$patch"] !== "delete") throw invalid(`${what}: the only value of $patch is "delete"`);
  return true;
}

/** First pass: the base without what the patch marks. */
function deleteMarked(base: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const result = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    const at = under(place, key);
    const existing = Object.hasOwn(result, key) ? result[key] : undefined;
    if (isDeletion(value, at)) {
      if (!Object.hasOwn(result, key)) throw missing(at);
      delete result[key];
    } else if (isObject(value)) {
      const emptied = deleteMarked(isObject(existing) ? existing : {}, value, at);
      if (isObject(existing)) result[key] = emptied;
    } else if (Array.isArray(value)) {
      const kept = deleteItems(Array.isArray(existing) ? existing : [], value, at);
      if (Array.isArray(existing)) result[key] = kept;
    }
  }
  return result;
}

function deleteItems(base: readonly unknown[], patch: readonly unknown[], place: Place): unknown[] {
  let kept = [...base];
  const deletions = patch.filter((item) => isDeletion(item, place));
  if (deletions.length > deletionsMax) {
    throw invalid(`${place.what} deletes more than ${deletionsMax} items of ${place.trail.join(".")}`);
  }
  for (const { $patch: _, ...fields } of deletions) {
    const left = kept.filter((candidate) => !matches(candidate, fields));
    if (left.length === kept.length) throw missing(place);
    kept = left;
  }
  const known = positionsOf(kept, place);
  for (const item of patch) {
    if (!isObject(item) || "$patch" in item) continue;
    const position = known.get(identityOf(item, place) ?? "") ?? -1;
    const existing = kept[position];
    const emptied = deleteMarked(isObject(existing) ? existing : {}, item, place);
    if (isObject(existing)) kept[position] = emptied;
  }
  return kept;
}

/** What a patch adds: without its marks, and without the mappings that held nothing else. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(withoutDirectives).filter((item) => item !== undefined);
    return items.length === 0 && value.length > 0 ? undefined : items;
  }
  if (!isObject(value)) return value;
  if ("$patch" in value) return undefined;
  const entries = Object.entries(value).map(([key, entry]) => [key, withoutDirectives(entry)] as const);
  const kept = entries.filter(([, entry]) => entry !== undefined);
  return kept.length === 0 && entries.length > 0 ? undefined : Object.fromEntries(kept);
}

/** Second pass: the base with what the patch adds. */
function mergeObject(base: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const merged: JsonObject = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    const at = under(place, key);
    if (key === "__proto__") throw invalid(`${place.what}: key __proto__ is not allowed`);
    if (value === null) continue;
    merged[key] = mergeValue(Object.hasOwn(merged, key) ? merged[key] : undefined, value, at);
  }
  return merged;
}

function mergeValue(base: unknown, patch: unknown, place: Place): unknown {
  const path = place.prefix + place.trail.join(".");
  if (policyPaths.has(path)) return isObject(patch) && Object.keys(patch).length === 0 ? base : patch;
  if (replacedPaths.has(path)) return patch;
  if (isObject(patch)) return mergeObject(isObject(base) ? base : {}, patch, place);
  if (Array.isArray(patch)) return mergeList(Array.isArray(base) ? base : [], patch, place);
  return patch;
}

function mergeList(base: readonly unknown[], patch: readonly unknown[], place: Place): unknown[] {
  const merged = [...base];
  const known = positionsOf(base, place);
  for (const item of patch) {
    const identity = isObject(item) ? identityOf(item, place) : undefined;
    const position = identity === undefined ? undefined : known.get(identity);
    const existing = position === undefined ? undefined : merged[position];
    if (isObject(item) && isObject(existing) && position !== undefined) {
      // What identifies the item is equal; merging it would append to lists inside a selector.
      const { [identifyingKey(item, place) ?? ""]: _, ...rest } = item;
      merged[position] = mergeObject(existing, rest, place);
    } else {
      if (identity !== undefined) known.set(identity, merged.length);
      merged.push(isObject(item) ? mergeObject({}, item, place) : item);
    }
  }
  return merged;
}

/** The key that identifies an item of a list whose items merge. */
function identifyingKey(item: JsonObject, place: Place): string | undefined {
  return mergedLists.get(place.prefix + place.trail.join("."))?.find((key) => key in item);
}

/** What identifies an item of such a list, or `undefined`. */
function identityOf(item: JsonObject, place: Place): string | undefined {
  const key = identifyingKey(item, place);
  return key === undefined ? undefined : `${key}=${JSON.stringify(item[key])}`;
}

/** Where the items of such a list stand; the first of equal ones counts. */
function positionsOf(items: readonly unknown[], place: Place): Map<string, number> {
  const positions = new Map<string, number>();
  items.forEach((item, position) => {
    const identity = isObject(item) ? identityOf(item, place) : undefined;
    if (identity !== undefined && !positions.has(identity)) positions.set(identity, position);
  });
  return positions;
}

function matches(candidate: unknown, fields: JsonObject): boolean {
  return isObject(candidate) && Object.entries(fields).every(([key, value]) => equal(candidate[key], value));
}

function equal(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function missing(place: Place): CodedError {
  return invalid(`${place.what} deletes ${place.trail.join(".")} of ${place.id}, which is not there`);
}

function invalid(message: string): CodedError {
  return new CodedError("invalid_argument", message);
}
