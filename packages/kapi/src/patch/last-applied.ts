/**
 * The annotation of client-side apply, as far as server-side apply honours it: fields whose live value is
 * what kubectl last applied are kubectl's own, so its first server-side apply does not conflict with its past.
 */
import { isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { parseJson } from "../json/json.ts";
import type { TypeNode } from "../resource.ts";
import { own, printJson } from "../schema/json-value.ts";
import { difference, emptySet, type FieldSet } from "./field-set.ts";
import { compareTyped } from "./typed-compare.ts";
import { fieldsOf } from "./typed-value.ts";

const annotation = "kubectl.kubernetes.io/last-applied-configuration";

/** The annotation's text, or `undefined`. */
export function lastAppliedAnnotation(object: JsonObject): string | undefined {
  return stringAt(object, "metadata", "annotations", annotation);
}

/** Fields that the annotation holds with exactly the live value. */
export function heldByLastApplied(type: TypeNode, live: JsonObject): FieldSet {
  const text = lastAppliedAnnotation(live);
  if (text === undefined) return emptySet;
  let last: unknown;
  try {
    last = parseJson(text);
  } catch {
    return emptySet;
  }
  if (!isObject(last)) return emptySet;
  const { added, modified, removed } = compareTyped(type, last, live);
  return difference(difference(difference(fieldsOf(type, last), modified), added), removed);
}

/** `object` with the annotation set to the configuration just applied. */
export function withLastApplied(object: JsonObject, applied: JsonObject): JsonObject {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const annotations = isObject(metadata["annotations"]) ? metadata["annotations"] : {};
  const config: JsonObject = { ...applied };
  const configMeta = own(config, "metadata");
  if (isObject(configMeta)) {
    const sent = own(configMeta, "annotations");
    const kept = isObject(sent)
      ? Object.fromEntries(Object.entries(sent).filter(([key]) => key !== annotation))
      : {};
    config["metadata"] = { ...configMeta, annotations: kept };
  }
  const text = `${printJson(config, true)}\n`;
  return { ...object, metadata: { ...metadata, annotations: { ...annotations, [annotation]: text } } };
}
