/**
 * Delivery of events to one sink: a durable queue that is nothing but a position in the event log.
 *
 * Events of one subject are delivered in order; different subjects do not wait for each other. What
 * fails is tried again with growing pauses and in the end becomes a dead letter. The position moves
 * past an event once it and everything before it is done, so after a crash some events are delivered
 * again (with the same delivery id) and none is lost while it is in the log.
 */
import { messageOf, type Edges, type OutboundClient } from "@kontinuum/std";
import { prefixRange, type Store } from "@kontinuum/storage/client";
import type { EventLog, LoggedEvent } from "../events/event-log.ts";
import { formatTime } from "../model/bytes.ts";
import { Change, type Fence } from "../store/change.ts";
import { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { pause } from "../store/leadership.ts";
import { signatureHeaders } from "./signature.ts";
import { cursorSchema, freshCursor, settingsSinkId, type Cursor, type DeadLetter } from "./sink.ts";

/** Attempts before an event becomes a dead letter. */
export const maxAttempts = 10;
/** Limit of one attempt, milliseconds. */
export const attemptLimitMs = 3_000;
const firstDelayMs = 1_000;
const longestDelayMs = 5 * 60_000;
/** Events of one sink that are worked on at the same time. */
const maxInFlight = 64;
/** Subjects delivered to at the same time. */
const maxLanes = 8;
/** Dead letters of one sink that are kept: the newest. */
export const maxDeadLetters = 500;
const saveEveryMs = 500;
const maxAnswerBytes = 64 * 1024;

/** A sink, ready for use. */
export interface Destination {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
  wants(event: LoggedEvent): boolean;
}

/** What delivery needs. */
export interface DeliveryOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly log: EventLog;
  readonly outbound: OutboundClient;
  onAttempt?(ok: boolean): void;
}

interface Item {
  readonly logged: LoggedEvent;
  done: boolean;
}

/** Events of one subject, in order. */
interface Lane {
  readonly items: Item[];
  running: boolean;
}

/** Delivers to one sink, on the replica that holds its leadership. */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #documents: Documents;
  readonly #destination: Destination;
  readonly #fence: Fence;
  readonly #signal: AbortSignal;
  readonly #flight: Item[] = [];
  readonly #lanes = new Map<string, Lane>();
  #cursor: Cursor = freshCursor("");
  #readAfter = "";
  #dirty = false;
  #wake = Promise.withResolvers<void>();

  constructor(options: DeliveryOptions, destination: Destination, fence: Fence, signal: AbortSignal) {
    this.#options = options;
    this.#documents = new Documents(options.store, options.edges.log);
    this.#destination = destination;
    this.#fence = fence;
    this.#signal = signal;
  }

  /** Delivers until the signal aborts. */
  async run(): Promise<void> {
    const { log, edges } = this.#options;
    const cursorKey = keys.webhookCursor(this.#destination.id);
    const stored = await this.#documents.get(cursorKey, cursorSchema);
    await log.catchUp();
    // A sink begins with what happens after it was made.
    this.#cursor = stored?.value ?? freshCursor(log.window.at(-1)?.event.id ?? "");
    this.#readAfter = this.#cursor.eventId;
    this.#dirty = stored === undefined;
    const unlisten = log.listen(() => this.#wake.resolve());
    const onAbort = (): void => this.#wake.resolve();
    this.#signal.addEventListener("abort", onAbort, { once: true });
    try {
      while (!this.#signal.aborted) {
        this.#fill();
        await this.#save();
        await Promise.race([this.#wake.promise, pause(edges, saveEveryMs, this.#signal)]);
        this.#wake = Promise.withResolvers<void>();
      }
    } finally {
      unlisten();
      this.#signal.removeEventListener("abort", onAbort);
    }
    // Whoever goes on from here should not begin with what was delivered already.
    await this.#save();
  }

  /** Takes events from the log until enough are in flight. */
  #fill(): void {
    if (this.#flight.length >= maxInFlight) return;
    const { events, exact } = this.#options.log.after(this.#readAfter);
    if (!exact && this.#readAfter !== "") {
      this.#cursor = { ...this.#cursor, missed: true };
      this.#dirty = true;
    }
    for (const logged of events) {
      if (this.#flight.length >= maxInFlight) return;
      this.#readAfter = logged.event.id;
      const item: Item = { logged, done: !this.#destination.wants(logged) };
      this.#flight.push(item);
      if (!item.done) this.#enqueue(item);
    }
    this.#advance();
  }

  #enqueue(item: Item): void {
    const { subject = item.logged.event.id } = item.logged.event;
    const lane = this.#lanes.get(subject);
    if (lane) lane.items.push(item);
    else this.#lanes.set(subject, { items: [item], running: false });
    this.#startLanes();
  }

  #startLanes(): void {
    let running = 0;
    for (const lane of this.#lanes.values()) if (lane.running) running++;
    for (const [subject, lane] of this.#lanes) {
      if (running >= maxLanes) return;
      if (lane.running) continue;
      lane.running = true;
      running++;
      void this.#drain(subject, lane);
    }
  }

  async #drain(subject: string, lane: Lane): Promise<void> {
    for (let item = lane.items[0]; item && !this.#signal.aborted; item = lane.items[0]) {
      await this.#deliver(item);
      if (!item.done) break;
      lane.items.shift();
      this.#advance();
    }
    this.#lanes.delete(subject);
    this.#startLanes();
    this.#wake.resolve();
  }

  async #deliver(item: Item): Promise<void> {
    const { edges } = this.#options;
    let problem = "";
    for (let attempt = 1; attempt <= maxAttempts && !this.#signal.aborted; attempt++) {
      const answer = await this.#attempt(item.logged, attempt);
      this.#options.onAttempt?.(answer.ok);
      const lastAttemptAt = formatTime(edges.clock.now());
      const { lastError: _, ...rest } = this.#cursor;
      this.#dirty = true;
      if (answer.ok) {
        item.done = true;
        this.#cursor = {
          ...rest,
          delivered: rest.delivered + 1,
          lastAttemptAt,
          lastDeliveredAt: lastAttemptAt,
          lastStatus: answer.status,
        };
        return;
      }
      problem = answer.problem;
      this.#cursor = {
        ...rest,
        failed: rest.failed + 1,
        lastAttemptAt,
        lastError: problem,
        ...(answer.status === 0 ? {} : { lastStatus: answer.status }),
      };
      if (attempt < maxAttempts) {
        const ceiling = Math.min(longestDelayMs, firstDelayMs * 2 ** (attempt - 1));
        await pause(edges, ceiling / 2 + edges.random.float() * (ceiling / 2), this.#signal);
      }
    }
    if (!this.#signal.aborted) item.done = await this.#bury(item.logged, problem);
  }

  async #attempt(
    { event, json }: LoggedEvent,
    attempt: number,
  ): Promise<{ ok: boolean; status: number; problem: string }> {
    const { edges, outbound } = this.#options;
    const body = Buffer.from(json, "utf8");
    const seconds = Math.floor(edges.clock.now() / 1000);
    try {
      const { status } = await outbound.request({
        method: "POST",
        url: this.#destination.url,
        headers: {
          "Content-Type": "application/cloudevents+json",
          "X-Kryton-Delivery": event.id,
          "X-Kryton-Timestamp": String(seconds),
          "X-Kryton-Attempt": String(attempt),
          ...signatureHeaders(body, this.#destination.secret, seconds),
        },
        body,
        timeoutMs: attemptLimitMs,
        maxBytes: maxAnswerBytes,
        signal: this.#signal,
      });
      return { ok: status < 300, status, problem: `answered ${status}` };
    } catch (error) {
      return { ok: false, status: 0, problem: messageOf(error) };
    }
  }

  /** Keeps an event that could not be delivered; false when this replica may not any more. */
  async #bury({ event }: LoggedEvent, lastError: string): Promise<boolean> {
    const { store, edges } = this.#options;
    const sink = this.#destination.id;
    const letter: DeadLetter = {
      eventId: event.id,
      type: event.type,
      ...(event.subject === undefined ? {} : { subject: event.subject }),
      attempts: maxAttempts,
      lastError,
      at: formatTime(edges.clock.now()),
      event,
    };
    edges.log.warn("event could not be delivered", { sink, eventId: event.id, problem: lastError });
    // The position must not move past an event that is neither delivered nor kept.
    while (!this.#signal.aborted) {
      try {
        const change = this.#change().put(keys.deadLetter(sink, event.id), letter);
        const { kvs } = await store.range({ ...prefixRange(keys.deadLetter(sink)), keysOnly: true });
        const kept = kvs
          .map(({ key }) => key.toString("utf8"))
          .filter((key) => key !== keys.deadLetter(sink, event.id));
        for (const key of kept.slice(0, Math.max(0, kept.length - maxDeadLetters + 1))) change.delete(key);
        if (!(await change.commit(store, edges)).succeeded) return false;
        this.#cursor = { ...this.#cursor, deadLetters: this.#cursor.deadLetters + 1 };
        this.#dirty = true;
        return true;
      } catch (error) {
        edges.log.error("dead letter could not be kept yet", {
          sink,
          eventId: event.id,
          problem: messageOf(error),
        });
        await pause(edges, firstDelayMs, this.#signal);
      }
    }
    return false;
  }

  #advance(): void {
    let first = this.#flight[0];
    while (first?.done) {
      this.#cursor = { ...this.#cursor, eventId: first.logged.event.id };
      this.#dirty = true;
      this.#flight.shift();
      first = this.#flight[0];
    }
  }

  async #save(): Promise<void> {
    if (!this.#dirty) return;
    this.#dirty = false;
    const { store, edges } = this.#options;
    await this.#change().put(keys.webhookCursor(this.#destination.id), this.#cursor).commit(store, edges);
  }

  /** A change that is made only while this replica delivers and the sink exists: nothing is left of one that was removed. */
  #change(): Change {
    const { id } = this.#destination;
    const change = new Change().fencedBy(this.#fence);
    return id === settingsSinkId ? change : change.present(keys.webhook(id));
  }
}
