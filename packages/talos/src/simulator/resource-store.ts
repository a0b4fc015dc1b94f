/**
 * The resources of one node: what `cosi.resource.State` reads.
 *
 * The node describes everything it wants to be seen at once; the store finds out what changed, gives
 * versions and tells watchers. Lists are sorted by id in byte order. A watcher's queue is bounded: one
 * that falls behind is ended with an error, as the real one does.
 */
import { BoundedQueue, CodedError, type Clock } from "@kontinuum/std";

/** A resource as its owner describes it. */
export interface ResourceDescription {
  readonly namespace: string;
  readonly type: string;
  readonly id: string;
  /** The controller that owns it, e.g. `network.LinkStatusController`. */
  readonly owner: string;
  readonly proto: Uint8Array;
  /** The same for people, made when somebody asks. */
  readonly yaml: () => string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A resource as it is kept. */
export interface StoredResource extends ResourceDescription {
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly created: number;
  readonly updated: number;
}

/** A change. */
export type ResourceChange =
  | { readonly type: "created"; readonly resource: StoredResource }
  | { readonly type: "updated"; readonly resource: StoredResource; readonly old: StoredResource }
  | { readonly type: "destroyed"; readonly resource: StoredResource };

/** Changes that may wait for one watcher. */
const watchQueueLimit = 1024;

interface Watcher {
  readonly namespace: string;
  readonly type: string;
  readonly id: string | undefined;
  readonly queue: BoundedQueue<ResourceChange>;
}

/** See the module's comment. */
export class ResourceStore {
  readonly #clock: Clock;
  readonly #resources = new Map<string, StoredResource>();
  readonly #watchers = new Set<Watcher>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether somebody watches. */
  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  get(namespace: string, type: string, id: string): StoredResource | undefined {
    return this.#resources.get(key(namespace, type, id));
  }

  /** Everything, in no order. */
  all(): StoredResource[] {
    return [...this.#resources.values()];
  }

  /** All of a type, sorted by id. */
  list(namespace: string, type: string): StoredResource[] {
    return [...this.#resources.values()]
      .filter((resource) => resource.namespace === namespace && resource.type === type)
      .sort((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
  }

  /** Changes from now on; leave the loop to end. */
  watch(namespace: string, type: string, id?: string): BoundedQueue<ResourceChange> {
    const queue = new BoundedQueue<ResourceChange>(watchQueueLimit);
    this.#watchers.add({ namespace, type, id, queue });
    return queue;
  }

  /** Ends one watch. */
  unwatch(queue: BoundedQueue<ResourceChange>): void {
    for (const watcher of this.#watchers) if (watcher.queue === queue) this.#watchers.delete(watcher);
    queue.end();
  }

  /** Makes the store hold exactly these. */
  replace(wanted: readonly ResourceDescription[]): void {
    const now = this.#clock.now();
    const seen = new Set<string>();
    for (const description of wanted) {
      const at = key(description.namespace, description.type, description.id);
      seen.add(at);
      const old = this.#resources.get(at);
      if (old && isSame(old, description)) continue;
      const resource = {
        ...description,
        version: (old?.version ?? 0) + 1,
        created: old?.created ?? now,
        updated: now,
      };
      this.#resources.set(at, resource);
      this.#tell(old ? { type: "updated", resource, old } : { type: "created", resource });
    }
    for (const [at, resource] of this.#resources) {
      if (seen.has(at)) continue;
      this.#resources.delete(at);
      this.#tell({ type: "destroyed", resource });
    }
  }

  /** Ends every watch: the node is going down. */
  close(): void {
    for (const { queue } of this.#watchers)
      queue.end(new CodedError("unavailable", "the node is going down"));
    this.#watchers.clear();
  }

  #tell(change: ResourceChange): void {
    const { namespace, type, id } = change.resource;
    for (const watcher of this.#watchers) {
      if (watcher.namespace !== namespace || watcher.type !== type) continue;
      if (watcher.id !== undefined && watcher.id !== id) continue;
      if (watcher.queue.push(change)) continue;
      watcher.queue.end(new CodedError("unavailable", "the watch fell too far behind"));
      this.#watchers.delete(watcher);
    }
  }
}

function key(namespace: string, type: string, id: string): string {
  return `${namespace}\n${type}\n${id}`;
}

function isSame(a: ResourceDescription, b: ResourceDescription): boolean {
  return Buffer.compare(a.proto, b.proto) === 0;
}
