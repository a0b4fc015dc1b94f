/**
 * What a node has to tell of itself: the kernel log of a machine that runs nothing.
 *
 * Lines are of the node's own doings (stages, services, failures), in the form Talos gives its console. The newest
 * are kept; they are gone with the power.
 */
import type { Clock } from "@kontinuum/std";

/** Lines kept. */
const lineLimit = 1_000;

/** See the module's comment. */
export class NodeJournal {
  readonly #clock: Clock;
  #startedAt: number;
  #lines: { readonly at: number; readonly text: string }[] = [];

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
    this.#lines.push({ at: this.#clock.now(), text });
    if (this.#lines.length > lineLimit) this.#lines.shift();
  }

  /** `user: warning: [2026-01-01T00:00:00.000Z]: [talos] …`, oldest first. */
  lines(): string[] {
    return this.#lines.map(
      ({ at, text }) => `user: warning: [${new Date(at).toISOString()}]: [talos] ${text}\n`,
    );
  }

  /** Seconds since the start. */
  get uptimeSeconds(): number {
    return Math.max(0, (this.#clock.now() - this.#startedAt) / 1000);
  }
}
