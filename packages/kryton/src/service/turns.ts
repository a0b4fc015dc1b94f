/**
 * Callers that change the same thing take turns within one process, instead of overtaking each other in
 * the store until one gives up. Between processes the store decides.
 */

/** Callers that wait for one thing. */
export const maxWaiting = 256;

interface Line {
  last: Promise<void>;
  length: number;
}

/** See the module comment. */
export class Turns {
  readonly #lines = new Map<string, Line>();

  /** Runs `work` after everybody who came earlier for `key`. `undefined` when too many wait. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T | undefined> {
    let line = this.#lines.get(key);
    if (!line) this.#lines.set(key, (line = { last: Promise.resolve(), length: 0 }));
    if (line.length >= maxWaiting) return undefined;
    const before = line.last;
    const { promise, resolve } = Promise.withResolvers<void>();
    line.last = promise;
    line.length++;
    try {
      await before;
      return await work();
    } finally {
      line.length--;
      if (line.length === 0) this.#lines.delete(key);
      resolve();
    }
  }
}
