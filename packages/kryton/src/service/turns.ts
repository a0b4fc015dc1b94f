/**
 * Callers that change the same thing take turns within one process, instead of overtaking each other in
 * the store until one gives up. Between processes the store decides.
 */

/** Callers that wait for one thing. */
export const maxWaiting = 256;

/** See the module comment. */
export class Turns {
  readonly #last = new Map<string, { done: Promise<void>; waiting: number }>();

  /** Runs `work` after everybody who came earlier for `key`. `undefined` when too many wait. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T | undefined> {
    const before = this.#last.get(key);
    if (before && before.waiting >= maxWaiting) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    const mine = { done: promise, waiting: (before?.waiting ?? 0) + 1 };
    this.#last.set(key, mine);
    try {
      await before?.done;
      return await work();
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
      resolve();
    }
  }
}
