/**
 * JSON values as CEL sees them through their schema: wrapped lazily, integers exact, texts of the time and
 * byte formats parsed, undeclared fields invisible, associative lists compared by identity.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import {
  CelDuration,
  CelTimestamp,
  CelError,
  type CelList,
  type CelMap,
  type CelValue,
} from "../cel/index.ts";
import { parseRfc3339 } from "../cel/timestamp.ts";
import { escapeName, reservedName } from "./cel-type.ts";
import { parseGoDuration } from "./formats.ts";
import { mapListKey } from "./list-type.ts";
import { isInteger, isNumber, printJson } from "./json-value.ts";
import type { SchemaNode } from "./schema-node.ts";

interface ListIdentity {
  readonly kind: "set" | "map";
  keyOf(item: CelValue): string;
}

/** Values made by {@link celValue} remember their JSON, which identifies items of associative lists. */
const sources = new WeakMap<object, unknown>();

class SchemaList implements CelList {
  readonly isList = true;
  readonly #items: readonly unknown[];
  readonly #schema: SchemaNode | undefined;
  readonly #made: CelValue[] = [];
  readonly identity?: ListIdentity;

  constructor(items: readonly unknown[], schema: SchemaNode) {
    this.#items = items;
    this.#schema = schema.items;
    if (schema.listType === "set" || schema.listType === "map")
      this.identity = identityOf(schema, schema.listType);
  }

  get length(): number {
    return this.#items.length;
  }

  at(index: number): CelValue {
    let item = this.#made[index];
    if (item === undefined) {
      item = celValue(this.#items[index], this.#schema);
      this.#made[index] = item;
    }
    return item;
  }
}

function identityOf(schema: SchemaNode, kind: "set" | "map"): ListIdentity {
  return {
    kind,
    keyOf(item) {
      const json = typeof item === "object" && item !== null ? sources.get(item) : item;
      const key = kind === "map" ? mapListKey(schema, json) : printJson(json, true);
      return key ?? "";
    },
  };
}

/** Field names in CEL to names in JSON, per schema. */
const fieldNames = new WeakMap<SchemaNode, ReadonlyMap<string, string>>();

function fieldsOf(schema: SchemaNode): ReadonlyMap<string, string> {
  let names = fieldNames.get(schema);
  if (!names) {
    const made = new Map<string, string>();
    for (const name of schema.properties.keys()) {
      const escaped = escapeName(name);
      if (escaped !== undefined) made.set(escaped, name);
    }
    names = made;
    fieldNames.set(schema, names);
  }
  return names;
}

class SchemaObject implements CelMap {
  readonly isMap = true;
  readonly objectType = "object";
  readonly #object: JsonObject;
  readonly #schema: SchemaNode;
  readonly #isResource: boolean;
  /** Members looked at: a container is wrapped once, so what it has counted and listed is kept. */
  readonly #made = new Map<string, CelValue>();

  constructor(object: JsonObject, schema: SchemaNode, isResource: boolean) {
    this.#object = object;
    this.#schema = schema;
    this.#isResource = isResource;
  }

  #names(): readonly string[] {
    const names = [...fieldsOf(this.#schema)].flatMap(([escaped, name]) =>
      Object.hasOwn(this.#object, name) ? [escaped] : [],
    );
    if (!this.#isResource) return names;
    return [
      ...new Set([
        ...names,
        ...["apiVersion", "kind", "metadata"].filter((n) => Object.hasOwn(this.#object, n)),
      ]),
    ];
  }

  get size(): number {
    return this.#names().length;
  }

  get(key: CelValue): CelValue | undefined {
    if (typeof key !== "string") return undefined;
    if (this.#isResource && (key === "apiVersion" || key === "kind" || key === "metadata"))
      return this.#standard(key);
    const made = this.#made.get(key);
    if (made !== undefined) return made;
    const names = fieldsOf(this.#schema);
    const name = names.get(key) ?? names.get(reservedName(key) ?? "");
    if (name === undefined || !Object.hasOwn(this.#object, name)) return undefined;
    const value = celValue(this.#object[name], this.#schema.properties.get(name));
    this.#made.set(key, value);
    return value;
  }

  #standard(key: string): CelValue | undefined {
    if (!Object.hasOwn(this.#object, key)) return undefined;
    const value = this.#object[key];
    if (key !== "metadata") return typeof value === "string" ? value : undefined;
    return isObject(value) ? new MetadataObject(value) : undefined;
  }

  keys(): readonly CelValue[] {
    return this.#names();
  }
}

/** Of a resource's metadata rules see the name only. */
class MetadataObject implements CelMap {
  readonly isMap = true;
  readonly objectType = "object";
  readonly #object: JsonObject;

  constructor(object: JsonObject) {
    this.#object = object;
  }

  keys(): readonly CelValue[] {
    return ["name", "generateName"].filter((key) => Object.hasOwn(this.#object, key));
  }

  get size(): number {
    return this.keys().length;
  }

  get(key: CelValue): CelValue | undefined {
    const isVisible = (key === "name" || key === "generateName") && Object.hasOwn(this.#object, key);
    const value = isVisible ? this.#object[key] : undefined;
    return typeof value === "string" ? value : undefined;
  }
}

class SchemaMap implements CelMap {
  readonly isMap = true;
  readonly #object: JsonObject;
  readonly #values: SchemaNode;
  readonly #made = new Map<string, CelValue>();
  #keys: readonly string[] | undefined;

  constructor(object: JsonObject, values: SchemaNode) {
    this.#object = object;
    this.#values = values;
  }

  get size(): number {
    return this.keys().length;
  }

  get(key: CelValue): CelValue | undefined {
    if (typeof key !== "string") return undefined;
    const made = this.#made.get(key);
    if (made !== undefined) return made;
    if (!Object.hasOwn(this.#object, key)) return undefined;
    const value = celValue(this.#object[key], this.#values);
    this.#made.set(key, value);
    return value;
  }

  keys(): readonly CelValue[] {
    return (this.#keys ??= Object.keys(this.#object));
  }
}

function textValue(text: string, format: string): CelValue {
  switch (format) {
    case "byte":
      return Buffer.from(text, "base64");
    case "duration": {
      const ns = parseGoDuration(text);
      if (ns === undefined) throw new CelError(`invalid duration ${JSON.stringify(text.slice(0, 64))}`);
      return new CelDuration(ns);
    }
    case "date":
    case "date-time": {
      const ns = parseRfc3339(format === "date" ? `${text}T00:00:00Z` : text);
      if (ns === undefined) throw new CelError(`invalid ${format} ${JSON.stringify(text.slice(0, 64))}`);
      return new CelTimestamp(ns);
    }
  }
  return text;
}

/** What the checker was told holds: unchanged values that were stored under an older schema may be of another type. */
function fits(value: unknown, schema: SchemaNode): boolean {
  if (schema.intOrString) return typeof value === "string" || isInteger(value);
  switch (schema.type) {
    case "integer":
      return isInteger(value);
    case "number":
      return isNumber(value);
    case "string":
    case "boolean":
      return typeof value === schema.type;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    default:
      return true;
  }
}

/** `value` seen through `schema`; `isResource` adds apiVersion, kind and the names in metadata. */
export function celValue(value: unknown, schema: SchemaNode | undefined, isResource = false): CelValue {
  if (value === null || value === undefined || !schema) return null;
  if (!fits(value, schema)) throw new CelError("value does not have the type of its schema");
  switch (typeof value) {
    case "boolean":
    case "bigint":
      return value;
    case "number":
      if (schema.type === "number" || !Number.isInteger(value)) return value;
      return BigInt(value);
    case "string":
      return schema.type === "string" ? textValue(value, schema.format) : value;
  }
  let made: CelList | CelMap;
  if (Array.isArray(value)) made = new SchemaList(value, schema);
  else if (!isObject(value)) return null;
  else if (schema.additional) made = new SchemaMap(value, schema.additional);
  else made = new SchemaObject(value, schema, isResource || schema.embedded);
  sources.set(made, value);
  return made;
}
