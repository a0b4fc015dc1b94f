/**
 * Validation by a schema (apiextensions.k8s.io/v1 value validations), compiled once into closures, with the
 * error texts and field paths of the Kubernetes API.
 *
 * With an old value, validation ratchets: a subtree that equals the old object's subtree is not looked at
 * again. Map lists are matched by their keys, other lists only as a whole.
 *
 * CEL rules and list-type uniqueness are checked elsewhere, by walks of their own.
 */
import { isObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import {
  child,
  indexed,
  invalid,
  notSupported,
  required,
  tooLong,
  tooMany,
  typeInvalid,
} from "./field-error.ts";
import { Findings } from "./findings.ts";
import { stringFormat } from "./formats.ts";
import { printGoFloat } from "./go-print.ts";
import { equalJson, isInteger, isNumber, printJson } from "./json-value.ts";
import { mapListKey } from "./list-type.ts";
import { compilePattern } from "./pattern.ts";
import type { SchemaNode } from "./schema-node.ts";

/** Stands for "no old value corresponds to this place". */
export const uncorrelated = Symbol("no corresponding old value");

/** Checks a value at `path`; `old` is the corresponding old value or {@link uncorrelated}. */
export type Validator = (value: unknown, old: unknown, path: string, found: Findings) => void;

type Check = (value: unknown, path: string, found: Findings) => void;

/** The name a message uses for the place: upstream prints `.` for the root. */
const place = (path: string): string => `${path} in body`;

function jsonType(value: unknown): { readonly name: string; readonly format: string } {
  if (value === null || value === undefined) return { name: "null", format: "" };
  if (Array.isArray(value)) return { name: "array", format: "" };
  if (isInteger(value)) return { name: "integer", format: "int64" };
  if (typeof value === "number") return { name: "number", format: "double" };
  return { name: typeof value, format: "" };
}

function typeCheck(schema: SchemaNode): Check {
  // A type beside int-or-string narrows it: upstream asks for both.
  const types = schema.type !== "" ? [schema.type] : schema.intOrString ? ["integer", "string"] : [];
  if (types.length === 0) return () => undefined;
  const allowed = new Set(types);
  if (schema.nullable) allowed.add("null");
  if (allowed.has("number")) allowed.add("integer");
  const expected = types.join(",");
  return (value, path, found) => {
    const { name, format } = jsonType(value);
    if (allowed.has(name)) return;
    const usesFormat = schema.format !== "" && name !== "string" && name !== "array" && name !== "null";
    const [wanted, actual] = usesFormat ? [schema.format, format] : [expected, name];
    found.push(
      typeInvalid(path, actual, `${place(path)} must be of type ${wanted}: ${JSON.stringify(actual)}`),
    );
  };
}

/** Code points, counted only when the cheap bound does not decide. */
function runeCount(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Length and pattern of a text, in this order: the first that fails is said. */
function textProblems(
  schema: SchemaNode,
): readonly ((text: string, path: string, found: Findings) => FieldError | undefined)[] {
  const { minLength, maxLength, pattern } = schema;
  const compiled = pattern === "" ? undefined : compilePattern(pattern);
  return [
    ...(maxLength === undefined
      ? []
      : [
          (text: string, path: string) =>
            text.length > maxLength && runeCount(text) > maxLength ? tooLong(path, maxLength) : undefined,
        ]),
    ...(minLength === undefined
      ? []
      : [
          (text: string, path: string) =>
            text.length < minLength * 2 && runeCount(text) < minLength
              ? invalid(path, text, `${place(path)} should be at least ${minLength} chars long`)
              : undefined,
        ]),
    ...(compiled === undefined
      ? []
      : [
          (text: string, path: string, found: Findings) => {
            const should = `${place(path)} should match '${pattern}'`;
            if ("error" in compiled)
              return invalid(path, text, `${should}, but pattern is invalid: ${compiled.error}`);
            return (found.patterns.test(compiled, text) ?? false) ? undefined : invalid(path, text, should);
          },
        ]),
  ];
}

function stringChecks(schema: SchemaNode): readonly Check[] {
  const checks: Check[] = [];
  const { format } = schema;
  const add = (check: (text: string, path: string, found: Findings) => void): void => {
    checks.push((value, path, found) => {
      if (typeof value === "string") check(value, path, found);
    });
  };
  const problems = textProblems(schema);
  if (problems.length > 0) {
    add((text, path, found) => {
      for (const problem of problems) {
        const error = problem(text, path, found);
        if (error === undefined) continue;
        found.push(error);
        return;
      }
    });
  }
  const hasFormat = format === "" ? undefined : stringFormat(format);
  if (hasFormat) {
    add((text, path, found) => {
      if (!hasFormat(text))
        found.push(
          typeInvalid(path, text, `${place(path)} must be of type ${format}: ${JSON.stringify(text)}`),
        );
    });
  }
  return checks;
}

/** True when `value` is a multiple of `step`, exactly for integers, within rounding for fractions. */
function isMultiple(value: number | bigint, step: number | bigint): boolean {
  if (isInteger(value) && isInteger(step)) return BigInt(step) !== 0n && BigInt(value) % BigInt(step) === 0n;
  const quotient = Number(value) / Number(step);
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.max(1, Math.abs(quotient));
}

/** Failures that name their place in the text only: upstream reports them at the nil path. */
const atNowhere = (detail: string): FieldError => invalid("<nil>", "", detail);

const integerRanges: ReadonlyMap<string, readonly [bigint, bigint]> = new Map([
  ["int32", [-(2n ** 31n), 2n ** 31n - 1n]],
  ["int64", [-(2n ** 63n), 2n ** 63n - 1n]],
  ["uint32", [0n, 2n ** 32n - 1n]],
  ["uint64", [0n, 2n ** 64n - 1n]],
]);
const defaultRange: readonly [bigint, bigint] = [-(2n ** 63n), 2n ** 63n - 1n];
const singlePrecision = new Set(["float", "float32"]);

/**
 * Whether a number fits its type and format, `undefined` when there is nothing to check: integers without a format fit
 * 64 bits, and `double` holds every number a body can carry.
 */
function fitsFormat({ type, format }: SchemaNode): ((value: number | bigint) => boolean) | undefined {
  if (type === "integer") {
    const [min, max] = integerRanges.get(format) ?? defaultRange;
    return (value) => !isInteger(value) || (value >= min && value <= max);
  }
  if (singlePrecision.has(format)) return (value) => Number.isFinite(Math.fround(Number(value)));
  return undefined;
}

/** Upstream reports these at the nil path; naming the field is more use to whoever has to mend it. */
function rangeCheck(schema: SchemaNode): Check | undefined {
  const fits = fitsFormat(schema);
  if (!fits) return undefined;
  const type = schema.type === "" ? "number" : schema.type;
  const wanted = schema.format === "" ? `${type} (default format)` : `${type} with format ${schema.format}`;
  return (value, path, found) => {
    if (isNumber(value) && !fits(value))
      found.push(invalid(path, value, `Checked value must be of type ${wanted} in ${path}`));
  };
}

function numberChecks(schema: SchemaNode): readonly Check[] {
  const checks: Check[] = [];
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const add = (holds: (value: number | bigint) => boolean, detail: string): void => {
    checks.push((value, path, found) => {
      if (isNumber(value) && !holds(value))
        found.push(invalid(path, value, `${place(path)} should be ${detail}`));
    });
  };
  if (multipleOf !== undefined)
    add((v) => isMultiple(v, multipleOf), `a multiple of ${printGoFloat(multipleOf)}`);
  if (maximum !== undefined) {
    if (exclusiveMaximum) add((v) => v < maximum, `less than ${printGoFloat(maximum)}`);
    else add((v) => v <= maximum, `less than or equal to ${printGoFloat(maximum)}`);
  }
  if (minimum !== undefined) {
    if (exclusiveMinimum) add((v) => v > minimum, `greater than ${printGoFloat(minimum)}`);
    else add((v) => v >= minimum, `greater than or equal to ${printGoFloat(minimum)}`);
  }
  const range = rangeCheck(schema);
  if (range) checks.push(range);
  return checks;
}

function sizeChecks(schema: SchemaNode): readonly Check[] {
  const checks: Check[] = [];
  const { minItems, maxItems, minProperties, maxProperties, uniqueItems } = schema;
  const addArray = (check: (items: readonly unknown[], path: string, found: Findings) => void): void => {
    checks.push((value, path, found) => {
      if (Array.isArray(value)) check(value, path, found);
    });
  };
  const addObject = (check: (size: number, path: string, found: Findings) => void): void => {
    checks.push((value, path, found) => {
      if (isObject(value)) check(Object.keys(value).length, path, found);
    });
  };
  if (maxItems !== undefined) {
    addArray((items, path, found) => {
      if (items.length > maxItems) found.push(tooMany(path, items.length, maxItems));
    });
  }
  if (minItems !== undefined) {
    addArray((items, path, found) => {
      if (items.length < minItems)
        found.push(invalid(path, items.length, `${place(path)} should have at least ${minItems} items`));
    });
  }
  if (uniqueItems) {
    addArray((items, path, found) => {
      if (new Set(items.map((item) => printJson(item, true))).size !== items.length)
        found.push(invalid(path, items, `${place(path)} shouldn't contain duplicates`));
    });
  }
  if (maxProperties !== undefined) {
    addObject((size, path, found) => {
      if (size > maxProperties) found.push(tooMany(path, size, maxProperties));
    });
  }
  if (minProperties !== undefined) {
    addObject((size, path, found) => {
      if (size < minProperties)
        found.push(invalid(path, size, `${place(path)} should have at least ${minProperties} properties`));
    });
  }
  return checks;
}

function enumCheck(allowed: readonly unknown[]): Check {
  const scalars = new Set(allowed.filter((item) => typeof item !== "object" || item === null));
  const structured = allowed.filter((item) => typeof item === "object" && item !== null);
  const texts = allowed.map((item) => (typeof item === "string" ? item : printJson(item)));
  return (value, path, found) => {
    if (scalars.has(value) || structured.some((item) => equalJson(item, value))) return;
    found.push(notSupported(path, value, texts));
  };
}

/** Errors of the alternative that came closest: the one with the fewest. */
function closest(attempts: readonly (readonly FieldError[])[]): readonly FieldError[] {
  return attempts.reduce((best, errors) => (errors.length < best.length ? errors : best), attempts[0] ?? []);
}

function junctorCheck(schema: SchemaNode): Validator | undefined {
  const allOf = schema.allOf.map(compileValidator);
  const anyOf = schema.anyOf.map(compileValidator);
  const oneOf = schema.oneOf.map(compileValidator);
  const not = schema.not ? compileValidator(schema.not) : undefined;
  if (allOf.length + anyOf.length + oneOf.length === 0 && !not) return undefined;
  const attempt = (
    validators: readonly Validator[],
    value: unknown,
    old: unknown,
    path: string,
    outer: Findings,
  ): readonly (readonly FieldError[])[] =>
    validators.map((validate) => {
      const own = outer.fork();
      validate(value, old, path, own);
      return own.errors;
    });
  const countValid = (attempts: readonly (readonly FieldError[])[]): number =>
    attempts.filter((errors) => errors.length === 0).length;
  return (value, old, path, found) => {
    const name = JSON.stringify(path);
    if (anyOf.length > 0) {
      const attempts = attempt(anyOf, value, old, path, found);
      if (countValid(attempts) === 0)
        found.push(atNowhere(`${name} must validate at least one schema (anyOf)`), ...closest(attempts));
    }
    if (oneOf.length > 0) {
      const attempts = attempt(oneOf, value, old, path, found);
      const valid = countValid(attempts);
      if (valid !== 1) {
        const how = valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`;
        found.push(atNowhere(`${name} must validate one and only one schema (oneOf). ${how}`));
        if (valid === 0) found.push(...closest(attempts));
      }
    }
    if (allOf.length > 0) {
      const attempts = attempt(allOf, value, old, path, found);
      const valid = countValid(attempts);
      if (valid !== allOf.length) {
        const none = valid === 0 ? ". None validated" : "";
        found.push(...attempts.flat(), atNowhere(`${name} must validate all the schemas (allOf)${none}`));
      }
    }
    if (not && countValid(attempt([not], value, old, path, found)) === 1)
      found.push(atNowhere(`${name} must not validate the schema (not)`));
  };
}

function arrayChild(schema: SchemaNode): Validator | undefined {
  if (!schema.items) return undefined;
  const validate = compileValidator(schema.items);
  return (value, old, path, found) => {
    if (!Array.isArray(value)) return;
    const oldItems = correlateItems(schema, old);
    for (let i = 0; i < value.length && !found.isFull; i++) {
      const item: unknown = value[i];
      validate(item, oldItems(item), indexed(path, i), found);
    }
  };
}

/** Finds the old item that corresponds to a new one: by key in map lists, never in other lists. */
export function correlateItems(schema: SchemaNode, old: unknown): (item: unknown) => unknown {
  if (schema.listType !== "map" || !Array.isArray(old)) return () => uncorrelated;
  const byKey = new Map<string, unknown>();
  for (const item of old) {
    const key = mapListKey(schema, item);
    if (key !== undefined && !byKey.has(key)) byKey.set(key, item);
  }
  return (item) => {
    const key = mapListKey(schema, item);
    return key !== undefined && byKey.has(key) ? byKey.get(key) : uncorrelated;
  };
}

/** The old value of a map's key, or {@link uncorrelated}. */
export function correlateKey(old: unknown, key: string): unknown {
  return isObject(old) && Object.hasOwn(old, key) ? old[key] : uncorrelated;
}

function objectChild(schema: SchemaNode): Validator | undefined {
  const properties = new Map([...schema.properties].map(([name, node]) => [name, compileValidator(node)]));
  const additional = schema.additional && compileValidator(schema.additional);
  const isClosed = schema.additionalAllowed === false;
  if (properties.size === 0 && !additional && !isClosed && schema.required.length === 0) return undefined;
  return (value, old, path, found) => {
    if (!isObject(value)) return;
    for (const name of schema.required)
      if (!Object.hasOwn(value, name)) found.push(required(child(path, name)));
    for (const key of Object.keys(value)) {
      if (found.isFull) return;
      const validate = properties.get(key) ?? additional;
      if (validate) validate(value[key], correlateKey(old, key), child(path, key), found);
      else if (isClosed) found.push(invalid(path, "", `${child(path, key)} in body is a forbidden property`));
    }
  };
}

/** Compiles `schema` into a validator. */
export function compileValidator(schema: SchemaNode): Validator {
  const own: Check[] = [typeCheck(schema)];
  if (schema.enum) own.push(enumCheck(schema.enum));
  own.push(...stringChecks(schema), ...numberChecks(schema), ...sizeChecks(schema));
  const deep = [junctorCheck(schema), arrayChild(schema), objectChild(schema)].filter((v) => v !== undefined);
  return (value, old, path, found) => {
    if (found.isFull) return;
    if (old !== uncorrelated && equalJson(value, old)) return;
    for (const check of own) check(value, path, found);
    if (value === null) return;
    for (const validate of deep) validate(value, old, path, found);
  };
}

/** Validates a whole value; with `old`, unchanged subtrees are skipped. */
export function validateValue(
  validator: Validator,
  value: unknown,
  path = "",
  old: unknown = uncorrelated,
): readonly FieldError[] {
  const found = new Findings();
  validator(value, old, path, found);
  return found.errors;
}
