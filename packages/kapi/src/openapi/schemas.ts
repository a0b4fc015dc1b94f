/**
 * The OpenAPI schemas of a built-in kind: its own, its list's, and every type they refer to.
 */
import type { JsonObject } from "@kontinuum/std";
import { close } from "./definitions.ts";

/** A kind's schema and every schema it refers to. */
export interface SchemaSet {
  readonly name: string;
  readonly schemas: Readonly<Record<string, JsonObject>>;
}

/** The schemas of the messages (table names) of a kind: the first is the kind itself. */
export function schemasOf(messages: readonly [string, ...string[]]): SchemaSet {
  const names = messages.map((message) => `io.k8s.${message}`);
  return { name: `io.k8s.${messages[0]}`, schemas: close({}, names) };
}
