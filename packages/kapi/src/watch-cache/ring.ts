/**
 * The recent past of one resource: events in order, addressed by an ever-growing sequence number.
 *
 * Bounded by count and bytes; what falls out is still in the store's history, from where a watcher catches up.
 */
import type { CacheEntry } from "./entry.ts";

/** What became of an object. */
export type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

/** One change of one object. */
export interface CacheEvent {
  readonly revision: number;
  readonly key: string;
  /** The object after the change; absent when it was deleted or does not decode. */
  readonly entry: CacheEntry | undefined;
  /** The object before the change; absent when it is new. */
  readonly previous: CacheEntry | undefined;
  /** The object as its deletion shows it: the state before, at the deletion's revision. Filled on demand. */
  gone?: CacheEntry;
  /** Encoded lines by format, each made once however many watch. */
  lines?: Map<string, Buffer | Promise<Buffer>>;
}

/** Events kept at most. */
export const maxRingEvents = 4096;
/** Bytes of objects kept alive by the ring at most. */
export const maxRingBytes = 16 * 1024 * 1024;
/** Encoded lines are kept for so many newest events only. */
const keepLines = 256;

/** A bounded log of events. */
export class EventRing {
  #events: CacheEvent[] = [];
  #bytes = 0;
  /** Sequence number of the oldest event kept. */
  #start = 0;
  /** Every event after this revision is in the ring. */
  #oldest: number;

  constructor(revision: number) {
    this.#oldest = revision;
  }

  /** Sequence number the next event will get. */
  get end(): number {
    return this.#start + this.#events.length;
  }

  /** Sequence number of the oldest event. */
  get start(): number {
    return this.#start;
  }

  /** Every event of a later revision than this is still here. */
  get oldestRevision(): number {
    return this.#oldest;
  }

  at(sequence: number): CacheEvent | undefined {
    return this.#events[sequence - this.#start];
  }

  push(event: CacheEvent): void {
    this.#events.push(event);
    this.#bytes += weight(event);
    const old = this.#events[this.#events.length - 1 - keepLines];
    if (old?.lines) delete old.lines;
    if (this.#events.length > maxRingEvents || this.#bytes > maxRingBytes) this.#trim();
  }

  /** Sequence number of the first event after `revision`. */
  after(revision: number): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const event = this.#events[middle];
      if (event && event.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return this.#start + low;
  }

  /** Drops the older half, whole revisions only. */
  #trim(): void {
    let cut = this.#events.length >>> 1;
    const last = this.#events[cut - 1];
    while (last && this.#events[cut]?.revision === last.revision) cut++;
    for (const event of this.#events.splice(0, cut)) {
      this.#bytes -= weight(event);
      this.#oldest = event.revision;
    }
    this.#start += cut;
  }
}

function weight(event: CacheEvent): number {
  return 256 + (event.entry?.rest.length ?? 0) + (event.previous?.rest.length ?? 0);
}
