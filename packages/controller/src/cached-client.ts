/**
 * A client whose reads come from memory and show its own writes.
 *
 * `get`, `find` and `list` of a resource that has an informer are answered from it, once it has synced;
 * everything else asks the server. Every write goes to the server, and its answer is put into the
 * informer before the caller gets it: whoever wrote sees the write in the very next read. `live` reads
 * past the cache, for the few decisions that need the newest state of something others write.
 */
import { CodedError } from "@kontinuum/std";
import { Client, type CallOptions, type ClientOptions, type ListOptions } from "./client.ts";
import type { Informer } from "./informer.ts";
import type { KubeList, KubeObject, Resource } from "./object.ts";
import { apiVersionOf, resourceName, type ObjectRef } from "./resource.ts";
import type { Transport } from "./transport.ts";

/** Finds the informer of a resource, if there is one. */
export interface Informers {
  find<T extends KubeObject>(resource: Resource<T>): Informer<T> | undefined;
}

/** See the module's comment. */
export class CachedClient extends Client {
  /** The same identity, always asking the server. Its writes are not put into the cache: use it to read. */
  readonly live: Client;
  readonly #informers: Informers;

  constructor(transport: Transport, options: ClientOptions, informers: Informers) {
    super(transport, options);
    this.live = new Client(transport, options);
    this.#informers = informers;
  }

  override async get<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: CallOptions = {},
  ): Promise<T> {
    const informer = this.#syncedInformer(resource);
    if (!informer) return super.get(resource, ref, options);
    const object = informer.get(ref);
    if (object) return object;
    throw new CodedError("not_found", `${resourceName(resource)} ${JSON.stringify(ref.name)} not found`, {
      details: { status: 404, reason: "NotFound", causes: [] },
    });
  }

  override async list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions = {},
  ): Promise<KubeList<T>> {
    const informer = options.fields === undefined ? this.#syncedInformer(resource) : undefined;
    if (!informer) return super.list(resource, options);
    return {
      apiVersion: apiVersionOf(resource),
      kind: `${resource.kind}List`,
      metadata: { resourceVersion: informer.version ?? "" },
      items: informer.list(options),
    };
  }

  /** Copies of the objects under `value` in an index of the resource's informer. Throws without informer or index. */
  byIndex<T extends KubeObject>(resource: Resource<T>, index: string, value: string): T[] {
    const informer = this.#informers.find(resource);
    if (!informer) throw new TypeError(`no informer of ${resourceName(resource)} runs here`);
    return informer.byIndex(index, value);
  }

  protected override onWritten<T extends KubeObject>(resource: Resource<T>, object: T): void {
    this.#informers.find(resource)?.written(object);
  }

  protected override onDeleted<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    uid: string | undefined,
  ): void {
    this.#informers.find(resource)?.removed(ref, uid);
  }

  #syncedInformer<T extends KubeObject>(resource: Resource<T>): Informer<T> | undefined {
    const informer = this.#informers.find(resource);
    return informer?.hasSynced === true ? informer : undefined;
  }
}
