/**
 * JSON Merge Patch (RFC 7386): `null` deletes a key, objects merge, everything else replaces.
 *
 * Never changes its input. Keys named `__proto__` are ordinary keys; integers beyond 2^53 pass unchanged.
 */
import { CodedError, isObject, type JsonObject } from "@kontinuum/std";
import { cloneJson, own, put } from "../schema/json-value.ts";

function mergeObject(target: unknown, patch: JsonObject): JsonObject {
  const result: JsonObject = {};
  if (isObject(target)) {
    for (const key of Object.keys(target)) if (own(patch, key) !== null) put(result, key, target[key]);
  }
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === null || value === undefined) continue;
    put(result, key, isObject(value) ? mergeObject(own(result, key), value) : cloneJson(value));
  }
  return result;
}

/**
 * Applies a merge patch and returns the new document; untouched subtrees are shared with `document`.
 *
 * @throws CodedError `invalid_argument` when the patch is not an object.
 */
export function applyMergePatch(document: JsonObject, patch: unknown): JsonObject {
  if (!isObject(patch)) throw new CodedError("invalid_argument", "merge patch must be a JSON object");
  return mergeObject(document, patch);
}
