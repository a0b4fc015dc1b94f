/**
 * Server-sent event streams: many subscribers, one encoding.
 *
 * Events that arrive close together are joined into one buffer per visibility class and written to the
 * raw response. A subscriber that does not read fast enough is cut off, not queued for: it comes back
 * with `Last-Event-ID` and misses nothing that is still in the log.
 */
import type { Edges, Timer } from "@kontinuum/std";
import type { CloudEvent } from "../model/event.ts";
import type { Principal } from "../model/principal.ts";
import type { EventLog, LoggedEvent } from "./event-log.ts";
import { sees, visibilityClass } from "./visibility.ts";

/** Time between two comments on an idle stream, milliseconds. */
export const heartbeatMs = 20_000;
/** Bytes a subscriber may be behind before it is cut off. */
export const maxBacklogBytes = 4 * 1024 * 1024;
/** Streams one replica serves at a time. */
export const maxStreams = 5_000;
const gatherMs = 10;
/** What a client waits before it comes back, milliseconds. */
const reconnectMs = 2_000;

/** The part of a raw response a stream needs. */
export interface StreamSink {
  write(chunk: Buffer): unknown;
  end(): unknown;
  readonly writableLength: number;
}

/** What a subscriber asks for. */
export interface Subscription {
  readonly sink: StreamSink;
  readonly principal: Principal;
  /** The id after which to go on; absent: only what is new. */
  readonly lastEventId: string | undefined;
  /** Only events that match, when given. */
  matches?(event: CloudEvent): boolean;
  /** False once the caller's credentials no longer hold. */
  valid(): boolean;
}

interface Subscriber extends Subscription {
  readonly group: string;
  close(): void;
}

/** See the module comment. */
export class StreamHub {
  readonly #log: EventLog;
  readonly #edges: Edges;
  readonly #subscribers = new Set<Subscriber>();
  #pending: LoggedEvent[] = [];
  #gap = false;
  #gather: Timer | undefined;
  #heartbeat: Timer | undefined;
  #unlisten: (() => void) | undefined;

  constructor(log: EventLog, edges: Edges) {
    this.#log = log;
    this.#edges = edges;
  }

  get size(): number {
    return this.#subscribers.size;
  }

  start(): void {
    this.#unlisten = this.#log.listen((events, gap) => {
      this.#pending.push(...events);
      this.#gap ||= gap;
      this.#gather ??= this.#edges.clock.timer(gatherMs, () => this.#flush());
    });
    this.#beat();
  }

  /** Ends every stream; clients come back to another replica. */
  stop(): void {
    this.#unlisten?.();
    this.#gather?.clear();
    this.#heartbeat?.clear();
    for (const subscriber of this.#subscribers) subscriber.sink.end();
    this.#subscribers.clear();
  }

  /** Ends the streams of callers whose credentials no longer hold. */
  recheck(): void {
    for (const subscriber of this.#subscribers) if (!subscriber.valid()) subscriber.close();
  }

  /** Adds a stream and writes its preamble. Returns how to remove it. */
  add(subscription: Subscription): () => void {
    this.#flush();
    const subscriber: Subscriber = {
      ...subscription,
      group: visibilityClass(subscription.principal),
      close: () => {
        this.#subscribers.delete(subscriber);
        subscription.sink.end();
      },
    };
    subscription.sink.write(Buffer.from(`: kryton event stream\nretry: ${reconnectMs}\n\n`, "utf8"));
    if (subscription.lastEventId !== undefined) {
      const { events, exact } = this.#log.after(subscription.lastEventId);
      if (!exact) subscription.sink.write(gapFrame(events[0]));
      const frames = events.filter((logged) => wants(subscriber, logged)).map((logged) => logged.frame);
      if (frames.length > 0) subscription.sink.write(Buffer.concat(frames));
    }
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  #flush(): void {
    this.#gather?.clear();
    this.#gather = undefined;
    const events = this.#pending.splice(0);
    const gap = this.#gap;
    this.#gap = false;
    if (events.length === 0 && !gap) return;
    const lost = gap ? gapFrame(events[0]) : undefined;
    const joined = new Map<string, Buffer>();
    for (const subscriber of this.#subscribers) {
      if (!subscriber.valid()) {
        subscriber.close();
        continue;
      }
      if (lost) subscriber.sink.write(lost);
      let chunk: Buffer | undefined;
      if (subscriber.matches) {
        chunk = Buffer.concat(events.filter((e) => wants(subscriber, e)).map((e) => e.frame));
      } else {
        chunk = joined.get(subscriber.group);
        if (!chunk) {
          chunk = Buffer.concat(
            events.filter((e) => sees(subscriber.principal, e.event)).map((e) => e.frame),
          );
          joined.set(subscriber.group, chunk);
        }
      }
      if (chunk.length > 0) this.#send(subscriber, chunk);
    }
  }

  #send(subscriber: Subscriber, chunk: Buffer): void {
    if (subscriber.sink.writableLength > maxBacklogBytes) {
      this.#edges.log.info("slow event stream was cut off", { caller: subscriber.principal.name });
      subscriber.close();
      return;
    }
    subscriber.sink.write(chunk);
  }

  #beat(): void {
    this.#heartbeat = this.#edges.clock.timer(heartbeatMs, () => {
      const beat = Buffer.from(": keepalive\n\n", "utf8");
      for (const subscriber of this.#subscribers) {
        if (!subscriber.valid()) subscriber.close();
        else this.#send(subscriber, beat);
      }
      this.#beat();
    });
  }
}

function wants(subscriber: Subscription, logged: LoggedEvent): boolean {
  return sees(subscriber.principal, logged.event) && (subscriber.matches?.(logged.event) ?? true);
}

/** Says that events are missing, instead of pretending otherwise. It has no id: it is not in the log. */
function gapFrame(oldest: LoggedEvent | undefined): Buffer {
  const data = JSON.stringify({
    reason: "events before the oldest one kept were removed or never existed",
    ...(oldest ? { oldestId: oldest.event.id, oldestTime: oldest.event.time } : {}),
  });
  return Buffer.from(`event: gap\ndata: ${data}\n\n`, "utf8");
}
