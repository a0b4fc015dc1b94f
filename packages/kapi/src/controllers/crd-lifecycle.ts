/**
 * The life of custom resource definitions: names accepted, served, changed, taken away.
 *
 * Driven by the watch cache of the definitions, so every replica registers the same resources; what is written
 * (conditions, accepted names, the finalizer) is the same whoever writes it. A resource is served before its
 * definition says `Established`.
 */
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import { at, isObject, stringAt, type Edges, type JsonObject } from "@kontinuum/std";
import { compileCrd, crdNames, crdVersions, type CrdConversion } from "../crd/index.ts";
import { stringifyJson } from "../json/json.ts";
import { finalizersOf, metaText, timestamp } from "../registry/metadata.ts";
import { crdFinalizer } from "../registry/deletion-rules.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import type { ResourceDefinition } from "../resource.ts";
import { entryObject } from "../watch-cache/entry.ts";
import { CacheWorker } from "./cache-worker.ts";
import { call } from "./call.ts";
import { acceptNames, type NameConflict } from "./crd-names.ts";
import { withCondition, type ConditionInput } from "./crd-conditions.ts";

/** Objects of a terminating definition are looked for this often. */
const drainMs = 500;

/** What the lifecycle needs. */
export interface CrdLifecycleOptions {
  readonly edges: Edges;
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  readonly crdResource: ResourceDefinition;
  readonly transport: Transport;
  /** Told which definitions (`<group>/<plural>`) are going away. */
  terminating(value: ReadonlySet<string>): void;
  /** Calls conversion webhooks for a definition. */
  conversion?(manifest: JsonObject): CrdConversion | undefined;
}

interface Served {
  /** What was compiled: the spec's text. */
  readonly spec: string;
  readonly group: string;
  readonly plural: string;
}

/** Keeps the served resources in step with the definitions. */
export class CrdLifecycle implements Controller {
  readonly name = "crd-lifecycle";
  readonly #options: CrdLifecycleOptions;
  readonly #store: ResourceStore;
  readonly #served = new Map<string, Served>();
  readonly #terminating = new Set<string>();
  readonly #worker: CacheWorker;

  constructor(options: CrdLifecycleOptions) {
    this.#options = options;
    this.#store = options.storage.of(options.crdResource);
    const { clock, log } = options.edges;
    this.#worker = new CacheWorker({
      name: this.name,
      clock,
      log,
      reconcile: (name) => this.#reconcile(name),
    });
  }

  /** Registers everything that is already established, before the server listens. */
  async load(): Promise<void> {
    await this.#store.cache.load();
    for (const entry of this.#store.cache.list()) {
      if (entry.error !== undefined) continue;
      const manifest = entryObject(entry);
      if (hasCondition(manifest, "Established")) this.#serve(entry.name, manifest);
    }
  }

  /** Whether a definition's resources are served. */
  isServed(name: string): boolean {
    return this.#served.has(name);
  }

  /** Whether a resource's definition is being deleted. */
  isTerminating(group: string, plural: string): boolean {
    return this.#terminating.has(`${group}/${plural}`);
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const unfollow = this.#worker.follow(this.#store.cache, ({ key }) => [
      key.slice(this.#store.prefix.length),
    ]);
    try {
      await this.#worker.run(signal);
    } finally {
      unfollow();
    }
  }

  /** Brings one definition in order; answers when to look again, if ever. */
  async #reconcile(name: string): Promise<number | undefined> {
    const entry = this.#store.cache.get(this.#store.key("", name));
    if (!entry || entry.error !== undefined) {
      await this.#unserve(name);
      this.#reconsiderOthers(name);
      return undefined;
    }
    const manifest = entryObject(entry);
    if (metaText(manifest, "deletionTimestamp") !== "") return this.#terminate(name, manifest);
    const conflict = acceptNames(manifest, this.#others(name), this.#options.resources);
    if (conflict) {
      await this.#writeStatus(name, manifest, refusedConditions(conflict));
      return undefined;
    }
    this.#serve(name, manifest);
    await this.#writeStatus(name, manifest, establishedConditions);
    return undefined;
  }

  /** Definitions that may have been waiting for names. */
  #reconsiderOthers(gone: string): void {
    for (const entry of this.#store.cache.list()) {
      if (entry.name !== gone && !this.#served.has(entry.name)) this.#worker.mark(entry.name);
    }
  }

  #others(name: string): readonly JsonObject[] {
    const others: JsonObject[] = [];
    for (const entry of this.#store.cache.list()) {
      if (entry.name !== name && entry.error === undefined && this.#served.has(entry.name))
        others.push(entryObject(entry));
    }
    return others;
  }

  #serve(name: string, manifest: JsonObject): void {
    const spec = stringifyJson(manifest["spec"]);
    const served = this.#served.get(name);
    if (served?.spec === spec) return;
    const group = stringAt(manifest, "spec", "group") ?? "";
    const { plural } = crdNames(manifest);
    const compiled = compileCrd(manifest, this.#options.conversion?.(manifest));
    this.#served.set(name, { spec, group, plural });
    this.#options.resources.replace(group, plural, compiled);
    // Objects were pruned and defaulted by the old schema when they were read.
    if (served) void this.#options.storage.drop(group, plural).catch(() => {});
  }

  async #unserve(name: string): Promise<void> {
    const served = this.#served.get(name);
    if (!served) return;
    const { group, plural } = served;
    this.#served.delete(name);
    this.#options.resources.replace(group, plural, []);
    if (this.#terminating.delete(`${group}/${plural}`)) this.#options.terminating(new Set(this.#terminating));
    await this.#options.storage.drop(group, plural);
  }

  /** Deletes all objects of a definition, then lets it go. */
  async #terminate(name: string, manifest: JsonObject): Promise<number | undefined> {
    const { transport } = this.#options;
    if (!finalizersOf(manifest).includes(crdFinalizer)) return undefined;
    const served = this.#served.get(name);
    if (served) {
      const id = `${served.group}/${served.plural}`;
      if (!this.#terminating.has(id)) {
        this.#terminating.add(id);
        this.#options.terminating(new Set(this.#terminating));
      }
      await this.#writeStatus(name, manifest, [
        {
          type: "Terminating",
          status: "True",
          reason: "InstanceDeletionInProgress",
          message: "CustomResource deletion is in progress",
        },
      ]);
      const left = await this.#drain(served);
      if (left > 0) return drainMs;
    }
    await this.#writeStatus(name, manifest, [
      {
        type: "Terminating",
        status: "False",
        reason: "InstanceDeletionCompleted",
        message: "removed all instances",
      },
    ]);
    await call(transport, "PATCH", this.#path(name), {
      metadata: {
        finalizers: finalizersOf(manifest).filter((finalizer) => finalizer !== crdFinalizer),
        uid: metaText(manifest, "uid"),
      },
    });
    return undefined;
  }

  /** Deletes what is there; answers how many objects are left. */
  async #drain({ group, plural }: Served): Promise<number> {
    const { resources, storage, transport } = this.#options;
    const resource = resources.all().find((other) => other.group === group && other.plural === plural);
    if (!resource) return 0;
    const { cache } = storage.of(resource);
    await cache.fresh();
    const namespaces = new Set(cache.list().map((entry) => entry.namespace));
    // One namespace that holds what can't be deleted does not keep the others full.
    const failures: unknown[] = [];
    for (const namespace of namespaces) {
      const place = namespace === "" ? "" : `namespaces/${encodeURIComponent(namespace)}/`;
      try {
        await call(transport, "DELETE", `/apis/${group}/${resource.version}/${place}${plural}`, {
          propagationPolicy: "Background",
        });
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    await cache.fresh();
    return cache.size;
  }

  #path(name: string): string {
    return `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${encodeURIComponent(name)}`;
  }

  async #writeStatus(name: string, manifest: JsonObject, inputs: readonly ConditionInput[]): Promise<void> {
    const status = isObject(manifest["status"]) ? manifest["status"] : {};
    const now = timestamp(this.#options.edges.clock.now());
    let conditions: readonly unknown[] = Array.isArray(status["conditions"]) ? status["conditions"] : [];
    for (const input of inputs) conditions = withCondition(conditions, input, now);
    const accepted = inputs.some(({ type, status: value }) => type === "NamesAccepted" && value === "True");
    const storage = crdVersions(manifest).find((version) => version["storage"] === true);
    const stored = Array.isArray(status["storedVersions"]) ? status["storedVersions"].map(String) : [];
    const storageName = String(storage?.["name"] ?? "");
    const storedVersions =
      storageName === "" || stored.includes(storageName) ? stored : [...stored, storageName];
    const names = crdNames(manifest);
    const acceptedNames = accepted
      ? {
          plural: names.plural,
          singular: names.singular,
          kind: names.kind,
          listKind: names.listKind,
          ...(names.shortNames.length > 0 ? { shortNames: names.shortNames } : {}),
          ...(names.categories.length > 0 ? { categories: names.categories } : {}),
        }
      : (status["acceptedNames"] ?? { plural: "", kind: "" });
    const next = { ...status, conditions, storedVersions, acceptedNames };
    if (stringifyJson(next) === stringifyJson(status)) return;
    await call(this.#options.transport, "PATCH", `${this.#path(name)}/status`, {
      metadata: { uid: metaText(manifest, "uid") },
      status: {
        ...next,
        ...(isObject(status["acceptedNames"])
          ? { acceptedNames: replaced(status["acceptedNames"], acceptedNames) }
          : {}),
      },
    });
  }
}

/** A merge patch that turns one map into another. */
function replaced(before: JsonObject, after: unknown): JsonObject {
  const patch: JsonObject = isObject(after) ? { ...after } : {};
  for (const key in before) if (!Object.hasOwn(patch, key)) patch[key] = null;
  return patch;
}

const establishedConditions: readonly ConditionInput[] = [
  { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found" },
  {
    type: "Established",
    status: "True",
    reason: "InitialNamesAccepted",
    message: "the initial names have been accepted",
  },
];

function refusedConditions({ reason, message }: NameConflict): readonly ConditionInput[] {
  return [
    { type: "NamesAccepted", status: "False", reason, message },
    {
      type: "Established",
      status: "False",
      reason: "NotAccepted",
      message: "not all names are accepted",
      keep: true,
    },
  ];
}

/** Whether a condition of a manifest is `True`. */
export function hasCondition(manifest: JsonObject, type: string): boolean {
  const conditions = at(manifest, "status", "conditions");
  return (
    Array.isArray(conditions) &&
    conditions.some(
      (condition) => isObject(condition) && condition["type"] === type && condition["status"] === "True",
    )
  );
}
