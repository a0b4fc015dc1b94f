/**
 * Naming and addressing objects: keys, references, REST paths, resource versions.
 *
 * A {@link Resource} is the only thing the client needs to know of a kind. `resource({...})` fills in
 * what can be derived and adds the checks every kind shares: the right kind, a name, well-formed
 * metadata. What `spec` and `status` must look like is the caller's `shape`.
 *
 * Source: Kubernetes API concepts ("API resource URIs", "Resource versions").
 */
import { CodedError, isObject } from "@kontinuum/std";
import type { KubeObject, Resource } from "./object.ts";
import { conforms, problemOf, type Shape } from "./shape.ts";

/** Names one object of a kind. */
export interface ObjectRef {
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** What {@link resource} is given. */
export interface ResourceOptions<T extends KubeObject> {
  /** Empty string for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  /** Default true. */
  readonly namespaced?: boolean;
  /** Checks everything beyond kind and metadata that the type promises. Unknown fields are always kept. */
  readonly shape: Shape<T>;
}

/** A {@link Resource} whose `parse` checks kind, metadata and shape, and keeps unknown fields. */
export function resource<T extends KubeObject>(options: ResourceOptions<T>): Resource<T> {
  const { group, version, kind, plural, namespaced = true, shape } = options;
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return {
    group,
    version,
    kind,
    plural,
    namespaced,
    parse(value) {
      if (!isObject(value)) throw unreadable(kind, "it is not an object");
      // Items of a list of a built-in kind come without kind and apiVersion.
      const whole = { ...value, apiVersion: value["apiVersion"] ?? apiVersion, kind: value["kind"] ?? kind };
      if (whole.kind !== kind || whole.apiVersion !== apiVersion) {
        throw unreadable(kind, `it is a ${String(whole.apiVersion)} ${String(whole.kind)}`);
      }
      if (conforms(shape, whole)) return whole;
      throw unreadable(kind, problemOf(shape, whole) ?? "it does not conform");
    },
  };
}

function unreadable(kind: string, why: string): CodedError {
  return new CodedError("data_loss", `this is not a readable ${kind}: ${why}`);
}

/** `v1` or `group/version`. */
export function apiVersionOf(target: Resource): string {
  return target.group === "" ? target.version : `${target.group}/${target.version}`;
}

/** `configmaps` or `deployments.apps`: how Kubernetes names a resource in messages. */
export function resourceName(target: Resource): string {
  return target.group === "" ? target.plural : `${target.plural}.${target.group}`;
}

/** Path of the collection; without `namespace` of all namespaces. */
export function collectionPath(target: Resource, namespace?: string): string {
  const root = target.group === "" ? `/api/${target.version}` : `/apis/${target.group}/${target.version}`;
  if (!target.namespaced || namespace === undefined) return `${root}/${target.plural}`;
  return `${root}/namespaces/${encodeURIComponent(namespace)}/${target.plural}`;
}

/** Path of one object or of its subresource. Fails with `invalid_argument` when name or namespace is missing. */
export function objectPath(target: Resource, ref: ObjectRef, subresource?: string): string {
  if (ref.name === "") throw new CodedError("invalid_argument", `${resourceName(target)}: a name is needed`);
  if (target.namespaced && !ref.namespace) {
    throw new CodedError(
      "invalid_argument",
      `${resourceName(target)} ${JSON.stringify(ref.name)}: a namespace is needed`,
    );
  }
  const path = `${collectionPath(target, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** `namespace/name`, or `name` for cluster-scoped objects: the key of caches and work queues. */
export function keyOf(object: { readonly metadata: ObjectRef }): string {
  return refKey(object.metadata);
}

/** The key of a reference. */
export function refKey(ref: ObjectRef): string {
  return ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name;
}

/** The reference of an object. */
export function refOf(object: KubeObject): ObjectRef {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? { name } : { namespace, name };
}

/** The reference behind a key made by {@link keyOf}. */
export function parseKey(key: string): ObjectRef {
  const slash = key.indexOf("/");
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/**
 * Orders two resource versions: negative when `a` is older. They are decimal numbers without bound on
 * length; an absent one is older than any other.
 */
export function compareVersions(a: string | undefined, b: string | undefined): number {
  const left = a ?? "";
  const right = b ?? "";
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : left > right ? 1 : 0;
}

/** A deep copy of a JSON value: what a cache hands out, so that a caller's change never reaches the cache. */
export function cloneJson<T>(value: T): T;
export function cloneJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => cloneJson(item));
  if (!isObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const key in value) copy[key] = cloneJson(value[key]);
  return copy;
}
