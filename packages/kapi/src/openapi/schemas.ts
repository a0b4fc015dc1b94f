/**
 * OpenAPI schemas of the published types, named as upstream names them (`io.k8s.api.apps.v1.Deployment`).
 */
import type { JsonObject } from "@kontinuum/std";
import type { Message } from "../codec/messages.ts";
import type { GroupVersionKind } from "../resource.ts";

/** A kind's schema and every schema it refers to. */
export interface SchemaSet {
  readonly name: string;
  readonly schemas: Readonly<Record<string, JsonObject>>;
}

/** The schemas of a kind. */
export function schemasOf(message: Message, kind: GroupVersionKind): SchemaSet {
  const name = `io.k8s.${message.name}`;
  return { name, schemas: { [name]: { type: "object", "x-kubernetes-group-version-kind": [{ ...kind }] } } };
}
