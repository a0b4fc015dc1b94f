/**
 * A served resource as data plus a few functions: what the registry, discovery, OpenAPI, tables and
 * patches need to know of a kind, built-in or custom.
 *
 * `kinds/` makes one for every built-in kind and version, `crd/` compiles one for every served version of
 * a CustomResourceDefinition. Everything behind the request pipeline works on this record and never asks
 * which of the two it has.
 *
 * JSON values: integers beyond 2^53 are `bigint` (see `json/`); all other numbers are `number`.
 */
import type { JsonObject } from "@kontinuum/std";
import type { UserInfo } from "./contract.ts";

/** Verbs as discovery lists them. */
export type Verb = "create" | "delete" | "deletecollection" | "get" | "list" | "patch" | "update" | "watch";

/** A group, version and kind. */
export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** One field that is wrong (Kubernetes field errors: kubernetes-api Status causes). */
export interface FieldError {
  readonly reason:
    | "FieldValueInvalid"
    | "FieldValueRequired"
    | "FieldValueNotSupported"
    | "FieldValueDuplicate"
    | "FieldValueForbidden"
    | "FieldValueTooLong"
    | "FieldValueTooMany"
    | "FieldValueNotFound"
    | "FieldValueTypeInvalid"
    | "InternalError";
  /** Path such as `spec.containers[0].image`. */
  readonly field: string;
  /** Text after the path, e.g. `Required value: must be set`. */
  readonly message: string;
}

/**
 * The merge structure of a type: which maps, lists and scalars merge how. Strategic merge patch and
 * server-side apply read it. Lazily resolved, because types are recursive (JSONSchemaProps).
 */
export type TypeNode =
  | { readonly type: "scalar" }
  /** Structure unknown: maps granular, lists atomic (deduced types of server-side apply). */
  | { readonly type: "untyped" }
  | {
      readonly type: "map";
      /** `x-kubernetes-map-type: atomic`. */
      readonly atomic: boolean;
      /** The known field's node, else the node of additional properties, else `undefined` (unknown field). */
      field(name: string): TypeNode | undefined;
      /**
       * True when `name` is a declared field, false when it is a key of an open map (which server-side apply owns
       * by itself). Absent: every known name is declared, unless the type knows any name at all.
       */
      declares?(name: string): boolean;
      /** Strategic merge: keys kept with `retainKeys`. */
      readonly retainKeys?: boolean;
      /** Strategic merge: the whole map is replaced (`x-kubernetes-patch-strategy: replace`). */
      readonly replace?: boolean;
    }
  | {
      readonly type: "list";
      /** `x-kubernetes-list-type`. */
      readonly listType: "atomic" | "set" | "map";
      /** `x-kubernetes-list-map-keys`. */
      readonly keys: readonly string[];
      /** Default values of key fields (`protocol: TCP`). */
      readonly keyDefaults?: Readonly<Record<string, unknown>>;
      item(): TypeNode;
      /** Strategic merge: `x-kubernetes-patch-strategy` and `-merge-key`. */
      readonly patchStrategy?: "merge" | "replace";
      readonly patchMergeKey?: string;
    };

/** A column of a table (meta.k8s.io/v1 TableColumnDefinition plus where the cell comes from). */
export interface TableColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly format: string;
  readonly description: string;
  readonly priority: number;
  /** The cell of one object; `now` is in milliseconds since the epoch. */
  cell(object: JsonObject, now: number): unknown;
}

/** What a strategy may know of the request. */
export interface StrategyContext {
  readonly user: UserInfo;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Empty for the main resource, else `status`, `scale`, … */
  readonly subresource: string;
}

/** A subresource. */
export interface SubresourceDefinition {
  readonly name: string;
  /** The kind it speaks, when not the parent's (e.g. `autoscaling/v1 Scale`). */
  readonly kind?: GroupVersionKind;
  readonly verbs: readonly Verb[];
  /** Paths of the scale subresource, dotted without the leading dot. */
  readonly scale?: {
    readonly specReplicas: string;
    readonly statusReplicas: string;
    readonly selector?: string;
  };
}

/** A resource at one served version. */
export interface ResourceDefinition extends GroupVersionKind {
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  readonly subresources: readonly SubresourceDefinition[];
  /** `builtin` kinds take protobuf and strategic merge; custom ones do not. */
  readonly origin: "builtin" | "custom";
  /** The version objects are stored in; equal to `version` for single-version kinds. */
  readonly storageVersion: string;
  readonly columns: readonly TableColumn[];
  /** Conditions of an object's table row (`Completed` of finished pods); none when absent. */
  rowConditions?(object: JsonObject): readonly JsonObject[];
  /** Root of the merge structure. */
  readonly type: TypeNode;
  /** Field selectors beyond `metadata.name` and `metadata.namespace`: dotted path without leading dot. */
  readonly selectableFields: readonly string[];
  /** What a selectable field compares as, where that is not the text at its path (`status.successful` of Jobs). */
  selectableValue?(object: JsonObject, path: string): string | undefined;
  /**
   * OpenAPI v3 schemas: the name of the kind's own schema and every schema it refers to. Called when a
   * document is built, cached by the caller.
   */
  openapi(): { readonly name: string; readonly schemas: Readonly<Record<string, JsonObject>> };
  /**
   * The value an object has before anybody sets anything (`spec: {}`, `containers: null`): field ownership of a
   * create is what differs from it. Default: apiVersion and kind alone.
   */
  empty?(): JsonObject;
  /**
   * Removes unknown fields from the object; answers their paths (`spec.foo`), which the registry words for
   * `fieldValidation`. Custom resources with preserved unknown fields return none for those.
   */
  prune(object: JsonObject): readonly string[];
  /** Fills defaults in place. */
  applyDefaults(object: JsonObject): void;
  /** Resets what a client may not set, fills what the server sets (beyond metadata), in place. */
  prepareForCreate(object: JsonObject, context: StrategyContext): void;
  /** The same for an update: keeps status on main writes and everything else on status writes; says whether the generation must rise by changing `metadata.generation`. */
  prepareForUpdate(object: JsonObject, old: JsonObject, context: StrategyContext): void;
  validateCreate(object: JsonObject, context: StrategyContext): readonly FieldError[];
  validateUpdate(object: JsonObject, old: JsonObject, context: StrategyContext): readonly FieldError[];
  /** Texts for `Warning` headers. */
  warnings(object: JsonObject): readonly string[];
  /** Dotted paths of the fields a subresource's writers may own in managed fields; the main resource excludes them. */
  readonly resetFields: Readonly<Record<string, readonly string[]>>;
  /**
   * Converts objects (each says its present `apiVersion`) to `toApiVersion`, keeping count and order; absent when
   * there is one version or the shape is the same, then only `apiVersion` is rewritten.
   */
  convert?(objects: readonly JsonObject[], toApiVersion: string): Promise<readonly JsonObject[]>;
  /** Kind's rule for `metadata.name`, checked by the registry with all other metadata. Default `subdomain`. */
  readonly nameRule?: "subdomain" | "label" | "dns1035" | "path";
  /** PUT of a missing object creates it (Lease, Event, …). Default false. */
  readonly createOnUpdate?: boolean;
  /** Updates without `resourceVersion` are taken: last write wins. Default: true for built-ins, false for custom kinds. */
  readonly unconditionalUpdate?: boolean;
  /** What becomes of dependents when the delete does not say. Default `Background`. */
  readonly defaultPropagation?: "Background" | "Orphan";
  /**
   * Set when the objects live in another resource's place and form: `events.k8s.io` events are stored as core
   * events, `autoscaling/v1` autoscalers as `autoscaling/v2`. Both functions return a new object with its
   * `apiVersion` set and never fail.
   */
  readonly stored?: {
    /** The resource whose keys hold the objects (same plural name). */
    readonly group: string;
    readonly version: string;
    toStored(object: JsonObject): JsonObject;
    fromStored(object: JsonObject): JsonObject;
  };
}
