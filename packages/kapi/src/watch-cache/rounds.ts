/**
 * Tells listeners that there is something new, in rounds.
 *
 * One change while nothing goes on is told at once. When telling everybody takes long, what happens meanwhile waits for
 * the next round, and a pause as long as the round lies between: with many listeners changes are told together, and
 * telling never takes more than about half of the process's time from those who write. A long round gives way in between.
 */
import type { Clock } from "@kontinuum/std";

/** Listeners told before others' work gets a turn. */
const sliceSize = 256;
/** Longest pause between two rounds. */
const maxPauseMs = 10;
/** Shorter rounds than this need no pause. */
const minPauseMs = 1;

/** Somebody to tell. */
export interface RoundListener {
  notify(): void;
}

/** Rounds through a set of listeners, which may change meanwhile. */
export class Rounds {
  readonly #listeners: Iterable<RoundListener>;
  readonly #clock: Clock;
  #running = false;
  #wanted = false;

  constructor(listeners: ReadonlySet<RoundListener>, clock: Clock) {
    this.#listeners = listeners;
    this.#clock = clock;
  }

  /** There is something new. Everybody is told after this call, or now. */
  start(): void {
    if (this.#running) {
      this.#wanted = true;
      return;
    }
    this.#running = true;
    this.#wanted = false;
    this.#tell(this.#listeners[Symbol.iterator](), 0);
  }

  /** Tells the rest of a round that took `spentMs` so far. */
  #tell(rest: Iterator<RoundListener>, spentMs: number): void {
    const began = this.#clock.monotonic();
    const spent = (): number => spentMs + this.#clock.monotonic() - began;
    for (let told = 0; told < sliceSize; told++) {
      const next = rest.next();
      if (next.done === true) return this.#pause(Math.min(spent(), maxPauseMs));
      next.value.notify();
    }
    setImmediate(() => this.#tell(rest, spent()));
  }

  #pause(ms: number): void {
    const end = (): void => {
      this.#running = false;
      if (this.#wanted) this.start();
    };
    if (ms < minPauseMs) end();
    else this.#clock.timer(ms, end);
  }
}
