/**
 * A bounded queue between a producer that may not wait and a consumer that may.
 */
import { CodedError } from "./errors.ts";

/** First in, first out, with a bound. */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #limit: number;
  #items: T[] = [];
  #waiting: { resolve(result: IteratorResult<T>): void; reject(error: unknown): void }[] = [];
  #ended = false;
  #error: unknown;

  /** `limit` is the greatest number of items that wait. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many items wait. */
  get size(): number {
    return this.#items.length;
  }

  /** Adds an item; `false` when the queue is full or ended, and the item was not taken. */
  push(item: T): boolean {
    if (this.#ended) return false;
    const waiter = this.#waiting.shift();
    if (waiter) {
      waiter.resolve({ done: false, value: item });
      return true;
    }
    if (this.#items.length >= this.#limit) return false;
    this.#items.push(item);
    return true;
  }

  /** No more items; what waits is still delivered, then `error` is thrown or the iteration ends. */
  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    for (const waiter of this.#waiting.splice(0)) {
      if (error === undefined) waiter.resolve({ done: true, value: undefined });
      else waiter.reject(error);
    }
  }

  /** The next item, waiting for one if need be. */
  async next(): Promise<IteratorResult<T>> {
    const item = this.#items.shift();
    if (item !== undefined) return { done: false, value: item };
    if (this.#ended) {
      if (this.#error !== undefined) throw this.#error;
      return { done: true, value: undefined };
    }
    if (this.#waiting.length >= 1024) throw new CodedError("internal", "too many consumers of one queue");
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return {
      next: () => this.next(),
      return: () => {
        this.end();
        this.#items = [];
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }
}
