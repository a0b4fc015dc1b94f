/**
 * One atomic change: documents, the conditions they depend on, and the events that tell of it.
 *
 * State and its events are written in the same transaction, so an event exists exactly when its
 * change does, and the log's order is the store's order.
 */
import { uuidv7, type Edges } from "@kontinuum/std";
import { prefixRange, type Compare, type LeaseId, type Op, type Store } from "@kontinuum/storage/client";
import { formatTime } from "../model/bytes.ts";
import { eventSource, type CloudEvent, type EventDraft } from "../model/event.ts";
import { keys } from "./keyspace.ts";

/** Result of a commit: whether the conditions held, and the revision after it. */
export interface Committed {
  readonly succeeded: boolean;
  readonly revision: number;
}

/** Collects a transaction. */
export class Change {
  readonly compare: Compare[] = [];
  readonly ops: Op[] = [];
  readonly #events: EventDraft[] = [];

  /** Only when there is nothing at `key`. */
  absent(key: string): this {
    this.compare.push({ key, target: "create", result: "equal", operand: 0 });
    return this;
  }

  /** Only when there is nothing under `prefix`. */
  absentPrefix(prefix: string): this {
    this.compare.push({ ...prefixRange(prefix), target: "create", result: "equal", operand: 0 });
    return this;
  }

  /** Only while there is something at `key`. */
  present(key: string): this {
    this.compare.push({ key, target: "create", result: "greater", operand: 0 });
    return this;
  }

  /** Only when `key` was last written at `modRevision` (0: does not exist). */
  unchanged(key: string, modRevision: number): this {
    this.compare.push({ key, target: "mod", result: "equal", operand: modRevision });
    return this;
  }

  /** Only when nothing that is under `prefix` was written after `revision`. */
  noneWrittenSince(prefix: string, revision: number): this {
    this.compare.push({ ...prefixRange(prefix), target: "mod", result: "less", operand: revision + 1 });
    return this;
  }

  /** Only while the document at `key` is exactly `value`. */
  holding(key: string, value: unknown): this {
    this.compare.push({ key, target: "value", result: "equal", operand: JSON.stringify(value) });
    return this;
  }

  /** Only while the fence stands: `key` is still the one created at `createRevision`. */
  fencedBy(fence: Fence): this {
    this.compare.push({ key: fence.key, target: "create", result: "equal", operand: fence.revision });
    return this;
  }

  /** As {@link Change.fencedBy}, when there is a fence at all. */
  heldBy(fence: Fence | undefined): this {
    return fence ? this.fencedBy(fence) : this;
  }

  put(key: string, value: unknown, lease?: LeaseId): this {
    const bytes = Buffer.from(JSON.stringify(value), "utf8");
    this.ops.push({ type: "put", key, value: bytes, ...(lease === undefined ? {} : { lease }) });
    return this;
  }

  delete(key: string): this {
    this.ops.push({ type: "delete", key });
    return this;
  }

  deletePrefix(prefix: string): this {
    this.ops.push({ type: "delete", ...prefixRange(prefix) });
    return this;
  }

  /** Appends an event to the log when the change is made. */
  event(draft: EventDraft): this {
    this.#events.push(draft);
    return this;
  }

  /** Adds everything of `other` to this change. */
  include(other: Change): this {
    this.compare.push(...other.compare);
    this.ops.push(...other.ops);
    this.#events.push(...other.#events);
    return this;
  }

  /** Makes the change, all of it or nothing. */
  async commit(store: Store, edges: Pick<Edges, "clock" | "random">): Promise<Committed> {
    // Ids sort like the events were added, so (revision, id) is the order of the log everywhere.
    const ids = this.#events.map(() => uuidv7(edges.clock, edges.random)).sort();
    const time = formatTime(edges.clock.now());
    const appended = this.#events.map((draft, index): Op => {
      const id = ids[index] ?? "";
      const event: CloudEvent = {
        specversion: "1.0",
        id,
        source: eventSource,
        type: draft.type,
        ...(draft.subject === undefined ? {} : { subject: draft.subject }),
        time,
        datacontenttype: "application/json",
        ...(draft.data === undefined ? {} : { data: { ...draft.data } }),
      };
      return { type: "put", key: keys.event(id), value: JSON.stringify(event) };
    });
    const { succeeded, revision } = await store.txn({
      compare: this.compare,
      success: [...this.ops, ...appended],
    });
    return { succeeded, revision };
  }
}

/** Proof of holding a claim or a leadership: a key and the revision at which it was created. */
export interface Fence {
  readonly key: string;
  readonly revision: number;
}
