/**
 * Shapes: small checks of unknown JSON that end in a typed value.
 *
 * A shape says what a type promises and nothing more: fields it does not name are kept and not looked
 * at, so an object read through it can be written back without loss. Building a value of the type is
 * not its business, and neither are defaults.
 */
import { isObject } from "@kontinuum/std";
import type { KubeObject, ObjectMeta, OwnerReference } from "./object.ts";

/** Names what is wrong with `value`, or `undefined` when it conforms. `path` is where the value stands. */
export interface Shape<T> {
  (value: unknown, path: string): string | undefined;
  /** The type that is promised; never set. */
  readonly promises?: T;
}

/** A shape that an absent (or null) field satisfies too. */
export interface OptionalShape<T> extends Shape<T> {
  readonly optional: true;
}

/** A shape for every field of `T`: optional fields need {@link optional}. */
export type FieldShapes<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K>
    ? OptionalShape<Exclude<T[K], undefined>>
    : Shape<T[K]>;
};

/** Whether `value` conforms, as a type guard. */
export function conforms<T>(shape: Shape<T>, value: unknown): value is T {
  return shape(value, "") === undefined;
}

/** What is wrong with `value`, or `undefined`. */
export function problemOf(shape: Shape<unknown>, value: unknown): string | undefined {
  return shape(value, "");
}

const primitive =
  <T>(name: string, article: string): Shape<T> =>
  (value, path) =>
    typeof value === name ? undefined : `${path || "it"} is not ${article} ${name}`;

/** Any string. */
export const string: Shape<string> = primitive("string", "a");
/** Any number. */
export const number: Shape<number> = primitive("number", "a");
/** `true` or `false`. */
export const boolean: Shape<boolean> = primitive("boolean", "a");
/** Anything at all. */
export const unknown: Shape<unknown> = () => undefined;
/** A number or a string (Kubernetes `IntOrString`). */
export const intOrString: Shape<number | string> = (value, path) =>
  typeof value === "number" || typeof value === "string" ? undefined : `${path} is neither number nor string`;

/** One of the given strings. */
export function oneOf<const T extends string>(...values: readonly T[]): Shape<T> {
  const known = new Set<unknown>(values);
  return (value, path) => (known.has(value) ? undefined : `${path} is not one of ${values.join(", ")}`);
}

/** Lets a field be absent. JSON's null counts as absent, as Kubernetes decoders read it. */
export function optional<T>(shape: Shape<T>): OptionalShape<T> {
  const check = (value: unknown, path: string): string | undefined =>
    value === undefined || value === null ? undefined : shape(value, path);
  return Object.assign(check, { optional: true as const });
}

/** An array whose items conform. */
export function list<T>(item: Shape<T>): Shape<T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path} is not a list`;
    for (let i = 0; i < value.length; i++) {
      const problem = item(value[i], `${path}[${i}]`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
}

/** An object used as a map from names to values that conform. */
export function map<T>(item: Shape<T>): Shape<Record<string, T>> {
  return (value, path) => {
    if (!isObject(value)) return `${path} is not an object`;
    for (const key of Object.keys(value)) {
      const problem = item(value[key], `${path}.${key}`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
}

/** An object with these fields, and possibly others. */
export function object<T extends object>(fields: FieldShapes<T>): Shape<T> {
  const checks = Object.entries<Shape<unknown>>(fields);
  return (value, path) => {
    if (!isObject(value)) return `${path || "it"} is not an object`;
    for (const [name, check] of checks) {
      const problem = check(value[name], path === "" ? name : `${path}.${name}`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
}

const ownerReference = object<OwnerReference>({
  apiVersion: string,
  kind: string,
  name: string,
  uid: string,
  controller: optional(boolean),
  blockOwnerDeletion: optional(boolean),
});

/** Object metadata. */
export const objectMeta: Shape<ObjectMeta> = object<ObjectMeta>({
  name: string,
  generateName: optional(string),
  namespace: optional(string),
  uid: optional(string),
  resourceVersion: optional(string),
  generation: optional(number),
  creationTimestamp: optional(string),
  deletionTimestamp: optional(string),
  deletionGracePeriodSeconds: optional(number),
  labels: optional(map(string)),
  annotations: optional(map(string)),
  ownerReferences: optional(list(ownerReference)),
  finalizers: optional(list(string)),
  managedFields: optional(list(map(unknown))),
});

/** The fields every kind has, to be spread into the shape of one. */
export const kubeObject: FieldShapes<KubeObject> = {
  apiVersion: string,
  kind: string,
  metadata: objectMeta,
};
