/**
 * The sequences of a node: boot, install, reset. One runs at a time; the next one ends it first.
 */
import { isCoded } from "@kontinuum/std";

/** What moves a node. Talos drops a request while one of the first four runs. */
export type SequenceName = "install" | "reboot" | "upgrade" | "reset" | "boot" | "shutdown";

/** The work of a sequence; it ends when the signal aborts. */
export type SequenceWork = (signal: AbortSignal) => Promise<void>;

/** Is told of sequences. */
export interface SequenceObserver {
  started(name: SequenceName, actorId: string): void;
  /** It ended by itself, or was ended. */
  ended(name: SequenceName, actorId: string): void;
  /** It failed by itself; another one may be run here. */
  failed(name: SequenceName, actorId: string, error: unknown): void;
}

interface Running {
  name: SequenceName;
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

/** See the module's comment. */
export class Sequences {
  readonly #observer: SequenceObserver;
  #running: Running | undefined;
  #isClosed = false;

  constructor(observer: SequenceObserver) {
    this.#observer = observer;
  }

  /** The one that runs, if any. */
  get current(): SequenceName | undefined {
    return this.#running?.name;
  }

  /** Ends what runs, then runs this. Resolves when it has ended, however. */
  run(name: SequenceName, work: SequenceWork, actorId = ""): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    const before = this.#running;
    before?.abort.abort();
    const abort = new AbortController();
    const done = this.#attempt(name, work, abort, before?.done, actorId);
    this.#running = { name, abort, done };
    return done;
  }

  /**
   * The sequence with this signal has done what it is called after, and the node boots: from now on it is a boot, which
   * another sequence may end.
   */
  goOnAsBoot(signal: AbortSignal): void {
    const running = this.#running;
    if (running?.abort.signal === signal) running.name = "boot";
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
    actorId: string,
  ): Promise<void> {
    await before;
    this.#observer.started(name, actorId);
    let failure: { readonly error: unknown } | undefined;
    try {
      if (!abort.signal.aborted) await work(abort.signal);
    } catch (error) {
      if (!abort.signal.aborted && !isCoded(error, "cancelled")) failure = { error };
    }
    if (this.#running?.abort === abort) this.#running = undefined;
    if (failure) this.#observer.failed(name, actorId, failure.error);
    else this.#observer.ended(name, actorId);
  }
}
