/**
 * A bounded queue between several producers that wait and one consumer.
 */

/** First in, first out; `put` waits while `limit` items wait to be read. */
export class Outbox<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #items: T[] = [];
  /** Items that wait for room, in their order: nothing overtakes them. */
  readonly #blocked: { readonly item: T; readonly done: () => void }[] = [];
  #wake: (() => void) | undefined;
  #ended = false;
  #error: unknown;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds an item once there is room, after those that wait already. After the end it is dropped. */
  async put(item: T): Promise<void> {
    if (this.#ended) return;
    if (this.#items.length >= this.#limit)
      return new Promise<void>((done) => this.#blocked.push({ item, done }));
    this.#items.push(item);
    this.#wake?.();
  }

  /** What waits is still delivered, then the iteration ends or throws. */
  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
    for (const { done } of this.#blocked.splice(0)) done();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        const next = this.#blocked.shift();
        if (next) {
          this.#items.push(next.item);
          next.done();
        }
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
