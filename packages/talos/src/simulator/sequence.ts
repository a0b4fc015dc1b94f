/**
 * The sequences of a node: boot, install, reset. One runs at a time; the next one ends it first.
 */
import { isCoded } from "@kontinuum/std";

/** What moves a node. Talos drops a request while one of the first four runs. */
export type SequenceName = "install" | "reboot" | "upgrade" | "reset" | "boot" | "shutdown";

/** The work of a sequence; it ends when the signal aborts. */
export type SequenceWork = (signal: AbortSignal) => Promise<void>;

interface Running {
  readonly name: SequenceName;
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

/** See the module's comment. */
export class Sequences {
  readonly #onFailure: (name: SequenceName, error: unknown) => void;
  #running: Running | undefined;
  #isClosed = false;

  /** `onFailure` is told of a sequence that failed by itself; it may run another one. */
  constructor(onFailure: (name: SequenceName, error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  /** The one that runs, if any. */
  get current(): SequenceName | undefined {
    return this.#running?.name;
  }

  /** Ends what runs, then runs this. Resolves when it has ended, however. */
  run(name: SequenceName, work: SequenceWork): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    const before = this.#running;
    before?.abort.abort();
    const abort = new AbortController();
    const done = this.#attempt(name, work, abort, before?.done);
    this.#running = { name, abort, done };
    return done;
  }

  /** Ends what runs and waits for its end. */
  async stop(): Promise<void> {
    const running = this.#running;
    running?.abort.abort();
    await running?.done;
  }

  /** As {@link stop}, and nothing runs any more. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.stop();
  }

  async #attempt(
    name: SequenceName,
    work: SequenceWork,
    abort: AbortController,
    before: Promise<void> | undefined,
  ): Promise<void> {
    await before;
    let failure: { readonly error: unknown } | undefined;
    try {
      if (!abort.signal.aborted) await work(abort.signal);
    } catch (error) {
      if (!abort.signal.aborted && !isCoded(error, "cancelled")) failure = { error };
    }
    if (this.#running?.abort === abort) this.#running = undefined;
    if (failure) this.#onFailure(name, failure.error);
  }
}
