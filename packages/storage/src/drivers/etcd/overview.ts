/**
 * Where watches stand, for servers whose own answer cannot be trusted: etcd before 3.4.25 and 3.5.8 answers a progress
 * request without regard to events that are still under way.
 *
 * One watch of the whole key space, where every revision shows, serves all watches of a store: it knows which keys changed
 * up to which revision, and a watch that has delivered the last change of its range has delivered everything. Reads of the
 * newest revision are shared as well, so that the cost does not grow with the number of watches that ask.
 */
import { create } from "@bufbuild/protobuf";
import { CodedError, type Clock } from "@kontinuum/std";
import type { Revision, WatchRequest } from "../../contract.ts";
import { spanOf } from "../../engine/span.ts";
import { toBuffer } from "../../etcd/messages.ts";
import { fromWire } from "../../etcd/status-text.ts";
import { fault, reasonOf, storeClosed } from "../../faults.ts";
import * as rpc from "../../gen/etcd/etcdserverpb/rpc_pb.ts";
import { callTimeoutMs, type Channel } from "./channel.ts";
import { RecentChanges, wants, type RecentChange } from "./recent-changes.ts";

/** Changes that are remembered: keys only, some MiB. */
const rememberedChanges = 16_384;
/** Revisions before the first question that are looked at as well: other watches will ask from a little further back. */
const headStart = 1_000;
/** First and longest pause before a lost stream is opened again, milliseconds. */
const resumePauseMs = { first: 20, longest: 2_000 } as const;

/** Where the store stands, and the last change up to there that a watch must have delivered (0: none). */
export interface Standing {
  readonly through: Revision;
  readonly last: Revision;
}

/** What it needs of its store. */
export interface OverviewHost {
  readonly channel: Channel;
  readonly clock: Clock;
  /** The newest revision, linearizable. */
  revision(): Promise<Revision>;
}

interface Waiter {
  readonly revision: Revision;
  resolve(): void;
  reject(error: unknown): void;
}

/** The one watch that sees everything. Runs from the first question until {@link Overview.stop}. */
export class Overview {
  readonly #host: OverviewHost;
  #changes: RecentChanges | undefined;
  #position: Revision = 0;
  #running: AbortController | undefined;
  #waiters: Waiter[] = [];
  #reading: Promise<Revision> | undefined;
  #nextReading: Promise<Revision> | undefined;
  #replaying: Promise<unknown> = Promise.resolve();

  constructor(host: OverviewHost) {
    this.#host = host;
  }

  /**
   * Where a watch that delivered everything up to `delivered` stands. Fails with `permission_denied` when the whole key
   * space may not be watched, and with `gone` when it is not known any more what happened since.
   */
  async look(request: WatchRequest, delivered: Revision): Promise<Standing> {
    const through = await this.#newest();
    if (through <= delivered) return { through: delivered, last: 0 };
    if (!this.#running) this.#start(Math.max(0, delivered - headStart));
    await this.#reach(through);
    const last = this.#changes?.lastFor(request, delivered, through);
    if (last !== undefined) return { through, last };
    // Longer ago than is remembered: looked up, one watch at a time.
    const replayed = this.#replaying.then(() => replay(this.#host.channel, request, delivered, through));
    this.#replaying = replayed.catch(() => {});
    return replayed;
  }

  /** Nobody watches any more. */
  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#changes = undefined;
    this.#fail(storeClosed());
  }

  /** The newest revision, of a read that begins after the question; those who ask meanwhile share the next one. */
  #newest(): Promise<Revision> {
    if (!this.#reading) return (this.#reading = this.#read());
    return (this.#nextReading ??= this.#reading
      .catch(() => {})
      .then(() => {
        this.#nextReading = undefined;
        return (this.#reading = this.#read());
      }));
  }

  async #read(): Promise<Revision> {
    try {
      return await this.#host.revision();
    } finally {
      this.#reading = undefined;
    }
  }

  #reach(revision: Revision): Promise<void> {
    if (this.#position >= revision) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiters.push({ revision, resolve, reject }));
  }

  #fail(error: unknown): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }

  #start(position: Revision): void {
    const running = new AbortController();
    this.#running = running;
    this.#restartAt(position);
    void this.#run(running.signal).catch((error: unknown) => {
      if (this.#running !== running) return;
      this.#running = undefined;
      this.#fail(error);
    });
  }

  #restartAt(position: Revision): void {
    this.#changes = new RecentChanges(position, rememberedChanges);
    this.#moveTo(position);
  }

  #moveTo(position: Revision): void {
    this.#position = position;
    const waiting = this.#waiters;
    this.#waiters = waiting.filter((waiter) => waiter.revision > position);
    for (const waiter of waiting) if (waiter.revision <= position) waiter.resolve();
  }

  async #run(signal: AbortSignal): Promise<void> {
    let pause: number = resumePauseMs.first;
    while (!signal.aborted) {
      const { clients, failed, renew } = await this.#host.channel.stream();
      try {
        for await (const { changes, revision } of watchEverything(clients, this.#position + 1, signal)) {
          pause = resumePauseMs.first;
          for (const change of changes) this.#changes?.add(change);
          this.#moveTo(revision);
        }
      } catch (error) {
        if (signal.aborted) return;
        const coded = fromWire(error);
        if (coded.code === "permission_denied") throw coded;
        // What was missed is compacted: from there on, then.
        const mark = coded.details["compactRevision"];
        if (reasonOf(coded) === "compacted" && typeof mark === "number") this.#restartAt(mark);
        if (coded.code === "unauthenticated") renew();
        if (reasonOf(coded) === "lost") failed();
      }
      await this.#host.clock.sleep(pause, signal).catch(() => {});
      pause = Math.min(pause * 2, resumePauseMs.longest);
    }
  }
}

/** Changes, and the revision up to which nothing is missing. */
interface Seen {
  readonly changes: readonly RecentChange[];
  readonly revision: Revision;
}

/** Watches the whole key space from a revision on; whole revisions at a time, each once. */
async function* watchEverything(
  clients: Awaited<ReturnType<Channel["stream"]>>["clients"],
  from: Revision,
  signal: AbortSignal,
  timeoutMs?: number,
): AsyncGenerator<Seen, void, undefined> {
  const zero = Buffer.from([0]);
  const request = create(rpc.WatchCreateRequestSchema, {
    key: zero,
    rangeEnd: zero,
    startRevision: BigInt(from),
    fragment: true,
  });
  const options = { signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  let parts: RecentChange[] = [];
  for await (const response of clients.watch.watch(openRequest(request, signal), options)) {
    if (response.canceled) throw refusalOf(response);
    for (const { kv, type } of response.events) {
      if (!kv) continue;
      const kind = type === 0 ? "put" : "delete";
      parts.push({ revision: Number(kv.modRevision), key: toBuffer(kv.key), type: kind });
    }
    const last = parts.at(-1);
    if (response.fragment || !last) continue;
    yield { changes: parts, revision: last.revision };
    parts = [];
  }
}

function refusalOf(response: rpc.WatchResponse): CodedError {
  const compactRevision = Number(response.compactRevision);
  if (compactRevision > 0)
    return fault("compacted", `what happened before revision ${compactRevision} is not known any more`, {
      details: { compactRevision },
    });
  if (/permission denied/.test(response.cancelReason))
    return new CodedError("permission_denied", "the whole key space may not be watched");
  return fault("lost", "the progress of a watch cannot be found out");
}

/** Reads the whole key space again from `delivered` on, for the one watch that needs it. */
async function replay(
  channel: Channel,
  request: WatchRequest,
  delivered: Revision,
  through: Revision,
): Promise<Standing> {
  const span = spanOf(request);
  const abort = new AbortController();
  const { clients } = await channel.stream();
  let last = 0;
  try {
    for await (const { changes, revision } of watchEverything(
      clients,
      delivered + 1,
      abort.signal,
      callTimeoutMs,
    )) {
      for (const change of changes)
        if (change.revision <= through && wants(request, span, change)) last = change.revision;
      if (revision >= through) return { through, last };
    }
  } catch (error) {
    throw fromWire(error);
  } finally {
    abort.abort();
  }
  throw fault("lost", "the progress of a watch cannot be found out");
}

/** One create request on a stream that stays open until `signal` aborts. */
export async function* openRequest(
  value: rpc.WatchCreateRequest,
  signal: AbortSignal,
): AsyncGenerator<rpc.WatchRequest, void, undefined> {
  yield create(rpc.WatchRequestSchema, { requestUnion: { case: "createRequest", value } });
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
