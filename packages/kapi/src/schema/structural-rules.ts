/**
 * What makes a schema structural (apiextensions.k8s.io/v1): every field has a type outside of junctors, and
 * junctors hold value checks only. A schema that passes can be pruned, defaulted and merged unambiguously.
 */
import type { FieldError } from "../resource.ts";
import { child, forbidden, indexed, invalid, notSupported, required } from "./field-error.ts";
import { own } from "./json-value.ts";
import { listRules } from "./list-rules.ts";
import type { SchemaNode } from "./schema-node.ts";

type Level = "root" | "field" | "item";

const jsonTypes = ["array", "boolean", "integer", "number", "object", "string"];

const emptyTypeText: Readonly<Record<Level, string>> = {
  root: "must not be empty at the root",
  field: "must not be empty for specified object fields",
  item: "must not be empty for specified array items",
};

const isIntegerOrString = (alternatives: readonly SchemaNode[]): boolean =>
  alternatives.length === 2 &&
  alternatives[0]?.type === "integer" &&
  alternatives[1]?.type === "string" &&
  alternatives.every((node) => Object.keys(node.raw).length === 1);

function checkTypes(schema: SchemaNode, level: Level, path: string, errors: FieldError[]): void {
  const { type } = schema;
  const typePath = child(path, "type");
  if (type === "null") {
    errors.push(forbidden(typePath, "type cannot be set to null, use nullable as an alternative"));
  } else if (type !== "" && !jsonTypes.includes(type)) {
    errors.push(notSupported(typePath, type, jsonTypes));
  }
  if (type === "array" && !schema.items && !schema.preserveUnknown)
    errors.push(required(child(path, "items"), "must be specified"));
  if (schema.embedded && type !== "object") {
    const text = "must be object if x-kubernetes-embedded-resource is true";
    errors.push(type === "" ? required(typePath, text) : invalid(typePath, type, text));
  } else if (type === "" && !schema.intOrString && !schema.preserveUnknown) {
    errors.push(required(typePath, emptyTypeText[level]));
  }
  if (level === "root" && type !== "" && type !== "object")
    errors.push(invalid(typePath, type, "must be object at the root"));
}

function checkExtensions(schema: SchemaNode, path: string, errors: FieldError[]): void {
  const because = "must be false if x-kubernetes-int-or-string is true";
  if (own(schema.raw, "x-kubernetes-preserve-unknown-fields") === false)
    errors.push(
      invalid(child(path, "x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"),
    );
  if (schema.intOrString && schema.preserveUnknown)
    errors.push(invalid(child(path, "x-kubernetes-preserve-unknown-fields"), true, because));
  if (schema.intOrString && schema.embedded)
    errors.push(invalid(child(path, "x-kubernetes-embedded-resource"), true, because));
  if (schema.embedded && schema.additional)
    errors.push(
      forbidden(
        child(path, "additionalProperties"),
        "must not be used if x-kubernetes-embedded-resource is set",
      ),
    );
  if (schema.embedded && !schema.preserveUnknown && schema.properties.size === 0) {
    errors.push(
      required(
        child(path, "properties"),
        "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
      ),
    );
  }
  listRules(schema, path, errors);
}

function checkStandardFields(schema: SchemaNode, level: Level, path: string, errors: FieldError[]): void {
  if (level !== "root" && !schema.embedded) return;
  for (const name of ["kind", "apiVersion"]) {
    const property = schema.properties.get(name);
    if (property && property.type !== "string")
      errors.push(
        invalid(child(indexed(child(path, "properties"), name), "type"), property.type, "must be string"),
      );
  }
  const metadata = schema.properties.get("metadata");
  if (!metadata) return;
  const metadataPath = indexed(child(path, "properties"), "metadata");
  if (metadata.type !== "object")
    errors.push(invalid(child(metadataPath, "type"), metadata.type, "must be object"));
  if (level !== "root") return;
  const allowed = new Set(["type", "properties", "description", "title", "default"]);
  const isPlain =
    Object.keys(metadata.raw).every((key) => allowed.has(key)) &&
    [...metadata.properties.keys()].every((name) => name === "name" || name === "generateName");
  if (!isPlain) {
    errors.push(
      forbidden(
        metadataPath,
        "must not specify anything other than name and generateName, but metadata is implicitly specified",
      ),
    );
  }
}

function checkValues(schema: SchemaNode, path: string, errors: FieldError[]): void {
  if (schema.uniqueItems) {
    errors.push(
      forbidden(
        child(path, "uniqueItems"),
        "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
      ),
    );
  }
  if (schema.multipleOf !== undefined && schema.multipleOf <= 0)
    errors.push(invalid(child(path, "multipleOf"), schema.multipleOf, "must be greater than 0"));
}

/** Members of the raw schema that a junctor may not hold, with what it should be instead. */
const notInJunctors: readonly (readonly [string, string])[] = [
  ["type", "must be empty to be structural"],
  ["additionalProperties", "must be undefined to be structural"],
  ["default", "must be undefined to be structural"],
  ["title", "must be empty to be structural"],
  ["description", "must be empty to be structural"],
  ["nullable", "must be false to be structural"],
  ["x-kubernetes-preserve-unknown-fields", "must be false to be structural"],
  ["x-kubernetes-embedded-resource", "must be false to be structural"],
  ["x-kubernetes-int-or-string", "must be false to be structural"],
  ["x-kubernetes-list-type", "must be undefined to be structural"],
  ["x-kubernetes-list-map-keys", "must be empty to be structural"],
  ["x-kubernetes-map-type", "must be undefined to be structural"],
  ["x-kubernetes-validations", "must be empty to be structural"],
];

const isEmptyMember = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === "" ||
  value === false ||
  (Array.isArray(value) && value.length === 0);

/** Checks a schema inside a junctor of `outer`. */
function checkNested(
  nested: SchemaNode,
  outer: SchemaNode | undefined,
  path: string,
  outerPath: string,
  errors: FieldError[],
): void {
  for (const [name, text] of notInJunctors) {
    if (name === "default" ? own(nested.raw, name) !== undefined : !isEmptyMember(own(nested.raw, name)))
      errors.push(forbidden(child(path, name), text));
  }
  checkValues(nested, path, errors);
  checkJunctors(nested, outer, path, outerPath, errors);
  for (const [name, property] of nested.properties) {
    const at = indexed(child(path, "properties"), name);
    const outerAt = indexed(child(outerPath, "properties"), name);
    const declared = outer?.properties.get(name) ?? outer?.additional;
    if (outer && !declared) errors.push(required(outerAt, `because it is defined in ${at}`));
    checkNested(property, declared, at, outerAt, errors);
  }
  if (nested.items) {
    const at = child(path, "items");
    const outerAt = child(outerPath, "items");
    if (outer && !outer.items) errors.push(required(outerAt, `because it is defined in ${at}`));
    checkNested(nested.items, outer?.items, at, outerAt, errors);
  }
}

function checkJunctors(
  schema: SchemaNode,
  outer: SchemaNode | undefined,
  path: string,
  outerPath: string,
  errors: FieldError[],
): void {
  const [first] = schema.allOf;
  const isPatternInAllOf =
    schema.intOrString &&
    first !== undefined &&
    Object.keys(first.raw).length === 1 &&
    isIntegerOrString(first.anyOf);
  const isPatternInAnyOf = schema.intOrString && isIntegerOrString(schema.anyOf);
  schema.allOf.forEach((nested, i) => {
    if (i === 0 && isPatternInAllOf) return;
    checkNested(nested, outer, indexed(child(path, "allOf"), i), outerPath, errors);
  });
  schema.anyOf.forEach((nested, i) => {
    if (!isPatternInAnyOf) checkNested(nested, outer, indexed(child(path, "anyOf"), i), outerPath, errors);
  });
  schema.oneOf.forEach((nested, i) => {
    checkNested(nested, outer, indexed(child(path, "oneOf"), i), outerPath, errors);
  });
  if (schema.not) checkNested(schema.not, outer, child(path, "not"), outerPath, errors);
}

function check(schema: SchemaNode, level: Level, path: string, errors: FieldError[]): void {
  checkTypes(schema, level, path, errors);
  checkExtensions(schema, path, errors);
  checkStandardFields(schema, level, path, errors);
  checkValues(schema, path, errors);
  checkJunctors(schema, schema, path, path, errors);
  const additionalPath = child(path, "additionalProperties");
  if (schema.additionalAllowed === false)
    errors.push(forbidden(additionalPath, "additionalProperties cannot be set to false"));
  if (schema.additional || schema.additionalAllowed === true) {
    if (level === "root") errors.push(forbidden(additionalPath, "must not be used at the root"));
    if (schema.properties.size > 0)
      errors.push(forbidden(additionalPath, "additionalProperties and properties are mutual exclusive"));
  }
  if (schema.additional) check(schema.additional, "field", additionalPath, errors);
  for (const [name, property] of schema.properties)
    check(property, "field", indexed(child(path, "properties"), name), errors);
  if (schema.items) check(schema.items, "item", child(path, "items"), errors);
}

/** What keeps `schema` from being structural; `path` is its place in the definition. */
export function structuralErrors(schema: SchemaNode, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  check(schema, "root", path, errors);
  return errors;
}
