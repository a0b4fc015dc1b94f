/**
 * The JSON of a type's zero value, as Go's encoder prints it: a field that may not be left out appears even
 * when nobody set it (`status: {}`, `name: ""`, `items: null`).
 */
import type { JsonObject } from "@kontinuum/std";
import type { Field, Message } from "./messages.ts";
import { specialMessages } from "./special.ts";

/** Sets a key that came from outside; `__proto__` becomes an own property like any other. */
export function setKey(object: JsonObject, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else object[key] = value;
}

/** What JSON shows for a field that was never set; `undefined` when it is left out. */
export function absent(field: Field): unknown {
  if (field.pointer || field.shape !== "single") return field.omitEmpty ? undefined : null;
  if ("message" in field.value) {
    if (field.omitZero) return undefined;
    return zeroOf(field.value.message);
  }
  if (field.omitEmpty) return undefined;
  switch (field.value.scalar) {
    case "string":
      return "";
    case "bool":
      return false;
    case "bytes":
      return null;
    default:
      return 0;
  }
}

/** JSON of the zero value of a message: a new value each time. */
export function zeroOf(message: Message): unknown {
  const special = specialMessages.get(message.name);
  if (special !== undefined) return special.zero;
  const object: JsonObject = {};
  fillAbsent(message, object);
  return object;
}

/** Adds to an object what JSON shows for the fields it lacks. */
export function fillAbsent(message: Message, object: JsonObject): void {
  for (const field of message.fields) {
    if (field.json === null) {
      if (field.inline && "message" in field.value) fillAbsent(field.value.message, object);
    } else if (!Object.hasOwn(object, field.json)) {
      const value = absent(field);
      if (value !== undefined) object[field.json] = value;
    }
  }
}
