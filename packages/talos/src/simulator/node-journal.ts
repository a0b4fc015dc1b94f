/**
 * What a node has to tell of itself: the kernel log of a machine that runs nothing.
 *
 * Lines are of the node's own doings (stages, services, failures), in the form Talos gives its console. The newest
 * are kept; they are gone with the power.
 */
import { BoundedQueue, type Clock } from "@kontinuum/std";

/** Lines kept. */
const lineLimit = 1_000;

interface Line {
  readonly at: number;
  readonly text: string;
}

/** See the module's comment. */
export class NodeJournal {
  readonly #clock: Clock;
  #startedAt: number;
  readonly #followers = new Set<BoundedQueue<string>>();
  #lines: Line[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  /** The machine starts anew. */
  restart(): void {
    this.#lines = [];
    this.#startedAt = this.#clock.now();
  }

  add(text: string): void {
    const line = { at: this.#clock.now(), text };
    this.#lines.push(line);
    if (this.#lines.length > lineLimit) this.#lines.shift();
    for (const follower of this.#followers) {
      if (follower.push(consoleLine(line))) continue;
      follower.end();
      this.#followers.delete(follower);
    }
  }

  /** `user: warning: [2026-01-01T00:00:00.000Z]: [talos] …`, oldest first. */
  lines(): string[] {
    return this.#lines.map(consoleLine);
  }

  /** Lines from now on; end it with {@link unfollow}. One that falls behind is ended. */
  follow(): BoundedQueue<string> {
    const queue = new BoundedQueue<string>(lineLimit);
    this.#followers.add(queue);
    return queue;
  }

  unfollow(queue: BoundedQueue<string>): void {
    this.#followers.delete(queue);
    queue.end();
  }

  /** Seconds since the start. */
  get uptimeSeconds(): number {
    return Math.max(0, (this.#clock.now() - this.#startedAt) / 1000);
  }
}

function consoleLine({ at, text }: Line): string {
  return `user: warning: [${new Date(at).toISOString()}]: [talos] ${text}\n`;
}
