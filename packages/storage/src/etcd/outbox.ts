/**
 * A bounded queue between several producers that wait and one consumer.
 */

/** First in, first out; `put` waits while `limit` items wait to be read. */
export class Outbox<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #items: T[] = [];
  readonly #blocked: (() => void)[] = [];
  #wake: (() => void) | undefined;
  #ended = false;
  #error: unknown;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds an item once there is room. After the end it is dropped. */
  async put(item: T): Promise<void> {
    while (!this.#ended && this.#items.length >= this.#limit)
      await new Promise<void>((resolve) => this.#blocked.push(resolve));
    if (this.#ended) return;
    this.#items.push(item);
    this.#wake?.();
  }

  /** What waits is still delivered, then the iteration ends or throws. */
  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
    for (const resolve of this.#blocked.splice(0)) resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        this.#blocked.shift()?.();
        yield item;
        continue;
      }
      if (this.#ended) {
        if (this.#error !== undefined) throw this.#error;
        return;
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
  }
}
