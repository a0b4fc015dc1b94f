/**
 * The events of a node since it booted: what `Events` streams and what clients wait on after a reboot or a reset.
 *
 * Without a tail only what happens from now on is told. The newest are kept; a watcher that falls behind is ended.
 */
import { BoundedQueue, CodedError, uuidv7, type Clock, type Random } from "@kontinuum/std";
import type { NodeStage } from "./node-view.ts";
import type { SequenceName } from "./sequence.ts";

/** What happened. */
export type NodeHappening =
  | {
      readonly kind: "stage";
      readonly stage: NodeStage;
      readonly unmet: readonly { readonly name: string; readonly reason: string }[];
    }
  | { readonly kind: "phase"; readonly phase: string; readonly action: "start" | "stop" }
  | { readonly kind: "task"; readonly task: string; readonly action: "start" | "stop" }
  | {
      readonly kind: "sequence";
      readonly sequence: SequenceName;
      readonly action: "start" | "stop";
      readonly error?: string;
    };

/** An event. */
export interface NodeEvent {
  /** Sorts by time. */
  readonly id: string;
  /** Of the call that led to it; empty when none did. */
  readonly actorId: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly happening: NodeHappening;
}

/** Which past events to tell first; negative means all. */
export interface EventTail {
  readonly count: number;
  readonly afterId: string;
  readonly seconds: number;
}

/** Events kept, and events that may wait for one watcher. */
const eventLimit = 512;

/** See the module's comment. */
export class NodeEvents {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #watchers = new Set<BoundedQueue<NodeEvent>>();
  #events: NodeEvent[] = [];

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  publish(happening: NodeHappening, actorId = ""): void {
    const event = { id: uuidv7(this.#clock, this.#random), actorId, at: this.#clock.now(), happening };
    this.#events.push(event);
    if (this.#events.length > eventLimit) this.#events.shift();
    for (const watcher of this.#watchers) {
      if (watcher.push(event)) continue;
      watcher.end(new CodedError("unavailable", "the watch fell too far behind"));
      this.#watchers.delete(watcher);
    }
  }

  /** The asked-for past, then what happens. End it with {@link unwatch}. */
  watch(tail: EventTail): BoundedQueue<NodeEvent> {
    const queue = new BoundedQueue<NodeEvent>(2 * eventLimit);
    for (const event of this.#tail(tail)) queue.push(event);
    this.#watchers.add(queue);
    return queue;
  }

  unwatch(queue: BoundedQueue<NodeEvent>): void {
    this.#watchers.delete(queue);
    queue.end();
  }

  /** The node goes down: watches end, and what was is forgotten. */
  close(): void {
    for (const watcher of this.#watchers)
      watcher.end(new CodedError("unavailable", "the node is going down"));
    this.#watchers.clear();
    this.#events = [];
  }

  #tail({ count, afterId, seconds }: EventTail): NodeEvent[] {
    if (afterId !== "") return this.#events.filter(({ id }) => id > afterId);
    if (seconds > 0) return this.#events.filter(({ at }) => at >= this.#clock.now() - seconds * 1000);
    if (count < 0) return [...this.#events];
    return count === 0 ? [] : this.#events.slice(-count);
  }
}
