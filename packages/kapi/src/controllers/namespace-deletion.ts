/**
 * Empties terminating namespaces, says in their conditions what is left and why, and lets them go.
 *
 * Objects are deleted one by one with their uid, so that a conversion or webhook that does not work only holds the
 * objects it is about. Nothing is remembered between rounds: the store says what is left.
 */
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import { isObject, messageOf, type Edges, type JsonObject } from "@kontinuum/std";
import { equalJson } from "../json/json.ts";
import { namespaceFinalizers } from "../registry/deletion-rules.ts";
import { finalizersOf, metaText, timestamp } from "../registry/metadata.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceDefinition } from "../resource.ts";
import { entryObject, isDeleting, type CacheEntry } from "../watch-cache/entry.ts";
import { CacheWorker } from "./cache-worker.ts";
import { call, failedWith } from "./call.ts";
import { withCondition, type ConditionInput } from "./crd-conditions.ts";
import { deletableResources, objectPath } from "./object-path.ts";

/** Deletes under way at once, and started in one round. */
const parallel = 8;
const perRound = 500;
/** A namespace that is not empty yet is looked at again after this long; later rounds wait longer. */
const minWaitMs = 100;
const maxWaitMs = 5_000;

/** Failures named in a condition at most. */
const maxNamed = 10;

/** What the controller needs. */
export interface NamespaceDeletionOptions {
  readonly edges: Edges;
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  readonly transport: Transport;
  /** Names of API groups that can't be asked now: what they hold is unknown, so the namespace stays. */
  unreachableGroups(): readonly string[];
}

interface Remaining {
  readonly resource: ResourceDefinition;
  readonly count: number;
  readonly finalizers: ReadonlyMap<string, number>;
}

/** Deletes what is in terminating namespaces. */
export class NamespaceDeletion implements Controller {
  readonly name = "namespace-deletion";
  readonly #options: NamespaceDeletionOptions;
  readonly #store: ResourceStore;
  readonly #resource: ResourceDefinition;
  readonly #waits = new Map<string, number>();

  constructor(options: NamespaceDeletionOptions, resource: ResourceDefinition) {
    this.#options = options;
    this.#resource = resource;
    this.#store = options.storage.of(resource);
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const { clock, log } = this.#options.edges;
    const worker = new CacheWorker({
      name: this.name,
      clock,
      log,
      reconcile: (name) => this.#reconcile(name),
    });
    await this.#store.cache.load();
    const unfollow = worker.follow(this.#store.cache, ({ entry }) =>
      entry && isDeleting(entry) ? [entry.name] : [],
    );
    try {
      await worker.run(signal);
    } finally {
      unfollow();
    }
  }

  async #reconcile(name: string): Promise<number | undefined> {
    const entry = this.#store.cache.get(this.#store.key("", name));
    if (!entry || entry.error !== undefined) {
      this.#waits.delete(name);
      return undefined;
    }
    const namespace = entryObject(entry);
    if (metaText(namespace, "deletionTimestamp") === "" || namespaceFinalizers(namespace).length === 0)
      return undefined;
    const { remaining, failures } = await this.#empty(name);
    const unreachable = this.#options.unreachableGroups();
    const done = remaining.length === 0 && unreachable.length === 0;
    const conditions = describe(remaining, failures, unreachable);
    await this.#writeConditions(name, namespace, conditions, done);
    if (!done) {
      const wait = Math.min((this.#waits.get(name) ?? minWaitMs / 2) * 2, maxWaitMs);
      this.#waits.set(name, wait);
      return wait;
    }
    await call(this.#options.transport, "PUT", `${objectPath(this.#resource, "", name)}/finalize`, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, uid: metaText(namespace, "uid") },
      spec: { finalizers: namespaceFinalizers(namespace).filter((finalizer) => finalizer !== "kubernetes") },
    });
    this.#waits.delete(name);
    return undefined;
  }

  /**
   * One round of deletes; answers what was left after it. Pods go first, and nothing else while one is there: what they run
   * may need the rest (secrets, network policies) to its end.
   */
  async #empty(
    namespace: string,
  ): Promise<{ readonly remaining: readonly Remaining[]; readonly failures: readonly string[] }> {
    const { resources, storage } = this.#options;
    const failures: string[] = [];
    const remaining: Remaining[] = [];
    for (const resource of podsFirst(deletableResources(resources.all()))) {
      if (!resource.namespaced) continue;
      const store = storage.of(resource);
      await store.cache.fresh();
      const entries = store.cache.list(store.scope(namespace));
      if (entries.length === 0) continue;
      await this.#deleteAll(resource, namespace, entries.slice(0, perRound), failures);
      await store.cache.fresh();
      const left = store.cache.list(store.scope(namespace));
      if (left.length === 0) continue;
      remaining.push({ resource, count: left.length, finalizers: countFinalizers(left) });
      if (!isPods(resource)) continue;
      failures.push(
        `unexpected items still remain in namespace: ${namespace} for gvr: /v1, Resource=${resource.plural}`,
      );
      break;
    }
    return { remaining, failures };
  }

  async #deleteAll(
    resource: ResourceDefinition,
    namespace: string,
    entries: readonly CacheEntry[],
    failures: string[],
  ): Promise<void> {
    const { transport } = this.#options;
    for (let i = 0; i < entries.length; i += parallel) {
      await Promise.all(
        entries.slice(i, i + parallel).map(async (entry) => {
          // What is already going only waits for its finalizers.
          if (isDeleting(entry) && finalizersOf(entryObject(entry)).length > 0) return;
          try {
            await call(transport, "DELETE", objectPath(resource, namespace, entry.name), {
              kind: "DeleteOptions",
              apiVersion: "v1",
              propagationPolicy: "Background",
              ...(entry.uid === "" ? {} : { preconditions: { uid: entry.uid } }),
            });
          } catch (error) {
            if (!failedWith(error, 404, 409) && failures.length < maxNamed)
              failures.push(`${resource.plural} ${entry.name}: ${messageOf(error)}`);
          }
        }),
      );
    }
  }

  async #writeConditions(
    name: string,
    namespace: JsonObject,
    inputs: readonly ConditionInput[],
    done: boolean,
  ): Promise<void> {
    const status = isObject(namespace["status"]) ? namespace["status"] : {};
    const present = Array.isArray(status["conditions"]) ? status["conditions"] : [];
    // A namespace that goes at once needs no story.
    if (done && present.length === 0) return;
    const now = timestamp(this.#options.edges.clock.now());
    let conditions: readonly unknown[] = present;
    for (const input of inputs) conditions = withCondition(conditions, input, now);
    if (equalJson(conditions, present)) return;
    await call(this.#options.transport, "PATCH", `${objectPath(this.#resource, "", name)}/status`, {
      status: { conditions },
    });
  }
}

const isPods = ({ group, plural }: ResourceDefinition): boolean => group === "" && plural === "pods";

const podsFirst = (resources: readonly ResourceDefinition[]): readonly ResourceDefinition[] => [
  ...resources.filter(isPods),
  ...resources.filter((resource) => !isPods(resource)),
];

function countFinalizers(entries: readonly CacheEntry[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const entry of entries) {
    if (entry.error !== undefined || !entry.rest.includes('"finalizers":')) continue;
    for (const finalizer of finalizersOf(entryObject(entry)))
      counts.set(finalizer, (counts.get(finalizer) ?? 0) + 1);
  }
  return counts;
}

function describe(
  remaining: readonly Remaining[],
  failures: readonly string[],
  unreachable: readonly string[],
): readonly ConditionInput[] {
  const finalizers = new Map<string, number>();
  for (const { finalizers: counts } of remaining)
    for (const [name, count] of counts) finalizers.set(name, (finalizers.get(name) ?? 0) + count);
  const nameOf = ({ group, plural }: ResourceDefinition): string => `${plural}.${group}`;
  const left = remaining
    .map(({ resource, count }) => `${nameOf(resource)} has ${count} resource instances`)
    .join(", ");
  const held = [...finalizers].map(([name, count]) => `${name} in ${count} resource instances`).join(", ");
  return [
    unreachable.length > 0
      ? {
          type: "NamespaceDeletionDiscoveryFailure",
          status: "True",
          reason: "DiscoveryFailed",
          message: `Discovery failed for some groups, ${unreachable.length} failing: ${unreachable.join(", ")}`,
        }
      : {
          type: "NamespaceDeletionDiscoveryFailure",
          status: "False",
          reason: "ResourcesDiscovered",
          message: "All resources successfully discovered",
        },
    {
      type: "NamespaceDeletionGroupVersionParsingFailure",
      status: "False",
      reason: "ParsedGroupVersions",
      message: "All legacy kube types successfully parsed",
    },
    failures.length > 0
      ? {
          type: "NamespaceDeletionContentFailure",
          status: "True",
          reason: "ContentDeletionFailed",
          message: `Failed to delete all resource types, ${failures.length} remaining: ${failures.join("; ")}`,
        }
      : {
          type: "NamespaceDeletionContentFailure",
          status: "False",
          reason: "ContentDeleted",
          message: "All content successfully deleted, may be waiting on finalization",
        },
    remaining.length > 0
      ? {
          type: "NamespaceContentRemaining",
          status: "True",
          reason: "SomeResourcesRemain",
          message: `Some resources are remaining: ${left}`,
        }
      : {
          type: "NamespaceContentRemaining",
          status: "False",
          reason: "ContentRemoved",
          message: "All content successfully removed",
        },
    finalizers.size > 0
      ? {
          type: "NamespaceFinalizersRemaining",
          status: "True",
          reason: "SomeFinalizersRemain",
          message: `Some content in the namespace has finalizers remaining: ${held}`,
        }
      : {
          type: "NamespaceFinalizersRemaining",
          status: "False",
          reason: "ContentHasNoFinalizers",
          message: "All content-preserving finalizers finished",
        },
  ];
}
