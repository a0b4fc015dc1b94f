/**
 * What the verbs of the registry share: storage, admission, edges and the few decisions made elsewhere.
 */
import type { Edges, JsonObject } from "@kontinuum/std";
import type { AdmissionChain } from "../admission/admission.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import type { ResourceSet } from "./resource-set.ts";
import type { ObjectStorage } from "./storage.ts";

/** A check that must hold inside a write, beyond admission (RBAC escalation, CRD rules). Throws a `StatusError`. */
export type WriteGuard = (write: {
  readonly context: RequestContext;
  readonly resource: ResourceDefinition;
  readonly subresource: string;
  readonly object: JsonObject;
  readonly old: JsonObject | undefined;
}) => Promise<void>;

/** Shared parts of all verbs. */
export interface RegistryDeps {
  readonly edges: Edges;
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  readonly admission: AdmissionChain;
  readonly guards: readonly WriteGuard[];
  /** Seconds an object of this resource lives after its last write; 0 for ever. */
  ttlSeconds(resource: ResourceDefinition): number;
  /** Fails with 403 when the user may not also do `verb` to what the request names: an upsert creates, too. */
  authorize(context: RequestContext, verb: string): Promise<void>;
}
