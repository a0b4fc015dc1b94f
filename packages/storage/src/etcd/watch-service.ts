/**
 * etcd's Watch service: many watches on one stream.
 *
 * Each watch has a pump that moves batches into the stream's outbox and waits while that is full, so a
 * client that does not read slows only its own watches, which then read from the log.
 */
import { create, type UnknownField } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { CodedError, isCoded, messageOf } from "@kontinuum/std";
import type { KeyValue, Store, StoreEvent, Watch, WatchBatch } from "../contract.ts";
import { reasonOf } from "../faults.ts";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import type { EtcdAccess } from "./access.ts";
import type { EtcdFace } from "./call.ts";
import { eventField } from "./event-bytes.ts";
import { toBuffer, toNumber } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { toWire } from "./status-text.ts";

const { NOPUT, NODELETE } = rpc.WatchCreateRequest_FilterType;

/** Watches on one stream. */
const maxWatchesPerStream = 10_000;
/** Responses that wait for a client to read. */
const outboxSize = 16;
/** Size at which a response is split for clients that asked for it; etcd's request limit. */
const fragmentBytes = 1536 * 1024;

/** Watches over a store. */
export function watchService(face: EtcdFace): ServiceImpl<typeof rpc.Watch> {
  return {
    async *watch(requests, context) {
      let stream: WatchStream | undefined;
      let ended: (() => void) | undefined;
      try {
        const access = await face.access(context);
        ended = access.streamOpened?.();
        stream = new WatchStream(face.store, access, face.head, context);
        stream.read(requests);
        yield* stream.outbox;
      } catch (error) {
        throw toWire(error);
      } finally {
        stream?.close();
        ended?.();
      }
    },
  };
}

interface Open {
  readonly watch: Watch;
  readonly fragment: boolean;
  /** A stream-wide progress request waits for this watch. */
  asked: boolean;
  /** Where it said it stands in answer to that. */
  standing: number;
}

class WatchStream {
  readonly outbox = new Outbox<rpc.WatchResponse>(outboxSize);
  readonly #store: Store;
  readonly #access: EtcdAccess;
  readonly #head: (revision: number) => rpc.ResponseHeader;
  readonly #watches = new Map<bigint, Open>();
  readonly #signals: AbortSignal[];
  #nextId = 0n;

  constructor(
    store: Store,
    access: EtcdAccess,
    head: (revision: number) => rpc.ResponseHeader,
    context: HandlerContext,
  ) {
    this.#store = store;
    this.#access = access;
    this.#head = head;
    this.#signals = access.signal ? [context.signal, access.signal] : [context.signal];
    for (const signal of this.#signals) {
      if (signal.aborted) this.#abort();
      else signal.addEventListener("abort", this.#abort, { once: true });
    }
  }

  /** Serves the client's requests until it ends its side. */
  read(requests: AsyncIterable<rpc.WatchRequest>): void {
    const serve = async (): Promise<void> => {
      for await (const { requestUnion: request } of requests) {
        if (request.case === "createRequest") await this.#create(request.value);
        else if (request.case === "cancelRequest") await this.#cancel(request.value.watchId);
        else if (request.case === "progressRequest") await this.#progress();
      }
    };
    serve().then(
      () => this.outbox.end(),
      (error: unknown) => this.outbox.end(error),
    );
  }

  close(): void {
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#abort);
    for (const { watch } of this.#watches.values()) watch.close();
    this.#watches.clear();
    this.outbox.end();
  }

  readonly #abort = (): void => {
    const revoked = this.#access.signal?.aborted === true;
    this.outbox.end(revoked ? new CodedError("unauthenticated", "the identity was revoked") : undefined);
  };

  async #create(request: rpc.WatchCreateRequest): Promise<void> {
    const id = request.watchId === 0n ? this.#freeId() : request.watchId;
    const refusal = this.#refusal(id, request);
    if (refusal !== undefined) {
      const revision = await this.#store.revision();
      await this.#send({ watchId: -1n, created: true, canceled: true, cancelReason: refusal }, revision);
      return;
    }
    const key = request.key.length === 0 ? Buffer.from([0]) : toBuffer(request.key);
    const { canRead } = this.#access;
    const watch = this.#store.watch({
      key,
      ...(request.rangeEnd.length === 0 ? {} : { end: toBuffer(request.rangeEnd) }),
      startRevision: toNumber(request.startRevision),
      // A filter by value needs to see what was there before.
      prevKv: request.prevKv || canRead !== undefined,
      progressNotify: request.progressNotify,
      ...(canRead
        ? {}
        : { filters: request.filters.map((filter) => (filter === NOPUT ? "noput" : "nodelete")) }),
    });
    const open: Open = { watch, fragment: request.fragment, asked: false, standing: 0 };
    this.#watches.set(id, open);
    await this.#send({ watchId: id, created: true }, await watch.ready);
    void this.#pump(id, open, request);
  }

  #freeId(): bigint {
    while (this.#watches.has(this.#nextId)) this.#nextId++;
    return this.#nextId++;
  }

  #refusal(id: bigint, request: rpc.WatchCreateRequest): string | undefined {
    if (this.#watches.has(id)) return "mvcc: duplicate watch ID provided on the WatchStream";
    if (this.#watches.size >= (this.#access.maxWatches ?? maxWatchesPerStream))
      return "etcdserver: too many requests";
    const { key, rangeEnd } = request;
    const toTheEnd = rangeEnd.length === 1 && rangeEnd[0] === 0;
    if (rangeEnd.length > 0 && !toTheEnd && Buffer.compare(key, rangeEnd) >= 0)
      return "mvcc: watcher range is empty";
    return undefined;
  }

  async #cancel(id: bigint): Promise<void> {
    const open = this.#watches.get(id);
    if (!open) return;
    this.#watches.delete(id);
    open.watch.close();
    await this.#send({ watchId: id, canceled: true }, await this.#store.revision());
    await this.#answerProgress();
  }

  /** Everybody on the stream is asked; the answer is what all of them have reached. */
  async #progress(): Promise<void> {
    if (this.#watches.size === 0) {
      await this.#send({ watchId: -1n }, await this.#store.revision());
      return;
    }
    for (const open of this.#watches.values()) {
      open.asked = true;
      open.standing = 0;
      open.watch.progress();
    }
  }

  async #answerProgress(): Promise<void> {
    const all = [...this.#watches.values()];
    if (all.length === 0 || all.some((open) => open.asked) || all.every((open) => open.standing === 0))
      return;
    const revision = Math.min(...all.filter((open) => open.standing > 0).map((open) => open.standing));
    for (const open of all) open.standing = 0;
    await this.#send({ watchId: -1n }, revision);
  }

  async #pump(id: bigint, open: Open, request: rpc.WatchCreateRequest): Promise<void> {
    try {
      for await (const batch of open.watch) {
        if (batch.events.length === 0) await this.#notice(id, open, batch.revision);
        else await this.#deliver(id, open, this.#visible(batch, request));
      }
    } catch (error) {
      if (this.#watches.get(id) === open) await this.#lost(id, error);
    }
  }

  async #notice(id: bigint, open: Open, revision: number): Promise<void> {
    if (!open.asked) return this.#send({ watchId: id }, revision);
    open.asked = false;
    open.standing = revision;
    await this.#answerProgress();
  }

  async #deliver(id: bigint, open: Open, batch: WatchBatch): Promise<void> {
    if (batch.events.length === 0) return;
    const parts = open.fragment ? split(batch.events) : [batch.events];
    for (const [i, events] of parts.entries())
      await this.#send(
        { watchId: id, fragment: i < parts.length - 1 },
        batch.revision,
        events.map(eventField),
      );
  }

  async #lost(id: bigint, error: unknown): Promise<void> {
    this.#watches.delete(id);
    const revision = await this.#store.revision().catch(() => 0);
    const compactRevision = isCoded(error) ? error.details["compactRevision"] : undefined;
    if (
      typeof compactRevision === "number" &&
      (reasonOf(error) === "compacted" || reasonOf(error) === "lost")
    )
      await this.#send({ watchId: id, canceled: true, compactRevision: BigInt(compactRevision) }, revision);
    else await this.#send({ watchId: id, canceled: true, cancelReason: messageOf(toWire(error)) }, revision);
  }

  /** What the caller may see of a batch, in the form it asked for. */
  #visible(batch: WatchBatch, request: rpc.WatchCreateRequest): WatchBatch {
    const { canRead } = this.#access;
    if (!canRead) return batch;
    const events = batch.events
      .map((event) => visibleEvent(event, canRead))
      .filter((event): event is StoreEvent => event !== undefined)
      .filter((event) => !request.filters.includes(event.type === "put" ? NOPUT : NODELETE))
      .map((event) => (request.prevKv ? event : { type: event.type, kv: event.kv }));
    return { events, revision: batch.revision };
  }

  #send(
    fields: Omit<Partial<rpc.WatchResponse>, "$typeName" | "$unknown" | "header">,
    revision: number,
    events: UnknownField[] = [],
  ): Promise<void> {
    const response = create(rpc.WatchResponseSchema, { ...fields, header: this.#head(revision) });
    response.$unknown = events;
    return this.outbox.put(response);
  }
}

/** A change as somebody sees it who may see only some pairs: what leaves their sight is deleted. */
function visibleEvent(event: StoreEvent, canRead: (kv: KeyValue) => boolean): StoreEvent | undefined {
  const { prev, kv } = event;
  const before = prev !== undefined && canRead(prev);
  if (event.type === "put" && canRead(kv)) return before ? event : { type: "put", kv };
  // Without the pair before it (compacted), a deletion is judged by its key.
  if (!before && !(event.type === "delete" && prev === undefined && canRead(kv))) return undefined;
  if (event.type === "delete") return event;
  const gone = { ...kv, value: Buffer.alloc(0), createRevision: 0, version: 0, lease: 0n };
  return { type: "delete", kv: gone, ...(prev ? { prev } : {}) };
}

function split(events: readonly StoreEvent[]): StoreEvent[][] {
  const parts: StoreEvent[][] = [[]];
  let size = 0;
  for (const event of events) {
    const bytes =
      event.kv.key.length + event.kv.value.length + (event.prev ? event.prev.value.length : 0) + 64;
    if (size > 0 && size + bytes > fragmentBytes) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)?.push(event);
    size += bytes;
  }
  return parts;
}
