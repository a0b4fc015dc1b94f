/**
 * The JSON of a type's zero value, as Go's encoder prints it: a field that may not be left out appears even
 * when nobody set it (`status: {}`, `name: ""`, `items: null`).
 */
import type { JsonObject } from "@kontinuum/std";
import type { Field, Message } from "./messages.ts";
import { specialMessages } from "./special.ts";

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

/** A field that JSON shows although nobody set it. */
interface Shown {
  readonly json: string;
  /** A value that may be shared, or how to make one. */
  readonly value: unknown;
  readonly make: Message | undefined;
}

const shownFields = new Map<Message, readonly Shown[]>();

function shownOf(message: Message): readonly Shown[] {
  const known = shownFields.get(message);
  if (known !== undefined) return known;
  const shown: Shown[] = [];
  for (const field of message.fields) {
    if (field.json === null) {
      if (field.inline && "message" in field.value) shown.push(...shownOf(field.value.message));
      continue;
    }
    const value = absent(field);
    if (value === undefined) continue;
    const make =
      typeof value === "object" && value !== null && "message" in field.value
        ? field.value.message
        : undefined;
    shown.push({ json: field.json, value, make });
  }
  shownFields.set(message, shown);
  return shown;
}

/** Adds to an object what JSON shows for the fields it lacks. */
export function fillAbsent(message: Message, object: JsonObject): void {
  for (const { json, value, make } of shownOf(message)) {
    if (object[json] !== undefined && Object.hasOwn(object, json)) continue;
    object[json] = make === undefined ? value : zeroOf(make);
  }
}
