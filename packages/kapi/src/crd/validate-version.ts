/**
 * One entry of `spec.versions`: its schema, columns, subresources and selectable fields.
 */
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import { defaultErrors } from "../schema/default-rules.ts";
import { child, duplicate, indexed, invalid, required, tooMany } from "../schema/field-error.ts";
import { equalJson, own } from "../schema/json-value.ts";
import { patternErrors } from "../schema/pattern-rules.ts";
import { ruleErrors } from "../schema/rule-limits.ts";
import { parseSchema, type SchemaNode } from "../schema/schema-node.ts";
import { structuralErrors } from "../schema/structural-rules.ts";
import { columnTypes } from "./columns.ts";
import { compileJsonPath, JsonPathError, simplePath } from "./json-path.ts";

/** Most selectable fields of one version. */
const maxSelectableFields = 8;

/** Most errors reported for one schema. */
const maxSchemaErrors = 100;

const columnFormats = ["int32", "int64", "float", "double", "byte", "date", "date-time", "password"];

function schemaErrors(
  version: JsonObject,
  old: JsonObject | undefined,
  path: string,
): {
  readonly errors: readonly FieldError[];
  readonly schema: SchemaNode | undefined;
} {
  const wrapper = own(version, "schema");
  const raw = isObject(wrapper) ? own(wrapper, "openAPIV3Schema") : undefined;
  const schemaPath = child(child(path, "schema"), "openAPIV3Schema");
  if (!isObject(raw)) return { errors: [required(schemaPath, "schemas are required")], schema: undefined };
  let errors: FieldError[] = [];
  const schema = parseSchema(raw, schemaPath, errors);
  if (!schema || errors.length > 0) return { errors: errors.slice(0, maxSchemaErrors), schema: undefined };
  if (old && equalJson(raw, at(old, "schema", "openAPIV3Schema"))) return { errors, schema };
  errors = [...structuralErrors(schema, schemaPath), ...patternErrors(schema, schemaPath)];
  // Defaults and rules are judged by what they stand in, so that must be sound first.
  if (errors.length === 0) errors = [...defaultErrors(schema, schemaPath), ...ruleErrors(schema, schemaPath)];
  return { errors: errors.slice(0, maxSchemaErrors), schema };
}

function columnErrors(column: unknown, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  const text = (name: string): string => stringAt(column, name) ?? "";
  if (text("name") === "") errors.push(required(child(path, "name")));
  const type = text("type");
  if (type === "") errors.push(required(child(path, "type"), `must be one of ${columnTypes.join(",")}`));
  else if (!columnTypes.some((known) => known === type))
    errors.push(invalid(child(path, "type"), type, `must be one of ${columnTypes.join(",")}`));
  const format = text("format");
  if (format !== "" && !columnFormats.includes(format))
    errors.push(invalid(child(path, "format"), format, `must be one of ${columnFormats.join(",")}`));
  const jsonPath = text("jsonPath");
  if (jsonPath === "") errors.push(required(child(path, "jsonPath")));
  else {
    try {
      compileJsonPath(jsonPath);
    } catch (error) {
      if (!(error instanceof JsonPathError)) throw error;
      errors.push(invalid(child(path, "jsonPath"), jsonPath, `is not a valid JSONPath: ${error.message}`));
    }
  }
  return errors;
}

function scalePathErrors(
  scale: JsonObject,
  name: string,
  roots: readonly string[],
  isRequired: boolean,
  path: string,
): readonly FieldError[] {
  const text = stringAt(scale, name) ?? "";
  const at = child(path, name);
  if (text === "") return isRequired ? [required(at)] : [];
  const names = simplePath(text);
  if (!names) return [invalid(at, text, "should be a simple json path")];
  const under = roots.map((root) => `.${root}`).join(" or ");
  if (names.length < 2 || !roots.includes(names[0] ?? ""))
    return [invalid(at, text, `should be a json path under ${under}`)];
  return [];
}

function subresourceErrors(subresources: unknown, path: string): readonly FieldError[] {
  if (!isObject(subresources)) return [];
  const scale = own(subresources, "scale");
  if (!isObject(scale)) return [];
  const scalePath = child(path, "scale");
  const errors = [
    ...scalePathErrors(scale, "specReplicasPath", ["spec"], true, scalePath),
    ...scalePathErrors(scale, "statusReplicasPath", ["status"], true, scalePath),
    ...scalePathErrors(scale, "labelSelectorPath", ["spec", "status"], false, scalePath),
  ];
  return errors;
}

function selectableErrors(
  fields: unknown,
  schema: SchemaNode | undefined,
  path: string,
): readonly FieldError[] {
  if (!Array.isArray(fields)) return [];
  const errors: FieldError[] = [];
  if (fields.length > maxSelectableFields) errors.push(tooMany(path, fields.length, maxSelectableFields));
  const seen = new Set<string>();
  fields.slice(0, maxSelectableFields).forEach((field: unknown, i) => {
    const jsonPath = stringAt(field, "jsonPath") ?? "";
    const at = child(indexed(path, i), "jsonPath");
    if (jsonPath === "") {
      errors.push(required(at));
      return;
    }
    if (seen.has(jsonPath)) errors.push(duplicate(at, jsonPath));
    seen.add(jsonPath);
    const names = simplePath(jsonPath);
    if (!names)
      errors.push(invalid(at, jsonPath, "is an invalid path: must be a simple json path with a leading dot"));
    else if (names[0] === "metadata")
      errors.push(invalid(at, jsonPath, "must not point to fields in metadata"));
    else if (schema) {
      const found = names.reduce<SchemaNode | undefined>((node, name) => node?.properties.get(name), schema);
      const isScalar = found && ["string", "boolean", "integer"].includes(found.type);
      if (!found) errors.push(invalid(at, jsonPath, "is an invalid path: does not refer to a valid field"));
      else if (!isScalar)
        errors.push(
          invalid(
            at,
            jsonPath,
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
          ),
        );
    }
  });
  return errors;
}

/** What is wrong with one version; an unchanged schema is not judged again. */
export function versionErrors(
  version: JsonObject,
  old: JsonObject | undefined,
  path: string,
): readonly FieldError[] {
  const { errors: schemaProblems, schema } = schemaErrors(version, old, path);
  const errors: FieldError[] = [...schemaProblems];
  const columns = own(version, "additionalPrinterColumns");
  if (Array.isArray(columns)) {
    const columnsPath = child(path, "additionalPrinterColumns");
    columns.forEach((column: unknown, i) => errors.push(...columnErrors(column, indexed(columnsPath, i))));
  }
  errors.push(
    ...subresourceErrors(own(version, "subresources"), child(path, "subresources")),
    ...selectableErrors(own(version, "selectableFields"), schema, child(path, "selectableFields")),
  );
  const warning = own(version, "deprecationWarning");
  if (typeof warning === "string") {
    const warningPath = child(path, "deprecationWarning");
    if (own(version, "deprecated") !== true)
      errors.push(invalid(warningPath, warning, "can only be set for deprecated versions"));
    if (warning.length === 0 || warning.length > 256)
      errors.push(invalid(warningPath, warning, "must be between 1 and 256 characters"));
  }
  return errors;
}
