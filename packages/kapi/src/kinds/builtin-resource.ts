/**
 * One built-in kind as a resource: the published type, the catalog's data and the kind's rules put together.
 *
 * Everything derived from tables is made on first use, so that a server which serves a hundred kinds and
 * uses ten pays for ten.
 */
import { CodedError, isCoded, isObject, type JsonObject } from "@kontinuum/std";
import { kindFacts, message, type KindFacts, type Message } from "../codec/messages.ts";
import { cloneJson, equalJson } from "../json/json.ts";
import { fillAbsent } from "../codec/zero.ts";
import type {
  FieldError,
  ResourceDefinition,
  StrategyContext,
  SubresourceDefinition,
  TableColumn,
  TypeNode,
  Verb,
} from "../resource.ts";
import type { CatalogEntry } from "./catalog.ts";
import { columnsOf } from "./columns/index.ts";
import { podRowConditions } from "./columns/pod.ts";

import { rootTypeOf } from "./merge-type.ts";
import { normalize } from "./normalize.ts";
import { checkStructure } from "./rules/structure.ts";
import { rulesOf } from "./rules/index.ts";
import type { KindRules } from "./rules/kind-rules.ts";
import { schemasOf } from "../openapi/schemas.ts";

const standardVerbs: readonly Verb[] = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
];

/** A built-in kind. */
export class BuiltinResource implements ResourceDefinition {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  readonly subresources: readonly SubresourceDefinition[];
  readonly origin = "builtin";
  readonly storageVersion: string;
  readonly selectableFields: readonly string[];
  readonly resetFields: Readonly<Record<string, readonly string[]>>;
  readonly createOnUpdate: boolean;
  readonly unconditionalUpdate: boolean;
  readonly nameRule: NonNullable<ResourceDefinition["nameRule"]>;
  readonly defaultPropagation: NonNullable<ResourceDefinition["defaultPropagation"]>;
  declare readonly stored?: NonNullable<ResourceDefinition["stored"]>;
  readonly #entry: CatalogEntry;
  readonly #apiVersion: string;
  readonly #facts: KindFacts;
  readonly #rules: KindRules;
  readonly #hasStatus: boolean;
  #columns: readonly TableColumn[] | undefined;
  #type: TypeNode | undefined;

  constructor(entry: CatalogEntry) {
    const facts = kindFacts(entry.apiVersion, entry.kind);
    if (facts?.resource === undefined)
      throw new Error(`no published facts about ${entry.apiVersion} ${entry.kind}`);
    const slash = entry.apiVersion.indexOf("/");
    this.#entry = entry;
    this.#apiVersion = entry.apiVersion;
    this.#facts = facts;
    this.#rules = rulesOf(entry.apiVersion, entry.kind);
    this.group = slash < 0 ? "" : entry.apiVersion.slice(0, slash);
    this.version = entry.apiVersion.slice(slash + 1);
    this.kind = entry.kind;
    this.listKind = facts.list ?? `${entry.kind}List`;
    this.plural = facts.resource;
    this.singular = entry.kind.toLowerCase();
    this.namespaced = facts.namespaced === true;
    this.shortNames = entry.shortNames ?? [];
    this.categories = entry.categories ?? [];
    this.verbs =
      (facts.verbs as readonly Verb[] | undefined) ??
      standardVerbs.filter((verb) => entry.without?.includes(verb) !== true);
    this.subresources = entry.subresources ?? [];
    this.storageVersion = this.version;
    this.createOnUpdate = entry.createOnUpdate === true;
    this.unconditionalUpdate = entry.unconditionalUpdate !== false;
    this.nameRule = entry.nameRule ?? "subdomain";
    this.defaultPropagation = entry.defaultPropagation ?? "Background";
    if (entry.stored !== undefined) this.stored = entry.stored;
    this.selectableFields = entry.selectable ?? [];
    this.#hasStatus = this.subresources.some(({ name }) => name === "status");
    this.resetFields = this.#hasStatus ? { status: ["status"] } : {};
  }

  get #message(): Message {
    return message(this.#facts.message);
  }

  empty(): JsonObject {
    const object: JsonObject = { apiVersion: this.#apiVersion, kind: this.kind };
    fillAbsent(this.#message, object);
    return object;
  }

  get columns(): readonly TableColumn[] {
    return (this.#columns ??= columnsOf(this.#apiVersion, this.kind));
  }

  rowConditions(object: JsonObject): readonly JsonObject[] {
    return this.#apiVersion === "v1" && this.kind === "Pod" ? podRowConditions(object) : [];
  }

  get type(): TypeNode {
    return (this.#type ??= rootTypeOf(this.#message));
  }

  openapi(): { readonly name: string; readonly schemas: Readonly<Record<string, JsonObject>> } {
    const list = kindFacts(this.#apiVersion, this.listKind);
    const subresources = this.subresources.flatMap(({ kind }) => {
      const facts =
        kind === undefined
          ? undefined
          : kindFacts(kind.group === "" ? kind.version : `${kind.group}/${kind.version}`, kind.kind);
      return facts === undefined ? [] : [facts.message];
    });
    return schemasOf([this.#facts.message, ...(list === undefined ? [] : [list.message]), ...subresources]);
  }

  selectableValue(object: JsonObject, path: string): string | undefined {
    return this.#entry.selectableValues?.[path]?.(object);
  }

  prune(object: JsonObject): readonly string[] {
    try {
      return normalize(this.#message, object);
    } catch (error) {
      if (!isCoded(error, "invalid_argument")) throw error;
      const named = `${this.kind} in version ${JSON.stringify(this.version)} cannot be handled as a ${this.kind}`;
      throw new CodedError("invalid_argument", `${named}: ${error.message}`, { cause: error });
    }
  }

  applyDefaults(object: JsonObject): void {
    this.#rules.defaults?.(object);
  }

  prepareForCreate(object: JsonObject, context: StrategyContext): void {
    if (this.#hasStatus) {
      delete object.status;
      fillAbsent(this.#message, object);
    }
    const metadata = isObject(object.metadata) ? object.metadata : (object.metadata = {} as JsonObject);
    if (this.#rules.generation === true) metadata.generation = 1;
    else delete metadata.generation;
    this.#rules.prepareCreate?.(object, context);
  }

  prepareForUpdate(object: JsonObject, old: JsonObject, context: StrategyContext): void {
    const { subresource } = context;
    const metadata = isObject(object.metadata) ? object.metadata : (object.metadata = {} as JsonObject);
    const oldMetadata = isObject(old.metadata) ? old.metadata : {};
    if (subresource === "status") this.#prepareStatus(object, old, metadata, oldMetadata);
    else if (subresource === "" || subresource === "scale") {
      if (this.#hasStatus) keep(object, old, "status");
      this.#rules.prepareUpdate?.(object, old, context);
    } else this.#rules.prepareSubresource?.(object, old, context);
    this.#generation(object, old, metadata, oldMetadata);
  }

  #prepareStatus(object: JsonObject, old: JsonObject, metadata: JsonObject, oldMetadata: JsonObject): void {
    for (const key of new Set([...Object.keys(object), ...Object.keys(old)])) {
      if (key !== "status" && key !== "metadata" && key !== "apiVersion" && key !== "kind")
        keep(object, old, key);
    }
    const { statusKeeps } = this.#rules;
    if (statusKeeps === undefined) return;
    const kept =
      statusKeeps === "labels" ? ["labels"] : ["labels", "annotations", "finalizers", "ownerReferences"];
    for (const key of kept) keep(metadata, oldMetadata, key);
  }

  #generation(object: JsonObject, old: JsonObject, metadata: JsonObject, oldMetadata: JsonObject): void {
    if (this.#rules.generation !== true) {
      keep(metadata, oldMetadata, "generation");
      return;
    }
    const before = typeof oldMetadata.generation === "number" ? oldMetadata.generation : 0;
    const hasSpec = Object.hasOwn(object, "spec");
    const same = hasSpec ? equalJson(object.spec, old.spec) : equalJson(desired(object), desired(old));
    metadata.generation = same ? before : before + 1;
  }

  validateCreate(object: JsonObject, context: StrategyContext): readonly FieldError[] {
    return this.#validate(object, context);
  }

  validateUpdate(object: JsonObject, old: JsonObject, context: StrategyContext): readonly FieldError[] {
    const errors = this.#validate(object, context);
    errors.push(...(this.#rules.validateUpdate?.(object, old, context) ?? []));
    return errors;
  }

  #validate(object: JsonObject, context: StrategyContext): FieldError[] {
    // Writers of a status are the cluster's own parts; what they leave alone was checked when it was written.
    if (context.subresource === "status") return [];
    const errors: FieldError[] = [];
    if (this.#rules.ownStructure !== true) checkStructure(this.#message, object, errors);
    errors.push(...(this.#rules.validate?.(object, context) ?? []));
    return errors;
  }

  warnings(object: JsonObject): readonly string[] {
    return this.#rules.warnings?.(object) ?? [];
  }
}

/** Makes a key what it was in the old object, or absent. */
function keep(object: JsonObject, old: JsonObject, key: string): void {
  if (Object.hasOwn(old, key)) object[key] = cloneJson(old[key]);
  else delete object[key];
}

/** Everything of an object that a user decides, for kinds without a spec. */
function desired(object: JsonObject): JsonObject {
  const { metadata: _metadata, status: _status, apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return rest;
}
