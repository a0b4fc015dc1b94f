/**
 * Runs an object through a built-in kind as the registry does, for tests of rules.
 */
import assert from "node:assert/strict";
import type { JsonObject } from "@kontinuum/std";
import type { FieldError, ResourceDefinition, StrategyContext } from "../resource.ts";
import { builtinResources } from "./index.ts";

/** A fixed request. */
export const context: StrategyContext = {
  user: { name: "jane", uid: "u1", groups: ["system:authenticated"], extra: { scope: ["a"] } },
  now: Date.parse("2026-01-01T00:00:00Z"),
  subresource: "",
};

/** The resource of `apiVersion/Kind`. */
export function resourceOf(apiVersion: string, kind: string): ResourceDefinition {
  const found = builtinResources().find(
    (resource) =>
      resource.kind === kind &&
      apiVersion === (resource.group === "" ? resource.version : `${resource.group}/${resource.version}`),
  );
  assert.ok(found, `${apiVersion} ${kind} is not served`);
  return found;
}

/** `field: message` of every error. */
export const texts = (errors: readonly FieldError[]): string[] =>
  errors.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`));

/** The outcome of a create or an update. */
export interface Outcome {
  readonly object: JsonObject;
  readonly errors: string[];
}

/** Creates an object: normalised, defaulted, prepared, validated. */
export function create(apiVersion: string, kind: string, body: JsonObject): Outcome {
  const resource = resourceOf(apiVersion, kind);
  const object: JsonObject = { apiVersion, kind, ...structuredClone(body) };
  object["metadata"] ??= {};
  Object.assign(object["metadata"] as JsonObject, { uid: "uid-1" });
  const given = body["metadata"];
  if (typeof given !== "object")
    Object.assign(object["metadata"] as JsonObject, { name: "x", namespace: "default" });
  assert.deepEqual(resource.prune(object), []);
  resource.applyDefaults(object);
  resource.prepareForCreate(object, context);
  return { object, errors: texts(resource.validateCreate(object, context)) };
}

/** Updates an object with another one of the same kind. */
export function update(old: JsonObject, body: JsonObject, subresource = ""): Outcome {
  const resource = resourceOf(String(old["apiVersion"]), String(old["kind"]));
  const object = structuredClone(body);
  assert.deepEqual(resource.prune(object), []);
  resource.applyDefaults(object);
  const request = { ...context, subresource };
  resource.prepareForUpdate(object, old, request);
  return { object, errors: texts(resource.validateUpdate(object, old, request)) };
}
