/**
 * Server-sent event streams: many subscribers, one encoding, no queues.
 *
 * Events that arrive close together are joined into one buffer per visibility class and written to the raw
 * response. A subscriber has a position in the log, and a bounded number of bytes on its way. One that does not
 * read fast enough is left where it is and goes on from the log when its connection has drained; one that reads
 * nothing at all for a while is cut off, and told after which event to come back.
 */
import type { Edges, Timer } from "@kontinuum/std";
import type { CloudEvent } from "../model/event.ts";
import type { Principal } from "../model/principal.ts";
import type { EventLog, LoggedEvent } from "./event-log.ts";
import { Piece, type StreamSink } from "./stream-output.ts";
import { sees, visibilityClass } from "./visibility.ts";

/** Time between two comments on an idle stream, milliseconds. */
export const heartbeatMs = 20_000;
/** Bytes on their way to one subscriber before it is left to the log. */
export const maxOnTheWayBytes = 256 * 1024;
/** How long a subscriber may read nothing before it is cut off, milliseconds; seen at the next heartbeat. */
export const stalledMs = 30_000;
/** How long a subscriber that was cut off has to take what is on its way, milliseconds. */
export const farewellMs = 5_000;
/** Streams one replica serves at a time. */
export const maxStreams = 5_000;
/** How long events are gathered for one write, milliseconds; longer when writing to all takes long itself. */
const gatherMs = 10;
const longestGatherMs = 50;
/** What a client waits before it comes back, milliseconds. */
const reconnectMs = 2_000;
const preamble = Piece.of(`: kryton event stream\nretry: ${reconnectMs}\n\n`);
const keepalive = Piece.of(": keepalive\n\n");

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
  /** Ordinal of the next event it gets. */
  next: number;
  /** Set while it is served from the log: when it last took something, and how much was on its way then. */
  behind: { since: number; bytes: number } | undefined;
}

/** See the module comment. */
export class StreamHub {
  readonly #log: EventLog;
  readonly #edges: Edges;
  readonly #subscribers = new Set<Subscriber>();
  #pending: LoggedEvent[] = [];
  #gap = false;
  #gather: Timer | undefined;
  /** How long the last round of writes took, milliseconds. */
  #roundMs = 0;
  #heartbeat: Timer | undefined;
  #unlisten: (() => void) | undefined;

  constructor(log: EventLog, edges: Edges) {
    this.#log = log;
    this.#edges = edges;
  }

  get size(): number {
    return this.#subscribers.size;
  }

  /** Bytes written and not yet taken by the connections, of all streams. */
  get onTheWay(): number {
    let sum = 0;
    for (const { sink } of this.#subscribers) sum += sink.onTheWay;
    return sum;
  }

  start(): void {
    this.#unlisten = this.#log.listen((events, gap) => {
      this.#pending.push(...events);
      this.#gap ||= gap;
      // Writing to many takes at most half of the time: whoever makes the events needs some too.
      const delayMs = Math.min(longestGatherMs, Math.max(gatherMs, this.#roundMs));
      this.#gather ??= this.#edges.clock.timer(delayMs, () => this.#flush());
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
    for (const subscriber of this.#subscribers) if (!subscriber.valid()) this.#close(subscriber);
  }

  /** Adds a stream and writes its preamble. Returns how to remove it. */
  add(subscription: Subscription): () => void {
    this.#flush();
    const { sink, lastEventId, principal } = subscription;
    const subscriber: Subscriber = {
      ...subscription,
      group: visibilityClass(principal),
      next: this.#log.next,
      behind: undefined,
    };
    sink.write(preamble);
    this.#subscribers.add(subscriber);
    if (lastEventId !== undefined) {
      const { events, exact } = this.#log.after(lastEventId);
      if (!exact) sink.write(gapFrame(events[0]));
      subscriber.next = events[0]?.ordinal ?? this.#log.next;
      this.#catchUp(subscriber);
    }
    return () => void this.#subscribers.delete(subscriber);
  }

  #flush(): void {
    this.#gather?.clear();
    this.#gather = undefined;
    const events = this.#pending.splice(0);
    const gap = this.#gap;
    this.#gap = false;
    if (events.length === 0 && !gap) return;
    const began = this.#edges.clock.monotonic();
    const lost = gap ? gapFrame(events[0]) : undefined;
    const joined = new Map<string, Piece>();
    for (const subscriber of this.#subscribers) {
      if (!subscriber.valid()) {
        this.#close(subscriber);
        continue;
      }
      if (lost) subscriber.sink.write(lost);
      if (subscriber.behind) continue;
      if (subscriber.next !== events[0]?.ordinal) {
        this.#catchUp(subscriber);
        continue;
      }
      let piece: Piece | undefined;
      if (subscriber.matches) {
        piece = framesOf(events, subscriber);
      } else {
        piece = joined.get(subscriber.group);
        if (!piece) joined.set(subscriber.group, (piece = framesOf(events, subscriber)));
      }
      subscriber.next += events.length;
      if (piece.length > 0) this.#send(subscriber, piece);
    }
    this.#roundMs = this.#edges.clock.monotonic() - began;
  }

  /** Writes what a subscriber has not got yet, as far as its connection takes it. */
  #catchUp(subscriber: Subscriber): void {
    const { sink } = subscriber;
    subscriber.behind = undefined;
    const position = this.#log.from(subscriber.next);
    let { events } = position;
    if (!position.exact) {
      sink.write(gapFrame(events[0]));
      subscriber.next = events[0]?.ordinal ?? this.#log.next;
    }
    while (events.length > 0 && !subscriber.behind) {
      const step = events.slice(0, catchUpStep);
      events = events.slice(catchUpStep);
      subscriber.next += step.length;
      const piece = framesOf(step, subscriber);
      if (piece.length > 0) this.#send(subscriber, piece);
    }
  }

  /** Writes, and leaves the subscriber to the log when too much is on its way. */
  #send(subscriber: Subscriber, piece: Piece): void {
    const { sink } = subscriber;
    sink.write(piece);
    if (sink.onTheWay <= maxOnTheWayBytes) return;
    subscriber.behind = { since: this.#edges.clock.monotonic(), bytes: sink.onTheWay };
    sink.onceDrained(() => {
      if (!this.#subscribers.has(subscriber)) return;
      if (subscriber.valid()) this.#catchUp(subscriber);
      else this.#close(subscriber);
    });
  }

  #beat(): void {
    this.#heartbeat = this.#edges.clock.timer(heartbeatMs, () => {
      for (const subscriber of this.#subscribers) {
        if (!subscriber.valid()) this.#close(subscriber);
        else if (!subscriber.behind) this.#send(subscriber, keepalive);
        else this.#checkStalled(subscriber, subscriber.behind);
      }
      this.#beat();
    });
  }

  #checkStalled(subscriber: Subscriber, behind: { since: number; bytes: number }): void {
    const now = this.#edges.clock.monotonic();
    const bytes = subscriber.sink.onTheWay;
    if (bytes < behind.bytes) {
      subscriber.behind = { since: now, bytes };
      return;
    }
    if (now - behind.since < stalledMs) return;
    this.#edges.log.info("event stream that was not read is cut off", {
      caller: subscriber.principal.name,
    });
    const last = this.#log.at(subscriber.next - 1);
    this.#close(subscriber, cutFrame(last));
  }

  /** Ends a stream; whoever does not take the end in time loses the connection. */
  #close(subscriber: Subscriber, farewell?: Piece): void {
    this.#subscribers.delete(subscriber);
    subscriber.sink.end(farewell);
    this.#edges.clock.timer(farewellMs, () => subscriber.sink.destroy());
  }
}

/** Events put into one write while a subscriber is served from the log. */
const catchUpStep = 64;

function framesOf(events: readonly LoggedEvent[], subscriber: Subscription): Piece {
  return new Piece(
    Buffer.concat(events.filter((event) => wants(subscriber, event)).map(({ frame }) => frame)),
  );
}

function wants(subscriber: Subscription, logged: LoggedEvent): boolean {
  return sees(subscriber.principal, logged.event) && (subscriber.matches?.(logged.event) ?? true);
}

/** Says that events are missing, instead of pretending otherwise. It has no id: it is not in the log. */
function gapFrame(oldest: LoggedEvent | undefined): Piece {
  const data = JSON.stringify({
    reason: "events before the oldest one kept were removed or never existed",
    ...(oldest ? { oldestId: oldest.event.id, oldestTime: oldest.event.time } : {}),
  });
  return Piece.of(`event: gap\ndata: ${data}\n\n`);
}

/** Says why a stream ends and where to go on. It has no id, so the client's own last id stays what it is. */
function cutFrame(last: LoggedEvent | undefined): Piece {
  const data = JSON.stringify({
    reason: "the stream was not read; connect again with Last-Event-ID",
    ...(last ? { lastEventId: last.event.id } : {}),
  });
  return Piece.of(`event: cut\ndata: ${data}\n\n`);
}
