/**
 * Defining a controller: watches feed keys into a work queue, workers reconcile one key at a time.
 *
 * `reconcile` gets a key, not an event: it reads what is there now and moves it towards what is wanted.
 * It may be called at any time, any number of times, and the process may die between any two of its lines.
 * Errors are logged and retried with back-off, never fatal; a {@link TerminalError} is logged and waits
 * for the next change; a conflict means that somebody else was faster and is simply tried again.
 */
import type { Edges, Log } from "@kontinuum/std";
import type { CachedClient } from "./cached-client.ts";
import type { Controller } from "./contract.ts";
import type { AnyInformer, Informer } from "./informer.ts";
import type { KubeObject, Resource } from "./object.ts";
import type { IndexFunction } from "./object-cache.ts";
import { keyOf } from "./resource.ts";
import type { WorkQueueOptions } from "./work-queue.ts";

/** Where informers come from: a manager, which makes one per resource. */
export interface InformerSource {
  informer<T extends KubeObject>(resource: Resource<T>): Informer<T>;
}

/** What `reconcile` may use. */
export interface ReconcileContext {
  /** Reads from the informers, shows its own writes. */
  readonly client: CachedClient;
  readonly edges: Edges;
  /** A log that names the controller and the key. */
  readonly log: Log;
  /** Aborts when the controller must stop: long calls take it. */
  readonly signal: AbortSignal;
  /** Failures of this key in a row so far. */
  readonly failures: number;
}

/** When to come back, if not only on a change. */
export interface ReconcileResult {
  readonly requeueAfterMs?: number | undefined;
}

/** What can be watched: a resource, and how its objects lead to keys. Made by {@link watchOf}. */
export interface WatchSource {
  readonly resource: Resource;
  /** Starts feeding `add` with keys. Returns the informer, which the manager waits for. */
  connect(informers: InformerSource, add: (key: string) => void): AnyInformer;
}

/** Definition of a controller. */
export interface ControllerDefinition {
  /** Kebab-case, unique in its manager. */
  readonly name: string;
  readonly watches: readonly WatchSource[];
  /** Keys worked on at the same time. Default 1. */
  readonly concurrency?: number;
  readonly queue?: Omit<WorkQueueOptions, "clock">;
  /** Keys to work on at start besides those of the watches (for periodic work that has no object). */
  readonly initialKeys?: readonly string[];
  /** Moves the thing behind `key` one step. */
  readonly reconcile: (key: string, context: ReconcileContext) => Promise<ReconcileResult | void>;
}

/** A controller made of a definition; a {@link Manager} runs several with shared informers. */
export interface DefinedController extends Controller {
  readonly definition: ControllerDefinition;
}

/** A failure that trying again can't cure: the key rests until its object changes. */
export class TerminalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TerminalError";
  }
}

/** Options of {@link watchOf}. */
export interface WatchOfOptions<T extends KubeObject> {
  /** Keys to reconcile when this object changes (called with the states before and after). Default: its own key. */
  readonly map?: (object: T) => readonly string[];
  /** Ignore a change from `before` to `after`. Creation and removal are never ignored. */
  readonly ignore?: (before: T, after: T) => boolean;
  /** Indexes this controller reads with `client.byIndex`. */
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
}

/** Watches a resource. */
export function watchOf<T extends KubeObject>(
  resource: Resource<T>,
  options: WatchOfOptions<T> = {},
): WatchSource {
  const map = options.map ?? ((object: T) => [keyOf(object)]);
  return {
    resource,
    connect(informers, add) {
      const informer = informers.informer(resource);
      for (const [name, of] of Object.entries(options.indexes ?? {})) informer.addIndex(name, of);
      informer.onChange(({ before, after }) => {
        if (before && after && options.ignore?.(before, after) === true) return;
        // A change may move an object from one key to another: both need a look.
        const keys = new Set([...(before ? map(before) : []), ...(after ? map(after) : [])]);
        for (const key of keys) add(key);
      });
      return informer;
    },
  };
}

/** Keys of the controllers (`ownerReferences`) of a kind: the map for objects that a controller made. */
export function ownerKeys(kind: string, apiGroup: string): (object: KubeObject) => string[] {
  return ({ metadata }) =>
    (metadata.ownerReferences ?? [])
      .filter((owner) => owner.kind === kind && (owner.apiVersion.split("/").at(-2) ?? "") === apiGroup)
      .map((owner) => (metadata.namespace ? `${metadata.namespace}/${owner.name}` : owner.name));
}
