/**
 * Printer columns of custom resources (apiextensions.k8s.io/v1 `additionalPrinterColumns`): the name, then
 * each column's JSONPath evaluated on the object; `Age` alone when none is declared.
 */
import { isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { TableColumn } from "../resource.ts";
import { isNumber, own, printJson } from "../schema/json-value.ts";
import { humanDuration } from "./human-duration.ts";
import { compileJsonPath, type JsonPath } from "./json-path.ts";

/** Column types of the API. */
export const columnTypes = ["integer", "number", "string", "boolean", "date"] as const;

type ColumnType = (typeof columnTypes)[number];

const isColumnType = (text: string): text is ColumnType => columnTypes.some((type) => type === text);

const nameDescription =
  "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically.";
const ageDescription = "Time since the object was created.";

const nameColumn: TableColumn = {
  name: "Name",
  type: "string",
  format: "name",
  description: nameDescription,
  priority: 0,
  cell: (object) => stringAt(object, "metadata", "name") ?? "",
};

function cellOf(type: ColumnType, value: unknown, now: number): unknown {
  if (value === null || value === undefined) return null;
  switch (type) {
    case "string":
      return typeof value === "string" ? value : printJson(value);
    case "integer":
      return typeof value === "bigint" ? value : typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return isNumber(value) ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date": {
      if (typeof value !== "string") return null;
      const at = Date.parse(value);
      return Number.isNaN(at) ? "<invalid>" : humanDuration(now - at);
    }
  }
}

function column(definition: JsonObject): TableColumn {
  const text = (key: string): string => stringAt(definition, key) ?? "";
  const type = text("type");
  const path: JsonPath = compileJsonPath(text("jsonPath"));
  const priority = own(definition, "priority");
  const columnType = isColumnType(type) ? type : "string";
  return {
    name: text("name"),
    type: columnType,
    format: text("format"),
    description:
      text("description") || `Custom resource definition column (in JSONPath format): ${text("jsonPath")}`,
    priority: typeof priority === "number" ? priority : 0,
    cell: (object, now) => cellOf(columnType, path(object)[0], now),
  };
}

/** The columns of one version. */
export function compileColumns(definitions: unknown): readonly TableColumn[] {
  const declared = Array.isArray(definitions) ? definitions.filter(isObject) : [];
  const age = {
    name: "Age",
    type: "date",
    jsonPath: ".metadata.creationTimestamp",
    description: ageDescription,
  };
  return [nameColumn, ...(declared.length > 0 ? declared : [age]).map((definition) => column(definition))];
}
