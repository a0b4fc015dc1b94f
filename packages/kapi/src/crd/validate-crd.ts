/**
 * Validation of a CustomResourceDefinition (apiextensions.k8s.io/v1): everything that makes a definition a
 * 422 instead of a kind, with the paths and texts of the API server.
 *
 * Pure, and bounded by the size of the manifest and the limits of `schema/`.
 */
import { at, isDnsSubdomain, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import { child, indexed, invalid, notSupported, required } from "../schema/field-error.ts";
import { equalJson, own, printJson } from "../schema/json-value.ts";
import { crdVersions } from "./compile-crd.ts";
import { conversionErrors } from "./validate-conversion.ts";
import { isDns1035Label, nameErrors } from "./validate-names.ts";
import { versionErrors } from "./validate-version.ts";

const approvalAnnotation = "api-approved.kubernetes.io";

function groupErrors(manifest: JsonObject, errors: FieldError[]): void {
  const group = stringAt(manifest, "spec", "group") ?? "";
  if (group === "") errors.push(required("spec.group"));
  else if (!isDnsSubdomain(group)) {
    errors.push(
      invalid(
        "spec.group",
        group,
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
      ),
    );
  } else if (!group.includes(".")) {
    errors.push(invalid("spec.group", group, "should be a domain with at least one dot"));
  }
  const isProtected = /(^|\.)(k8s|kubernetes)\.io$/.test(group);
  if (!isProtected) return;
  const approval = stringAt(manifest, "metadata", "annotations", approvalAnnotation);
  const path = `metadata.annotations[${approvalAnnotation}]`;
  if (approval === undefined || approval === "") {
    errors.push(
      required(
        path,
        `protected groups must have approval annotation "${approvalAnnotation}", see https://github.com/kubernetes/enhancements/pull/1111`,
      ),
    );
  } else if (!approval.startsWith("unapproved") && !/^https?:\/\/[^/\s]+/.test(approval)) {
    errors.push(invalid(path, approval, "must be an absolute URL or start with unapproved"));
  }
}

function versionListErrors(versions: readonly JsonObject[], errors: FieldError[]): void {
  if (versions.length === 0) {
    errors.push(required("spec.versions", "must have at least one version"));
    return;
  }
  const names = versions.map((version) => stringAt(version, "name") ?? "");
  names.forEach((name, i) => {
    const path = child(indexed("spec.versions", i), "name");
    if (name === "") errors.push(required(path));
    else if (!isDns1035Label(name))
      errors.push(
        invalid(
          path,
          name,
          "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
        ),
      );
  });
  if (new Set(names).size !== names.length)
    errors.push(invalid("spec.versions", names, "must contain unique version names"));
  if (versions.filter((version) => own(version, "storage") === true).length !== 1)
    errors.push(invalid("spec.versions", names, "must have exactly one version marked as storage version"));
}

function storedVersionErrors(manifest: JsonObject, old: JsonObject | undefined, errors: FieldError[]): void {
  const given = at(manifest, "status", "storedVersions");
  const stored = Array.isArray(given) && given.length > 0 ? given : at(old, "status", "storedVersions");
  if (!Array.isArray(stored)) return;
  const names = new Set(crdVersions(manifest).map((version) => own(version, "name")));
  stored.forEach((value: unknown, i) => {
    if (names.has(value)) return;
    const name = typeof value === "string" ? value : printJson(value);
    const text = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    errors.push(invalid(indexed("status.storedVersions", i), value, text));
  });
}

function isEstablished(manifest: JsonObject): boolean {
  const conditions = at(manifest, "status", "conditions");
  return (
    Array.isArray(conditions) &&
    conditions.some((c: unknown) => stringAt(c, "type") === "Established" && stringAt(c, "status") === "True")
  );
}

function immutabilityErrors(manifest: JsonObject, old: JsonObject, errors: FieldError[]): void {
  const always: readonly (readonly string[])[] = [["group"], ["names", "plural"]];
  const onceEstablished: readonly (readonly string[])[] = [["scope"], ["names", "kind"]];
  for (const path of isEstablished(old) ? [...always, ...onceEstablished] : always) {
    const value = at(manifest, "spec", ...path);
    if (!equalJson(value, at(old, "spec", ...path)))
      errors.push(invalid(["spec", ...path].join("."), value, "field is immutable"));
  }
}

/**
 * What is wrong with `manifest`; `old` is the stored definition on an update. Empty when it may be stored.
 *
 * Schemas that are unchanged from `old` are not judged again, so that a definition stored under older rules
 * can still be updated.
 */
export function validateCrd(manifest: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const spec = own(manifest, "spec");
  if (!isObject(spec)) return [required("spec")];
  groupErrors(manifest, errors);
  const scope = own(spec, "scope");
  if (scope !== "Cluster" && scope !== "Namespaced") {
    errors.push(
      scope === undefined || scope === ""
        ? required("spec.scope")
        : notSupported("spec.scope", scope, ["Cluster", "Namespaced"]),
    );
  }
  errors.push(...nameErrors(manifest));
  if (own(spec, "preserveUnknownFields") === true) {
    errors.push(
      invalid(
        "spec.preserveUnknownFields",
        true,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
      ),
    );
  }
  const versions = crdVersions(manifest);
  versionListErrors(versions, errors);
  const before = new Map(crdVersions(old ?? {}).map((version) => [own(version, "name"), version]));
  versions.forEach((version, i) => {
    errors.push(...versionErrors(version, before.get(own(version, "name")), indexed("spec.versions", i)));
  });
  errors.push(...conversionErrors(own(spec, "conversion"), "spec.conversion"));
  storedVersionErrors(manifest, old, errors);
  if (old) immutabilityErrors(manifest, old, errors);
  return errors;
}
