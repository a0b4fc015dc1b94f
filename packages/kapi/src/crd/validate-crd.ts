/**
 * Validation of a CustomResourceDefinition (apiextensions.k8s.io/v1): everything that makes a definition a
 * 422 instead of a kind.
 */
import { isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import { child, indexed, invalid, required } from "../schema/field-error.ts";
import { own } from "../schema/json-value.ts";
import { parseSchema } from "../schema/schema-node.ts";
import { crdNames, crdVersions } from "./compile-crd.ts";

/** What is wrong with `manifest`, compared with the stored definition `old` on an update. */
export function validateCrd(manifest: JsonObject, _old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const names = crdNames(manifest);
  const group = stringAt(manifest, "spec", "group") ?? "";
  if (group === "") errors.push(required("spec.group"));
  if (names.plural === "") errors.push(required("spec.names.plural"));
  if (names.kind === "") errors.push(required("spec.names.kind"));
  const name = stringAt(manifest, "metadata", "name") ?? "";
  if (name !== `${names.plural}.${group}`)
    errors.push(invalid("metadata.name", name, `must be spec.names.plural+"."+spec.group`));
  const versions = crdVersions(manifest);
  if (versions.filter((v) => own(v, "storage") === true).length !== 1)
    errors.push(
      invalid(
        "spec.versions",
        versions.map((v) => stringAt(v, "name")),
        "must have exactly one version marked as storage version",
      ),
    );
  versions.forEach((version, i) => {
    const path = child(indexed("spec.versions", i), "schema");
    const schema = own(version, "schema");
    if (!isObject(schema) || !isObject(own(schema, "openAPIV3Schema")))
      errors.push(required(child(path, "openAPIV3Schema"), "schemas are required"));
    else parseSchema(schema["openAPIV3Schema"], child(path, "openAPIV3Schema"), errors);
  });
  return errors;
}
