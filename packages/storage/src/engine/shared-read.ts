/**
 * One read for all who ask at the same time. Everybody gets an answer to a question that was put after they asked, so a shared
 * answer is as fresh as one of their own; no more than two are under way, however many ask.
 */

/** A read that takes no parameters. */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  #current: Promise<T> | undefined;
  /** Begins when the current one is over: what those get who asked after that had begun. */
  #next: Promise<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  get(): Promise<T> {
    if (!this.#current) return this.#start();
    this.#next ??= this.#current.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  #start(): Promise<T> {
    this.#next = undefined;
    const current = this.#read().finally(() => {
      if (this.#current === current) this.#current = undefined;
    });
    this.#current = current;
    return current;
  }
}
