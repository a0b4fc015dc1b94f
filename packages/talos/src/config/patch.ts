/**
 * Patches to a machine configuration: strategic merge (YAML that looks like the configuration) and
 * RFC 6902.
 *
 * Strategic merge follows Talos: mappings merge, values replace, lists are appended to, except the
 * ones in the tables below. `$patch: delete` removes a document, a key, or the list items that
 * match; deleting what is not there is an error, as it is with the official tool. RFC 6902 knows no
 * documents, so it is refused for a configuration of several, again as there.
 */
import { CodedError, isObject, messageOf, type JsonObject } from "@kontinuum/std";
import jsonPatch from "fast-json-patch";
import {
  documentId,
  isMainDocument,
  parseYamlStream,
  serializeConfigDocuments,
  parseConfigDocuments,
  type ConfigDocument,
} from "./config-document.ts";

/** Lists that a patch replaces. Paths are `<kind or v1alpha1>:<keys>`. */
const replacedPaths = new Set([
  "v1alpha1:cluster.network.podSubnets",
  "v1alpha1:cluster.network.serviceSubnets",
  "v1alpha1:cluster.apiServer.auditPolicy",
  "KubeNetworkConfig:podSubnets",
  "KubeNetworkConfig:serviceSubnets",
  "KubeAuditPolicyConfig:configuration",
  "NetworkRuleConfig:portSelector.ports",
  "NetworkRuleConfig:ingress",
]);

/** Lists whose items merge when one of these keys is equal; the first key an item has counts. */
const mergedLists: ReadonlyMap<string, readonly string[]> = new Map([
  ["v1alpha1:machine.network.interfaces", ["interface", "deviceSelector"]],
  ["v1alpha1:machine.network.interfaces.vlans", ["vlanId"]],
  ["v1alpha1:cluster.apiServer.admissionControl", ["name"]],
  ["ExtensionServiceConfig:configFiles", ["mountPath"]],
]);

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
      for (const value of values) {
        if (!isObject(value)) throw invalid(`${what} is neither a mapping nor a list of operations`);
        current = mergeDocument(current, value, what);
      }
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
  const checked = operations.map((operation) => {
    if (!isObject(operation)) throw invalid(`${what} holds an operation that is no mapping`);
    return operation;
  });
  try {
    // Validation of the operations' shape is the library's second argument set to true.
    const { newDocument } = jsonPatch.applyPatch(
      structuredClone(document),
      checked as unknown as jsonPatch.Operation[],
      true,
      true,
      true,
    );
    if (!isObject(newDocument)) throw invalid(`${what} replaces the whole document`);
    return [newDocument];
  } catch (error) {
    if (error instanceof CodedError) throw error;
    // The library appends the tree, which holds keys, after the first line.
    throw invalid(`${what} does not apply: ${messageOf(error).split("\n")[0]}`);
  }
}

function mergeDocument(documents: ConfigDocument[], patch: ConfigDocument, what: string): ConfigDocument[] {
  const { $patch: directive, ...fields } = patch;
  const id = documentId(fields);
  const index = documents.findIndex((document) => documentId(document) === id);
  if (directive !== undefined) {
    if (directive !== "delete") throw unknownDirective(what);
    return documents.filter((_, position) => position !== index);
  }
  const existing = documents[index];
  const kind = isMainDocument(fields) ? "v1alpha1" : String(fields["kind"]);
  const merged = mergeObject(existing ?? {}, fields, { prefix: `${kind}:`, trail: [], what, id });
  if (!existing) return [...documents, merged];
  return documents.map((document, position) => (position === index ? merged : document));
}

interface Place {
  /** `<kind>:`, the start of a path in the tables. */
  readonly prefix: string;
  /** Keys from the document's root; list positions are left out. */
  readonly trail: readonly string[];
  readonly what: string;
  readonly id: string;
}

function pathOf({ prefix, trail }: Place): string {
  return prefix + trail.join(".");
}

function mergeObject(base: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const merged: JsonObject = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    const at: Place = { ...place, trail: [...place.trail, key] };
    if (key === "__proto__") throw invalid(`${place.what}: key __proto__ is not allowed`);
    if (isObject(value) && "$patch" in value) {
      if (value["$patch"] !== "delete") throw unknownDirective(place.what);
      if (!Object.hasOwn(merged, key)) throw missing(at);
      delete merged[key];
      continue;
    }
    merged[key] = mergeValue(Object.hasOwn(merged, key) ? merged[key] : undefined, value, at);
  }
  return merged;
}

function mergeValue(base: unknown, patch: unknown, place: Place): unknown {
  if (replacedPaths.has(pathOf(place))) return patch;
  if (isObject(patch)) return mergeObject(isObject(base) ? base : {}, patch, place);
  if (Array.isArray(patch)) return mergeList(Array.isArray(base) ? base : [], patch, place);
  return patch;
}

function mergeList(base: readonly unknown[], patch: readonly unknown[], place: Place): unknown[] {
  const keys = mergedLists.get(pathOf(place));
  let merged = [...base];
  for (const item of patch) {
    if (!isObject(item)) {
      merged.push(item);
      continue;
    }
    const { $patch: directive, ...fields } = item;
    if (directive !== undefined) {
      if (directive !== "delete") throw unknownDirective(place.what);
      const kept = merged.filter((candidate) => !matches(candidate, fields));
      if (kept.length === merged.length) throw missing(place);
      merged = kept;
      continue;
    }
    const key = keys?.find((name) => name in fields);
    const index =
      key === undefined
        ? -1
        : merged.findIndex((candidate) => isObject(candidate) && equal(candidate[key], fields[key]));
    const existing = merged[index];
    if (key !== undefined && isObject(existing)) {
      // The key itself is equal; merging it would append lists inside a selector.
      const { [key]: _, ...rest } = fields;
      merged[index] = mergeObject(existing, rest, place);
    } else {
      merged.push(mergeObject({}, fields, place));
    }
  }
  return merged;
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

function unknownDirective(what: string): CodedError {
  return invalid(`${what}: the only value of $patch is "delete"`);
}

function invalid(message: string): CodedError {
  return new CodedError("invalid_argument", message);
}
