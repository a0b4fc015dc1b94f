/**
 * Lets those who lost a race for one object go on one after another.
 *
 * A write that finds the object changed under it does its work again. When many write one object at once only one of them
 * wins each commit, and all the others would do all their work again for nothing, until they run out of tries. First
 * tries never wait, so nobody who calls back into the server while being waited for is locked out.
 */
import type { Clock } from "@kontinuum/std";

/** Longest wait for those before, in milliseconds: then the race goes on as if there were no turns. */
const maxWaitMs = 2000;

/** Turns by key. */
export class Turns {
  readonly #clock: Clock;
  /** When the last in each line is done. */
  readonly #last = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Waits for those before; answers how to end the turn. */
  async take(key: string): Promise<() => void> {
    const before = this.#last.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(key, promise);
    const end = (): void => {
      if (this.#last.get(key) === promise) this.#last.delete(key);
      resolve();
    };
    if (!before) return end;
    const late = Promise.withResolvers<void>();
    const timer = this.#clock.timer(maxWaitMs, () => late.resolve());
    await Promise.race([before, late.promise]);
    timer.clear();
    return end;
  }
}
