/**
 * Reading a normalised object: the value at a path, or the type's empty value when the path leads nowhere.
 * Normalisation has checked the types, so an absent value is the only surprise left.
 */
import { cloneJson } from "../json/json.ts";
import { at, isObject, type JsonObject } from "@kontinuum/std";

type Path = readonly (string | number)[];

/** The text at a path, else empty. */
export function text(value: unknown, ...path: Path): string {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
}

/** The number at a path, else zero. */
export function number(value: unknown, ...path: Path): number {
  const found = at(value, ...path);
  return typeof found === "number" ? found : typeof found === "bigint" ? Number(found) : 0;
}

/** Whether the value at a path is `true`. */
export const isTrue = (value: unknown, ...path: Path): boolean => at(value, ...path) === true;

/** Whether there is a value at a path that is not null. */
export function has(value: unknown, ...path: Path): boolean {
  const found = at(value, ...path);
  return found !== undefined && found !== null;
}

/** The objects of the list at a path. */
export function items(value: unknown, ...path: Path): JsonObject[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.filter(isObject) : [];
}

/** The texts of the list at a path. */
export function texts(value: unknown, ...path: Path): string[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.filter((item) => typeof item === "string") : [];
}

/** The object at a path, else `undefined`. */
export function child(value: unknown, ...path: Path): JsonObject | undefined {
  const found = at(value, ...path);
  return isObject(found) ? found : undefined;
}

/** The entries of the map at a path. */
export const entries = (value: unknown, ...path: Path): [string, unknown][] =>
  Object.entries(child(value, ...path) ?? {});

/** The object at a key, made when it is missing. */
export function ensure(object: JsonObject, key: string): JsonObject {
  const found = object[key];
  if (isObject(found)) return found;
  const made: JsonObject = {};
  object[key] = made;
  return made;
}

/**
 * Sets keys that are absent. An empty text that is there was said by the client (Go's pointer to ""): it is left for the
 * checks; see {@link setEmptyDefaults}.
 */
export function setDefaults(object: JsonObject, values: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(values)) {
    const found = object[key];
    if (found === undefined || found === null)
      object[key] = typeof value === "object" ? cloneJson(value) : value;
  }
}

/** Sets texts that are absent or empty, where Go has no pointer and prints what is not set as "". */
export function setEmptyDefaults(object: JsonObject, values: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(values)) if (text(object, key) === "") object[key] = value;
}
