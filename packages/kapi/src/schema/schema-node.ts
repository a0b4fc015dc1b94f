/**
 * A JSONSchemaProps tree (apiextensions.k8s.io/v1) parsed into a typed record that every later step walks:
 * pruning, defaulting, validation, merge structure, CEL types, OpenAPI.
 *
 * Parsing is the bound: a tree deeper or larger than the named limits, or one whose members have the wrong
 * JSON type, is refused here, before anything is compiled. Whether a well-formed tree is *structural* is
 * decided by `structural-rules.ts`.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import { child, forbidden, indexed, typeInvalid } from "./field-error.ts";
import { isInteger, isNumber, own } from "./json-value.ts";

/** Deepest nesting of schemas. Real definitions stay below 30. */
export const maxSchemaDepth = 100;

/** Most schema nodes of one version. The largest public definitions have about 10,000. */
export const maxSchemaNodes = 100_000;

/** One `x-kubernetes-validations` entry. */
export interface ValidationRule {
  readonly rule: string;
  readonly message: string;
  readonly messageExpression: string;
  readonly reason: string;
  readonly fieldPath: string;
  readonly optionalOldSelf: boolean | undefined;
}

/** One node of a schema. Absent strings are `""`, absent collections are empty. */
export interface SchemaNode {
  /** The JSON the node was parsed from. */
  readonly raw: JsonObject;
  readonly type: string;
  readonly format: string;
  readonly nullable: boolean;
  readonly preserveUnknown: boolean;
  readonly embedded: boolean;
  readonly intOrString: boolean;
  readonly listType: string;
  readonly listMapKeys: readonly string[];
  readonly mapType: string;
  readonly properties: ReadonlyMap<string, SchemaNode>;
  /** `additionalProperties` as a schema. */
  readonly additional: SchemaNode | undefined;
  /** `additionalProperties` as a boolean. */
  readonly additionalAllowed: boolean | undefined;
  readonly items: SchemaNode | undefined;
  /** `undefined` when there is no default; a default of `null` is `null`. */
  readonly default: unknown;
  readonly required: readonly string[];
  readonly enum: readonly unknown[] | undefined;
  readonly minimum: number | bigint | undefined;
  readonly maximum: number | bigint | undefined;
  readonly exclusiveMinimum: boolean;
  readonly exclusiveMaximum: boolean;
  readonly multipleOf: number | bigint | undefined;
  readonly minLength: number | undefined;
  readonly maxLength: number | undefined;
  readonly minItems: number | undefined;
  readonly maxItems: number | undefined;
  readonly minProperties: number | undefined;
  readonly maxProperties: number | undefined;
  readonly uniqueItems: boolean;
  readonly pattern: string;
  readonly allOf: readonly SchemaNode[];
  readonly anyOf: readonly SchemaNode[];
  readonly oneOf: readonly SchemaNode[];
  readonly not: SchemaNode | undefined;
  readonly rules: readonly ValidationRule[];
}

const forbiddenMembers = [
  "$ref",
  "id",
  "$id",
  "definitions",
  "dependencies",
  "patternProperties",
  "additionalItems",
];

/** Reads members of one JSON object, noting those of the wrong type. */
class Members {
  readonly #json: JsonObject;
  readonly #path: string;
  readonly #errors: FieldError[];

  constructor(json: JsonObject, path: string, errors: FieldError[]) {
    this.#json = json;
    this.#path = path;
    this.#errors = errors;
  }

  #read<T>(name: string, is: (value: unknown) => value is T, expected: string): T | undefined {
    const value = own(this.#json, name);
    if (value === undefined || value === null) return undefined;
    if (is(value)) return value;
    this.#errors.push(typeInvalid(child(this.#path, name), value, `must be ${expected}`));
    return undefined;
  }

  string(name: string): string {
    return this.#read(name, (v): v is string => typeof v === "string", "a string") ?? "";
  }

  boolean(name: string): boolean | undefined {
    return this.#read(name, (v): v is boolean => typeof v === "boolean", "a boolean");
  }

  number(name: string): number | bigint | undefined {
    return this.#read(name, isNumber, "a number");
  }

  size(name: string): number | undefined {
    const value = this.#read(name, isInteger, "an integer");
    return value === undefined ? undefined : Number(value);
  }

  strings(name: string): readonly string[] {
    const is = (v: unknown): v is readonly string[] =>
      Array.isArray(v) && v.every((item) => typeof item === "string");
    return this.#read(name, is, "an array of strings") ?? [];
  }

  array(name: string): readonly unknown[] | undefined {
    return this.#read(name, (v): v is readonly unknown[] => Array.isArray(v), "an array");
  }

  object(name: string): JsonObject | undefined {
    return this.#read(name, isObject, "an object");
  }
}

/** Parses schema trees, counting nodes over all calls. */
class SchemaParser {
  readonly #errors: FieldError[];
  #nodes = 0;
  #tooLarge = false;

  constructor(errors: FieldError[]) {
    this.#errors = errors;
  }

  parse(value: unknown, path: string, depth: number): SchemaNode | undefined {
    if (this.#tooLarge) return undefined;
    if (depth > maxSchemaDepth || ++this.#nodes > maxSchemaNodes) {
      this.#tooLarge = true;
      this.#errors.push(
        forbidden(
          path,
          `schema is too large: at most ${maxSchemaDepth} levels and ${maxSchemaNodes} nodes are supported`,
        ),
      );
      return undefined;
    }
    if (!isObject(value)) {
      this.#errors.push(typeInvalid(path, value, "must be an object"));
      return undefined;
    }
    for (const name of forbiddenMembers) {
      const member = own(value, name);
      const isEmpty = member === undefined || member === null || member === "" || member === false;
      if (isEmpty || (isObject(member) && Object.keys(member).length === 0)) continue;
      this.#errors.push(forbidden(child(path, name), `${name} is not supported`));
    }
    const members = new Members(value, path, this.#errors);
    const one = (name: string): SchemaNode | undefined => {
      const member = own(value, name);
      return member === undefined || member === null
        ? undefined
        : this.parse(member, child(path, name), depth + 1);
    };
    const many = (name: string): readonly SchemaNode[] =>
      (members.array(name) ?? []).flatMap(
        (item, i) => this.parse(item, indexed(child(path, name), i), depth + 1) ?? [],
      );
    const properties = new Map<string, SchemaNode>();
    for (const [name, schema] of Object.entries(members.object("properties") ?? {})) {
      const node = this.parse(schema, indexed(child(path, "properties"), name), depth + 1);
      if (node) properties.set(name, node);
    }
    const additional = own(value, "additionalProperties");
    return {
      raw: value,
      type: members.string("type"),
      format: members.string("format"),
      nullable: members.boolean("nullable") ?? false,
      preserveUnknown: members.boolean("x-kubernetes-preserve-unknown-fields") ?? false,
      embedded: members.boolean("x-kubernetes-embedded-resource") ?? false,
      intOrString: members.boolean("x-kubernetes-int-or-string") ?? false,
      listType: members.string("x-kubernetes-list-type"),
      listMapKeys: members.strings("x-kubernetes-list-map-keys"),
      mapType: members.string("x-kubernetes-map-type"),
      properties,
      additional: typeof additional === "boolean" ? undefined : one("additionalProperties"),
      additionalAllowed: typeof additional === "boolean" ? additional : undefined,
      items: this.#items(own(value, "items"), child(path, "items"), depth),
      default: own(value, "default"),
      required: members.strings("required"),
      enum: members.array("enum"),
      minimum: members.number("minimum"),
      maximum: members.number("maximum"),
      exclusiveMinimum: members.boolean("exclusiveMinimum") ?? false,
      exclusiveMaximum: members.boolean("exclusiveMaximum") ?? false,
      multipleOf: members.number("multipleOf"),
      minLength: members.size("minLength"),
      maxLength: members.size("maxLength"),
      minItems: members.size("minItems"),
      maxItems: members.size("maxItems"),
      minProperties: members.size("minProperties"),
      maxProperties: members.size("maxProperties"),
      uniqueItems: members.boolean("uniqueItems") ?? false,
      pattern: members.string("pattern"),
      allOf: many("allOf"),
      anyOf: many("anyOf"),
      oneOf: many("oneOf"),
      not: one("not"),
      rules: this.#rules(
        members.array("x-kubernetes-validations") ?? [],
        child(path, "x-kubernetes-validations"),
      ),
    };
  }

  #items(value: unknown, path: string, depth: number): SchemaNode | undefined {
    if (value === undefined || value === null) return undefined;
    if (Array.isArray(value)) {
      this.#errors.push(forbidden(path, "items must be a schema object and not an array"));
      return undefined;
    }
    return this.parse(value, path, depth + 1);
  }

  #rules(values: readonly unknown[], path: string): readonly ValidationRule[] {
    return values.flatMap((value, i) => {
      const at = indexed(path, i);
      if (!isObject(value)) {
        this.#errors.push(typeInvalid(at, value, "must be an object"));
        return [];
      }
      const members = new Members(value, at, this.#errors);
      return {
        rule: members.string("rule"),
        message: members.string("message"),
        messageExpression: members.string("messageExpression"),
        reason: members.string("reason"),
        fieldPath: members.string("fieldPath"),
        optionalOldSelf: members.boolean("optionalOldSelf"),
      };
    });
  }
}

/** Parses a schema at `path`; what is wrong is appended to `errors`. `undefined` when nothing usable is left. */
export function parseSchema(value: unknown, path: string, errors: FieldError[]): SchemaNode | undefined {
  return new SchemaParser(errors).parse(value, path, 0);
}
