/**
 * Create: from a decoded body to a stored object.
 *
 * Order: type and place checks, pruning, defaults, managed fields, mutating admission, server-owned fields,
 * validation, validating admission, one conditional write.
 */
import { nameSuffix, type JsonObject } from "@kontinuum/std";
import { cloneJson } from "../json/json.ts";
import { updateManagedFields } from "../patch/index.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition, StrategyContext } from "../resource.ts";
import { plainText } from "../schema/json-value.ts";
import { alreadyExists, badRequest, invalid, StatusError } from "../status/status.ts";
import type { AdmissionRequest } from "../admission/admission.ts";
import { isDeleting } from "../watch-cache/entry.ts";
import type { RegistryDeps } from "./deps.ts";
import { otherVersions } from "./other-versions.ts";
import { reportFields } from "./field-strictness.ts";
import {
  claimForCreate,
  dedupeOwners,
  metadataErrors,
  metadataOf,
  metaText,
  normalizeMetadata,
  timestamp,
} from "./metadata.ts";
import type { WriteOptions } from "./options.ts";
import { apiVersionOf, withRevision } from "./resource-store.ts";

/** Names tried for one `generateName`. */
const maxNameTries = 8;
/** `generateName` is cut to this length before the suffix. */
const maxBaseLength = 58;

/** A create to carry out. */
export interface CreateRequest {
  readonly context: RequestContext;
  readonly resource: ResourceDefinition;
  readonly namespace: string;
  /** Changed in place. */
  readonly object: JsonObject;
  readonly duplicates: readonly string[];
  readonly options: WriteOptions;
  /** Managed fields are already computed (server-side apply). */
  readonly managed?: boolean;
  /** Unknown fields were already reported. */
  readonly pruned?: boolean;
}

/** Refuses a body whose type or place is not the route's. Fails with 400. */
export function checkTypeAndPlace(
  resource: ResourceDefinition,
  namespace: string,
  name: string,
  object: JsonObject,
): void {
  const apiVersion = apiVersionOf(resource);
  const { apiVersion: sentVersion, kind: sentKind } = object;
  if (sentVersion !== undefined && sentVersion !== "" && sentVersion !== apiVersion) {
    throw badRequest(
      `the API version in the data (${plainText(sentVersion)}) does not match the expected API version (${apiVersion})`,
    );
  }
  if (sentKind !== undefined && sentKind !== "" && sentKind !== resource.kind) {
    throw badRequest(
      `the kind in the data (${plainText(sentKind)}) does not match the expected kind (${resource.kind})`,
    );
  }
  if ((sentKind === undefined || sentVersion === undefined) && resource.origin === "custom") {
    throw badRequest(`Object 'Kind' is missing: apiVersion and kind must be set`);
  }
  object["apiVersion"] = apiVersion;
  object["kind"] = resource.kind;
  const metadata = metadataOf(object);
  const sentNamespace = metaText(object, "namespace");
  if (resource.namespaced) {
    if (sentNamespace !== "" && sentNamespace !== namespace) {
      throw badRequest(
        "the namespace of the provided object does not match the namespace sent on the request",
      );
    }
    metadata["namespace"] = namespace;
  } else if (sentNamespace !== "") {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const sentName = metaText(object, "name");
  if (name !== "" && sentName !== "" && sentName !== name) {
    throw badRequest(`the name of the object (${sentName}) does not match the name on the URL (${name})`);
  }
  if (name !== "") metadata["name"] = name;
}

/** What strategies learn of the request. */
export function strategyContext(
  deps: RegistryDeps,
  context: RequestContext,
  subresource: string,
): StrategyContext {
  return { user: context.user, now: deps.edges.clock.now(), subresource };
}

/** An object as it was stored (or would be, on a dry run). */
export interface Written {
  readonly object: JsonObject;
  /** See `Encoded` in resource-store.ts: what was made for the store is not made again for the answer. */
  readonly rest?: string | undefined;
}

/** Creates an object. */
export async function createObject(deps: RegistryDeps, request: CreateRequest): Promise<Written> {
  const { context, resource, namespace, options } = request;
  let { object } = request;
  normalizeMetadata(object);
  checkTypeAndPlace(resource, namespace, "", object);
  if (metaText(object, "resourceVersion") !== "") {
    throw new StatusError(500, "", "resourceVersion should not be set on objects to be created");
  }
  if (!request.pruned)
    reportFields(context, resource, options.fieldValidation, resource.prune(object), request.duplicates);
  resource.applyDefaults(object);
  claimForCreate(object);
  // The writer owns what it sent and its defaults, not what the server gives (a Job's selector, a Service's address).
  if (!request.managed) {
    object = await updateManagedFields({
      resource,
      before: undefined,
      after: object,
      manager: options.fieldManager,
      operation: "Update",
      subresource: "",
      now: timestamp(deps.edges.clock.now()),
      versions: otherVersions(deps, resource),
    });
  }
  const admission: AdmissionRequest = {
    operation: "CREATE",
    resource,
    subresource: "",
    namespace: resource.kind === "Namespace" ? metaText(object, "name") : namespace,
    name: metaText(object, "name"),
    object,
    oldObject: undefined,
    user: context.user,
    dryRun: options.dryRun,
    housekeeping: context.housekeeping,
    options: {
      kind: "CreateOptions",
      apiVersion: "meta.k8s.io/v1",
      ...(options.dryRun ? { dryRun: ["All"] } : {}),
      fieldManager: options.fieldManager,
      fieldValidation: options.fieldValidation,
    },
    warn: (text) => context.warn(text),
    annotate: (key, value) => (context.annotations[key] = value),
  };
  await deps.admission.mutate(admission);
  const mutated = admission.object ?? object;
  normalizeMetadata(mutated);
  if (mutated !== object) refine(resource, mutated);
  const base = metaText(mutated, "name") === "" ? metaText(mutated, "generateName") : "";
  const tries = base === "" ? 1 : maxNameTries;
  for (let attempt = 1; attempt <= tries; attempt++) {
    const candidate = attempt < tries ? cloneJson(mutated) : mutated;
    if (base !== "")
      metadataOf(candidate)["name"] = `${base.slice(0, maxBaseLength)}${nameSuffix(deps.edges.random)}`;
    const stored = await storeNew(deps, request, candidate, admission);
    if (stored) return stored;
  }
  const error = alreadyExists(resource, base === "" ? metaText(mutated, "name") : base);
  if (base === "") throw error;
  throw new StatusError(409, "AlreadyExists", error.message, { ...error.details, retryAfterSeconds: 1 });
}

/** What a webhook sent back obeys the schema like anything else. */
export function refine(resource: ResourceDefinition, object: JsonObject): void {
  resource.prune(object);
  resource.applyDefaults(object);
}

/** One attempt; `undefined` when the generated name is taken. */
async function storeNew(
  deps: RegistryDeps,
  request: CreateRequest,
  object: JsonObject,
  admission: AdmissionRequest,
): Promise<Written | undefined> {
  const { context, resource, namespace, options } = request;
  const strategy = strategyContext(deps, context, "");
  if (dedupeOwners(object))
    context.warn(
      ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests",
    );
  // Strategies see who the object is: a Job's pods are labelled with its uid.
  const metadata = metadataOf(object);
  metadata["uid"] = deps.edges.random.uuid();
  metadata["creationTimestamp"] = timestamp(strategy.now);
  resource.prepareForCreate(object, strategy);
  const name = metaText(object, "name");
  const errors = [...metadataErrors(object, resource), ...resource.validateCreate(object, strategy)];
  if (errors.length > 0) throw invalid(resource, name, errors);
  for (const text of resource.warnings(object)) context.warn(text);
  for (const guard of deps.guards)
    await guard({ context, resource, subresource: "", object, old: undefined });
  await deps.admission.validate({ ...admission, name, object });
  const store = deps.storage.of(resource);
  const key = store.key(namespace, name);
  if (options.dryRun) {
    const present = await store.read(key);
    if (!present) return { object };
    throw alreadyExists(resource, name);
  }
  const { value, rest } = await store.encode(resource, object);
  const written = await deps.storage.leases.bind(deps.ttlSeconds(resource), (lease) =>
    store.create(key, value, lease),
  );
  if (written.done) return { object: withRevision(object, written.revision), rest };
  if (metaText(object, "generateName") !== "" && metaText(request.object, "name") === "") return undefined;
  throw alreadyExists(resource, name, written.current !== undefined && isDeleting(written.current));
}
