/**
 * The one queue through which every write goes: writers that wait together share one commit.
 *
 * A job that fails (a condition of its own, an unknown lease) fails alone; the others of its group
 * commit. When the commit itself fails, every job of the group learns the same error. Answers are
 * given only after the backend said that the group is durable.
 */
import { CodedError, isCoded, type Clock } from "@kontinuum/std";
import { fault, storeClosed } from "../faults.ts";
import type { Backend, Needs, Session } from "./backend.ts";

/** Jobs that share one commit at most. */
const maxGroupJobs = 512;
/** Bytes that share one commit at most (a single larger job goes alone). */
const maxGroupBytes = 8 * 1024 * 1024;
/** Jobs that wait at most; beyond it a writer is refused with `unavailable`. */
const maxWaitingJobs = 16_384;
/** Bytes of keys and values that wait at most. */
const maxWaitingBytes = 256 * 1024 * 1024;

/** Part of a commit's duration that writers on their way are waited for. */
const gatherShare = 0.25;
/** Turns of the event loop without a new writer after which nobody is waited for. */
const quietTurns = 3;

/** One write. */
export interface Job<T> {
  readonly needs: Needs;
  readonly bytes: number;
  /** Decides and applies. Throws a `CodedError` before anything was applied, or not at all. */
  run(session: Session): T;
}

interface Waiting {
  readonly needs: Needs;
  readonly bytes: number;
  /** Runs the job and returns how to settle it after the commit. */
  run(session: Session): () => void;
  reject(error: unknown): void;
}

/** Group commit over one backend. */
export class GroupWriter {
  readonly #backend: Backend;
  readonly #clock: Clock;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #lastCommitMs = 0;
  #flushing: Promise<void> | undefined;
  #closed = false;

  constructor(backend: Backend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
  }

  /** Queues a job; resolves when its group is durable. */
  submit<T>(job: Job<T>, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(storeClosed());
      if (signal?.aborted) return reject(cancelled(signal));
      if (this.#waiting.length >= maxWaitingJobs)
        return reject(fault("overloaded", `${maxWaitingJobs} writes wait already: try again shortly`));
      if (this.#waitingBytes + job.bytes > maxWaitingBytes)
        return reject(
          fault("overloaded", `${maxWaitingBytes} bytes wait to be written already: try again shortly`),
        );
      this.#waitingBytes += job.bytes;
      const onAbort = (): void => {
        if (signal) reject(cancelled(signal));
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      const done = (): void => signal?.removeEventListener("abort", onAbort);
      this.#waiting.push({
        needs: job.needs,
        bytes: job.bytes,
        run: (session) => {
          const value = job.run(session);
          return () => {
            done();
            resolve(value);
          };
        },
        reject: (error) => {
          done();
          reject(error);
        },
      });
      this.#flushing ??= this.#flush();
    });
  }

  /** Refuses new jobs and waits for those queued. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#flushing;
  }

  async #flush(): Promise<void> {
    do {
      await this.#gather();
      const began = this.#clock.monotonic();
      await this.#commit(this.#take());
      this.#lastCommitMs = this.#clock.monotonic() - began;
    } while (this.#waiting.length > 0);
    this.#flushing = undefined;
  }

  /**
   * Waits for the end of this turn of the event loop, so that writers whose requests arrived together
   * share a commit. Requests that came over a wire take some turns to be decoded: as long as more keep
   * coming, and for no longer than a part of what the last commit took, they are waited for.
   */
  async #gather(): Promise<void> {
    const until = this.#clock.monotonic() + this.#lastCommitMs * gatherShare;
    for (let quiet = 0; quiet < quietTurns;) {
      const before = this.#waiting.length;
      await new Promise<void>((next) => setImmediate(next));
      if (this.#waiting.length >= maxGroupJobs || this.#clock.monotonic() >= until) return;
      quiet = this.#waiting.length > before ? 0 : quiet + 1;
    }
  }

  #take(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const job of this.#waiting) {
      bytes += job.bytes;
      if (count === maxGroupJobs || (count > 0 && bytes > maxGroupBytes)) break;
      count++;
    }
    const group = this.#waiting.splice(0, count);
    for (const job of group) this.#waitingBytes -= job.bytes;
    return group;
  }

  async #commit(group: readonly Waiting[]): Promise<void> {
    const needs: Needs = {
      scans: group.flatMap((job) => job.needs.scans),
      leases: group.flatMap((job) => job.needs.leases),
      leaseKeys: group.flatMap((job) => job.needs.leaseKeys),
    };
    let settle: (() => void)[] = [];
    try {
      await this.#backend.write(needs, (session) => {
        // A backend may run the work again after a lost race: only the last run counts.
        settle = group.map((job) => {
          try {
            return job.run(session);
          } catch (error) {
            if (!isCoded(error)) throw error;
            return () => job.reject(error);
          }
        });
      });
    } catch (error) {
      for (const job of group) job.reject(error);
      return;
    }
    for (const step of settle) step();
  }
}

function cancelled(signal: AbortSignal): CodedError {
  return new CodedError("cancelled", "the request was cancelled; whether it was done is unknown", {
    cause: signal.reason,
  });
}
