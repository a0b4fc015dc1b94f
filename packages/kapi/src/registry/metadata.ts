/**
 * Rules every object's metadata obeys, whatever its kind (Kubernetes API conventions, "Metadata").
 *
 * Shape first ({@link normalizeMetadata}: wrong types are 400, as a decoder refuses them), then what the server owns
 * ({@link claimForCreate}, {@link claimForUpdate}), then validation with field errors.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { FieldError, ResourceDefinition } from "../resource.ts";
import { printBadValue } from "../schema/field-error.ts";
import { jsonKind, plainText } from "../schema/json-value.ts";
import { badRequest } from "../status/status.ts";
import { equalJson } from "../json/json.ts";
import { labelValueErrors, nameErrors, qualifiedNameErrors } from "./names.ts";

/** Greatest total size of annotations, in bytes. */
export const maxAnnotationBytes = 256 * 1024;

/** Finalizers that ask the garbage collector for work. */
export const orphanFinalizer = "orphan";
/** See {@link orphanFinalizer}. */
export const foregroundFinalizer = "foregroundDeletion";

/** The metadata of an object; an empty one is put in when there is none. */
export function metadataOf(object: JsonObject): JsonObject {
  const present = object["metadata"];
  if (isObject(present)) return present;
  const created: JsonObject = {};
  object["metadata"] = created;
  return created;
}

/** A text of the metadata; empty when missing. */
export function metaText(object: JsonObject, field: string): string {
  const metadata = object["metadata"];
  const value = isObject(metadata) ? metadata[field] : undefined;
  return typeof value === "string" ? value : "";
}

/** Finalizers of an object. */
export function finalizersOf(object: JsonObject): readonly string[] {
  const metadata = object["metadata"];
  const value = isObject(metadata) ? metadata["finalizers"] : undefined;
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** Sets or, when empty, removes the finalizers. */
export function setFinalizers(object: JsonObject, finalizers: readonly string[]): void {
  const metadata = metadataOf(object);
  if (finalizers.length === 0) delete metadata["finalizers"];
  else metadata["finalizers"] = [...finalizers];
}

let lastSecond = Number.NaN;
let lastText = "";

/** Now as metadata writes it: UTC, whole seconds. Many writes share a second: its text is made once. */
export function timestamp(nowMs: number): string {
  const second = Math.floor(nowMs / 1000);
  if (second !== lastSecond) {
    lastText = `${new Date(second * 1000).toISOString().slice(0, 19)}Z`;
    lastSecond = second;
  }
  return lastText;
}

const texts = [
  "name",
  "generateName",
  "namespace",
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "deletionTimestamp",
  "selfLink",
];

function wrongType(field: string, value: unknown, type: string): never {
  throw badRequest(
    `json: cannot unmarshal ${jsonKind(value)} into Go struct field ObjectMeta.metadata.${field} of type ${type}`,
  );
}

function textMap(metadata: JsonObject, field: string): void {
  const value = metadata[field];
  if (value === undefined) return;
  if (value === null) {
    delete metadata[field];
    return;
  }
  if (!isObject(value)) wrongType(field, value, "map[string]string");
  for (const key in value) {
    if (value[key] === null) value[key] = "";
    else if (typeof value[key] !== "string") wrongType(field, value[key], "string");
  }
  if (Object.keys(value).length === 0) delete metadata[field];
}

/** Checks types of all metadata fields and drops nulls and `selfLink`. Fails with 400. */
export function normalizeMetadata(object: JsonObject): void {
  const given = object["metadata"];
  if (given === undefined || given === null) {
    object["metadata"] = {};
    return;
  }
  if (!isObject(given)) throw badRequest("metadata must be an object");
  for (const field of texts) {
    const value = given[field];
    if (value === null || value === "") delete given[field];
    else if (value !== undefined && typeof value !== "string") wrongType(field, value, "string");
  }
  delete given["selfLink"];
  textMap(given, "labels");
  textMap(given, "annotations");
  const { finalizers, ownerReferences, managedFields } = given;
  if (finalizers === null || (Array.isArray(finalizers) && finalizers.length === 0))
    delete given["finalizers"];
  else if (finalizers !== undefined) {
    if (!Array.isArray(finalizers)) wrongType("finalizers", finalizers, "[]string");
    for (const item of finalizers) if (typeof item !== "string") wrongType("finalizers", item, "string");
  }
  if (ownerReferences === null || (Array.isArray(ownerReferences) && ownerReferences.length === 0))
    delete given["ownerReferences"];
  else if (ownerReferences !== undefined) {
    if (!Array.isArray(ownerReferences)) wrongType("ownerReferences", ownerReferences, "[]v1.OwnerReference");
    for (const item of ownerReferences)
      if (!isObject(item)) wrongType("ownerReferences", item, "v1.OwnerReference");
  }
  if (managedFields === null) delete given["managedFields"];
  else if (managedFields !== undefined && !Array.isArray(managedFields))
    wrongType("managedFields", managedFields, "[]v1.ManagedFieldsEntry");
  for (const field of ["generation", "deletionGracePeriodSeconds"]) {
    const value = given[field];
    if (value === null) delete given[field];
    else if (value !== undefined && typeof value !== "bigint" && !Number.isInteger(value))
      wrongType(field, value, "int64");
  }
}

/** Wipes what a client may not set on create. */
export function claimForCreate(object: JsonObject): void {
  const metadata = metadataOf(object);
  for (const field of [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
  ]) {
    delete metadata[field];
  }
}

const serverOwned = [
  "namespace",
  "uid",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "generation",
];

/** Takes what the server owns from the stored object. */
export function claimForUpdate(object: JsonObject, old: JsonObject): void {
  const metadata = metadataOf(object);
  const stored = metadataOf(old);
  for (const field of serverOwned) {
    if (stored[field] === undefined) delete metadata[field];
    else metadata[field] = stored[field];
  }
  if (metadata["generateName"] === undefined && stored["generateName"] !== undefined)
    metadata["generateName"] = stored["generateName"];
}

function error(reason: FieldError["reason"], field: string, message: string): FieldError {
  return { reason, field, message };
}

function invalidValue(field: string, value: unknown, why: string): FieldError {
  return error("FieldValueInvalid", field, `Invalid value: ${printBadValue(value)}: ${why}`);
}

/** Validates metadata of a new or changed object. */
export function metadataErrors(
  object: JsonObject,
  resource: ResourceDefinition,
  old?: JsonObject,
): readonly FieldError[] {
  const metadata = metadataOf(object);
  const errors: FieldError[] = [];
  const name = metaText(object, "name");
  if (!old) {
    if (name === "")
      errors.push(
        error("FieldValueRequired", "metadata.name", "Required value: name or generateName is required"),
      );
    else
      for (const why of nameErrors(name, resource.nameRule ?? "subdomain"))
        errors.push(invalidValue("metadata.name", name, why));
    if (resource.namespaced) {
      const namespace = metaText(object, "namespace");
      for (const why of nameErrors(namespace, "label"))
        errors.push(invalidValue("metadata.namespace", namespace, why));
    }
  } else if (name !== metaText(old, "name")) {
    errors.push(invalidValue("metadata.name", name, "field is immutable"));
  }
  errors.push(...labelErrors(metadata["labels"], "metadata.labels"));
  errors.push(...annotationErrors(metadata["annotations"]));
  errors.push(...ownerErrors(metadata["ownerReferences"]));
  errors.push(...finalizerErrors(object, resource, old));
  return errors;
}

/** Validates a map of labels at a path. */
export function labelErrors(labels: unknown, field: string): readonly FieldError[] {
  if (!isObject(labels)) return [];
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels)) {
    for (const why of qualifiedNameErrors(key)) errors.push(invalidValue(field, key, why));
    for (const why of labelValueErrors(plainText(value))) errors.push(invalidValue(field, value, why));
  }
  return errors;
}

function annotationErrors(annotations: unknown): readonly FieldError[] {
  if (!isObject(annotations)) return [];
  const errors: FieldError[] = [];
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) {
    size += Buffer.byteLength(key) + Buffer.byteLength(plainText(value));
    for (const why of qualifiedNameErrors(key.toLowerCase()))
      errors.push(invalidValue("metadata.annotations", key, why));
  }
  if (size > maxAnnotationBytes) {
    errors.push(
      error(
        "FieldValueTooLong",
        "metadata.annotations",
        `Too long: may not be more than ${maxAnnotationBytes} bytes`,
      ),
    );
  }
  return errors;
}

function ownerErrors(owners: unknown): readonly FieldError[] {
  if (!Array.isArray(owners)) return [];
  const errors: FieldError[] = [];
  let controllers = 0;
  for (const [index, owner] of owners.entries()) {
    const field = `metadata.ownerReferences[${index}]`;
    if (!isObject(owner)) continue;
    for (const key of ["apiVersion", "kind", "name", "uid"]) {
      const value = owner[key];
      if (typeof value !== "string" || value === "") {
        errors.push(
          invalidValue(
            `${field}.${key}`,
            value ?? "",
            `${key === "apiVersion" ? "version" : key} must not be empty`,
          ),
        );
      }
    }
    if (owner["apiVersion"] === "v1" && owner["kind"] === "Event") {
      errors.push(invalidValue(field, "v1, Kind=Event", "/v1, Kind=Event is disallowed from being an owner"));
    }
    if (owner["controller"] === true) controllers++;
  }
  if (controllers > 1) {
    errors.push(
      invalidValue(
        "metadata.ownerReferences",
        "",
        `Only one reference can have Controller set to true. Found "true" in ${controllers} references`,
      ),
    );
  }
  return errors;
}

/** Groups of built-in kinds whose finalizers, like those of custom kinds, need no prefix (as seen of the released server). */
const freeFinalizerGroups: ReadonlySet<string> = new Set([
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "coordination.k8s.io",
  "node.k8s.io",
  "policy",
]);

function finalizerErrors(
  object: JsonObject,
  { origin, group }: ResourceDefinition,
  old: JsonObject | undefined,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const finalizers = finalizersOf(object);
  const needsPrefix = origin !== "custom" && !freeFinalizerGroups.has(group);
  for (const [index, finalizer] of finalizers.entries()) {
    if (finalizer === orphanFinalizer || finalizer === foregroundFinalizer) continue;
    for (const why of qualifiedNameErrors(finalizer))
      errors.push(invalidValue("metadata.finalizers", finalizer, why));
    if (needsPrefix && !finalizer.includes("/") && finalizer !== "kubernetes") {
      errors.push(
        invalidValue(
          `metadata.finalizers[${index}]`,
          finalizer,
          "name is neither a standard finalizer name nor is it fully qualified",
        ),
      );
    }
  }
  if (finalizers.includes(orphanFinalizer) && finalizers.includes(foregroundFinalizer)) {
    errors.push(
      invalidValue(
        "metadata.finalizers",
        finalizers,
        `finalizer ${orphanFinalizer} and ${foregroundFinalizer} cannot be both set`,
      ),
    );
  }
  if (old && metaText(old, "deletionTimestamp") !== "") {
    const before = new Set(finalizersOf(old));
    const added = finalizers.filter((finalizer) => !before.has(finalizer));
    if (added.length > 0) {
      const list = `[]string{${added.map((item) => JSON.stringify(item)).join(", ")}}`;
      errors.push(
        error(
          "FieldValueForbidden",
          "metadata.finalizers",
          `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
        ),
      );
    }
  }
  return errors;
}

/** Removes exact duplicates among owner references; says whether there were any. */
export function dedupeOwners(object: JsonObject): boolean {
  const metadata = metadataOf(object);
  const owners = metadata["ownerReferences"];
  if (!Array.isArray(owners) || owners.length < 2) return false;
  const unique: unknown[] = [];
  for (const owner of owners) if (!unique.some((other) => equalJson(other, owner))) unique.push(owner);
  if (unique.length === owners.length) return false;
  metadata["ownerReferences"] = unique;
  return true;
}
