/**
 * Defaults in a definition: each must be pruned and valid by its own schema, and there is none in the metadata
 * of resources, where the server decides.
 */
import type { FieldError } from "../resource.ts";
import { child, forbidden, indexed, invalid } from "./field-error.ts";
import { cloneJson } from "./json-value.ts";
import { prune } from "./prune.ts";
import type { SchemaNode } from "./schema-node.ts";
import { compileUniqueness } from "./list-type.ts";
import { compileValidator, validateValue } from "./validate.ts";

function checkDefault(schema: SchemaNode, path: string, errors: FieldError[]): void {
  const at = child(path, "default");
  const value = schema.default;
  if (value === null) {
    if (!schema.nullable) errors.push(invalid(at, null, "must not be null unless nullable is true"));
    return;
  }
  const pruned = cloneJson(value);
  if (prune(pruned, schema).length > 0) errors.push(invalid(at, value, "must not have unknown fields"));
  errors.push(...validateValue(compileValidator(schema), value, at));
  compileUniqueness(schema)?.(value, at, errors);
}

function check(
  schema: SchemaNode,
  path: string,
  isResource: boolean,
  inMetadata: boolean,
  errors: FieldError[],
): void {
  if (schema.default !== undefined) {
    if (inMetadata) errors.push(forbidden(child(path, "default"), "must not be set in top-level metadata"));
    else checkDefault(schema, path, errors);
  }
  for (const [name, property] of schema.properties) {
    const isMetadata = isResource && name === "metadata";
    check(
      property,
      indexed(child(path, "properties"), name),
      property.embedded,
      inMetadata || isMetadata,
      errors,
    );
  }
  if (schema.additional)
    check(
      schema.additional,
      child(path, "additionalProperties"),
      schema.additional.embedded,
      inMetadata,
      errors,
    );
  if (schema.items) check(schema.items, child(path, "items"), schema.items.embedded, inMetadata, errors);
}

/** What is wrong with the defaults below `schema`, the root of a resource. */
export function defaultErrors(schema: SchemaNode, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  check(schema, path, true, false, errors);
  return errors;
}
