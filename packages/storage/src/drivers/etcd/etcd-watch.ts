/**
 * A watch over a remote etcd3 endpoint that outlives connections.
 *
 * Always holds: everything of the range up to `#delivered` is in the outbox or was read from it. After a
 * lost connection the stream is opened again right after that, with growing pauses.
 */
import { create } from "@bufbuild/protobuf";
import { isCoded, type Edges, type Timer } from "@kontinuum/std";
import type { Revision, StoreEvent, Watch, WatchBatch, WatchRequest } from "../../contract.ts";
import { eventFrom, keysFor } from "../../etcd/messages.ts";
import { Outbox } from "../../etcd/outbox.ts";
import { fromWire } from "../../etcd/status-text.ts";
import { progressIntervalMs } from "../../engine/watch-hub.ts";
import { spanOf } from "../../engine/span.ts";
import { compacted, fault, reasonOf, storeClosed } from "../../faults.ts";
import * as rpc from "../../gen/etcd/etcdserverpb/rpc_pb.ts";
import type { Channel } from "./channel.ts";
import type { Overview, Standing } from "./overview.ts";

/** Time without contact after which a watch gives up with `unavailable`, milliseconds. */
const resumeLimitMs = 60_000;
/** First and longest pause before a stream is opened again, milliseconds. */
const resumePauseMs = { first: 20, longest: 2_000 } as const;
/** After how long a progress request without an answer is repeated, at first and at most, milliseconds; doubled each time. */
const progressRepeatMs = { first: 250, longest: 4_000 } as const;
/** Batches that wait for a reader. */
const outboxSize = 16;
/** Requests that wait to be sent on one stream. */
const requestLimit = 64;

/** Everything a watch needs of its store. */
export interface WatchHost {
  readonly channel: Channel;
  readonly edges: Edges;
  /** Set for servers whose own progress answers cannot be trusted. */
  readonly overview: () => Promise<Overview | undefined>;
  /** The user may not see the whole key space. */
  readonly overviewRefused: () => void;
  /** Refuses a start that the server would serve incompletely. */
  readonly checkStart: (start: Revision, request: WatchRequest) => Promise<void>;
  readonly forget: (watch: EtcdWatch) => void;
}

/** A {@link Watch} over the wire. */
export class EtcdWatch implements Watch {
  readonly ready: Promise<Revision>;
  readonly #host: WatchHost;
  readonly #request: WatchRequest;
  readonly #outbox = new Outbox<WatchBatch>(outboxSize);
  readonly #abort = new AbortController();
  #settleReady: { resolve(revision: Revision): void; reject(error: unknown): void } | undefined;
  #registered = false;
  #delivered: Revision;
  #gotSomething = false;
  #progressWanted = false;
  #progressTimer: Timer | undefined;
  #progressPause: number = progressRepeatMs.first;
  /** Reached as soon as its last change is delivered. */
  #standing: Standing | undefined;
  #tickTimer: Timer | undefined;
  #sentSinceTick = false;
  #requests: Outbox<rpc.WatchRequest> | undefined;
  #parts: StoreEvent[] = [];

  constructor(host: WatchHost, request: WatchRequest) {
    spanOf(request);
    this.#host = host;
    this.#request = request;
    this.#delivered = Math.max(0, (request.startRevision ?? 0) - 1);
    this.ready = new Promise((resolve, reject) => (this.#settleReady = { resolve, reject }));
    this.ready.catch(() => {});
    if (request.signal?.aborted) this.close();
    else request.signal?.addEventListener("abort", () => this.close(), { once: true });
    if (request.progressNotify === true) this.#tick();
    void this.#run();
  }

  progress(): void {
    this.#progressWanted = true;
    void this.#askProgress();
  }

  close(): void {
    this.#end();
  }

  /** Ends the watch because its store is closed. */
  storeClosed(): void {
    this.#end(storeClosed());
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch, void, undefined> {
    try {
      yield* this.#outbox;
    } finally {
      this.#end();
    }
  }

  #end(error?: unknown): void {
    this.#abort.abort();
    this.#progressTimer?.clear();
    this.#tickTimer?.clear();
    this.#requests?.end();
    this.#outbox.end(error);
    this.#settleReady?.reject(error ?? storeClosed());
    this.#host.forget(this);
  }

  /** etcd itself tells a quiet watch where it stands every ten minutes: too seldom, so it is asked. */
  #tick(): void {
    this.#tickTimer = this.#host.edges.clock.timer(progressIntervalMs, () => {
      if (!this.#sentSinceTick) this.progress();
      this.#sentSinceTick = false;
      if (!this.#abort.signal.aborted) this.#tick();
    });
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#host.edges;
    let pause: number = resumePauseMs.first;
    let contact = clock.monotonic();
    while (!this.#abort.signal.aborted) {
      try {
        await this.#stream(() => {
          contact = clock.monotonic();
          pause = resumePauseMs.first;
        });
      } catch (error) {
        if (this.#abort.signal.aborted) return;
        const coded = fromWire(error);
        const reason = reasonOf(coded);
        const passing =
          reason === "lost" || reason === "closed" || reason === "timeout" || reason === "overloaded";
        if (!passing || clock.monotonic() - contact > resumeLimitMs) return this.#end(coded);
      }
      await clock.sleep(pause * (0.5 + random.float() / 2), this.#abort.signal).catch(() => {});
      pause = Math.min(pause * 2, resumePauseMs.longest);
    }
  }

  /** One stream, from its opening to its loss. */
  async #stream(contact: () => void): Promise<void> {
    if (!this.#startsNow()) await this.#host.checkStart(this.#delivered + 1, this.#request);
    const { clients, failed, renew } = await this.#host.channel.stream();
    const requests = new Outbox<rpc.WatchRequest>(requestLimit);
    this.#requests = requests;
    this.#parts = [];
    void requests.put(this.#createRequest());
    try {
      for await (const response of clients.watch.watch(requests, { signal: this.#abort.signal })) {
        contact();
        await this.#take(response);
      }
    } catch (error) {
      if (fromWire(error).code === "unauthenticated" && this.#registered) renew();
      if (reasonOf(fromWire(error)) === "lost") failed();
      throw error;
    } finally {
      requests.end();
    }
  }

  #createRequest(): rpc.WatchRequest {
    const { filters = [], prevKv = false, progressNotify = false } = this.#request;
    const { NOPUT, NODELETE } = rpc.WatchCreateRequest_FilterType;
    return create(rpc.WatchRequestSchema, {
      requestUnion: {
        case: "createRequest",
        value: create(rpc.WatchCreateRequestSchema, {
          ...keysFor(this.#request),
          startRevision: BigInt(this.#startsNow() ? 0 : this.#delivered + 1),
          prevKv,
          progressNotify,
          fragment: true,
          filters: filters.map((filter) => (filter === "noput" ? NOPUT : NODELETE)),
        }),
      },
    });
  }

  #startsNow(): boolean {
    return !this.#registered && (this.#request.startRevision ?? 0) === 0;
  }

  async #take(response: rpc.WatchResponse): Promise<void> {
    const revision = Number(response.header?.revision ?? 0n);
    if (response.canceled) throw this.#cancelled(response);
    if (response.created) {
      if (this.#startsNow()) this.#delivered = revision;
      this.#registered = true;
      this.#settleReady?.resolve(revision);
      if (this.#progressWanted) void this.#askProgress();
      return;
    }
    if (response.events.length === 0) return this.#progressed(response.watchId, revision);
    this.#parts.push(...response.events.map(eventFrom));
    if (response.fragment) return;
    // After a reconnect a server may repeat; what was delivered is never delivered again.
    const events = this.#parts.filter((event) => event.kv.modRevision > this.#delivered);
    this.#parts = [];
    const last = events.at(-1);
    if (!last) return;
    this.#delivered = last.kv.modRevision;
    this.#gotSomething = true;
    this.#sentSinceTick = true;
    await this.#outbox.put({ events, revision: this.#delivered });
    await this.#reachStanding();
  }

  /** A notice of the server: in answer to a request (id -1), or because it was quiet for long. */
  async #progressed(watchId: bigint, revision: Revision): Promise<void> {
    if (watchId < 0n && (await this.#host.overview())) return;
    await this.#standAt(revision);
  }

  async #standAt(revision: Revision): Promise<void> {
    this.#progressWanted = false;
    this.#progressTimer?.clear();
    this.#progressTimer = undefined;
    this.#progressPause = progressRepeatMs.first;
    this.#delivered = Math.max(this.#delivered, revision);
    this.#sentSinceTick = true;
    await this.#outbox.put({ events: [], revision: this.#delivered });
  }

  /** When the last change that the overview saw has been delivered, all of them have. */
  async #reachStanding(): Promise<void> {
    const standing = this.#standing;
    if (!standing || this.#delivered < standing.last) return;
    this.#standing = undefined;
    if (this.#progressWanted) await this.#standAt(standing.through);
  }

  async #askProgress(): Promise<void> {
    if (!this.#registered || this.#abort.signal.aborted || this.#progressTimer) return;
    this.#progressTimer = this.#host.edges.clock.timer(this.#progressPause, () => {
      this.#progressTimer = undefined;
      if (this.#progressWanted) void this.#askProgress();
    });
    this.#progressPause = Math.min(2 * this.#progressPause, progressRepeatMs.longest);
    try {
      const overview = await this.#host.overview();
      if (overview) {
        this.#standing = await overview.look(this.#request, this.#delivered);
        return await this.#reachStanding();
      }
      const requestUnion = {
        case: "progressRequest",
        value: create(rpc.WatchProgressRequestSchema),
      } as const;
      await this.#requests?.put(create(rpc.WatchRequestSchema, { requestUnion }));
    } catch (error) {
      if (isCoded(error, "permission_denied")) this.#host.overviewRefused();
      // Nobody can tell what happened since: what the range holds must be read again.
      if (reasonOf(error) === "compacted") this.#end(error);
      // Anything else is asked again by the timer; a lasting failure ends the stream itself.
    }
  }

  #cancelled(response: rpc.WatchResponse): Error {
    const compactRevision = Number(response.compactRevision);
    if (compactRevision > 0) {
      if (!this.#gotSomething) return compacted(this.#delivered + 1, compactRevision);
      const text = `the watch fell behind compaction at revision ${compactRevision}: read again`;
      // Not "lost": opening it again would not help.
      return fault("compacted", text, { details: { compactRevision } });
    }
    return fromWire(new Error(response.cancelReason || "the server ended the watch"));
  }
}
