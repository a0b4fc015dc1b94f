/**
 * One event in two groups: `events.k8s.io/v1` names the fields of the core event anew. Events are stored in
 * the core form (Kubernetes API reference, "Event v1" and "Event v1 events.k8s.io").
 */
import type { JsonObject } from "@kontinuum/std";
import { message } from "../codec/messages.ts";
import { fillAbsent } from "../codec/zero.ts";

/** events.k8s.io name to core name; all other fields have one name. */
const renamed: readonly (readonly [string, string])[] = [
  ["regarding", "involvedObject"],
  ["note", "message"],
  ["reportingController", "reportingComponent"],
  ["deprecatedSource", "source"],
  ["deprecatedFirstTimestamp", "firstTimestamp"],
  ["deprecatedLastTimestamp", "lastTimestamp"],
  ["deprecatedCount", "count"],
];
const toCore = new Map(renamed);
const toEvents = new Map(renamed.map(([events, core]) => [core, events]));

function rename(
  object: JsonObject,
  names: ReadonlyMap<string, string>,
  apiVersion: string,
  type: string,
): JsonObject {
  const made: JsonObject = {};
  for (const [key, value] of Object.entries(object)) {
    // A null is what Go prints for a time nobody set; the other form has its own way to say so.
    if (value !== null) made[names.get(key) ?? key] = value;
  }
  made.apiVersion = apiVersion;
  fillAbsent(message(type), made);
  return made;
}

/** The core form of an event of either group. */
export const toCoreEvent = (event: JsonObject): JsonObject =>
  event.apiVersion === "v1" ? event : rename(event, toCore, "v1", "api.core.v1.Event");

/** The `events.k8s.io/v1` form of a core event. */
export const toEventsEvent = (event: JsonObject): JsonObject =>
  event.apiVersion === "events.k8s.io/v1"
    ? event
    : rename(event, toEvents, "events.k8s.io/v1", "api.events.v1.Event");
