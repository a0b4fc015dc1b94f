/**
 * `spec.names` and `metadata.name` of a definition.
 */
import { stringAt, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import { indexed, invalid, required } from "../schema/field-error.ts";
import { crdNames } from "./compile-crd.ts";

const labelText =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/** DNS-1035 label: like a DNS label, but starting with a letter. */
export function isDns1035Label(text: string): boolean {
  return text.length <= 63 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(text);
}

/** What is wrong with the names of a definition. */
export function nameErrors(manifest: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const names = crdNames(manifest);
  const label = (path: string, text: string): void => {
    if (text === "") errors.push(required(path));
    else if (!isDns1035Label(text)) errors.push(invalid(path, text, labelText));
  };
  label("spec.names.plural", names.plural);
  label("spec.names.singular", names.singular);
  names.shortNames.forEach((name, i) => label(indexed("spec.names.shortNames", i), name));
  names.categories.forEach((name, i) => label(indexed("spec.names.categories", i), name));
  for (const [path, kind] of [
    ["spec.names.kind", names.kind],
    ["spec.names.listKind", names.listKind],
  ] as const) {
    if (kind === "") errors.push(required(path));
    else if (!isDns1035Label(kind.toLowerCase()))
      errors.push(invalid(path, kind, `may have mixed case, but should otherwise match: ${labelText}`));
  }
  if (names.kind !== "" && names.kind === names.listKind)
    errors.push(invalid("spec.names.listKind", names.listKind, "kind and listKind may not be the same"));
  const name = stringAt(manifest, "metadata", "name") ?? "";
  const group = stringAt(manifest, "spec", "group") ?? "";
  if (name !== `${names.plural}.${group}`)
    errors.push(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'));
  return errors;
}
