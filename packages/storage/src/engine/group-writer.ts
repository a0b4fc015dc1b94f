/**
 * The one queue through which every write goes: writers that wait together share one commit.
 *
 * A job that fails (a condition of its own, an unknown lease) fails alone; the others of its group
 * commit. When the commit itself fails, every job of the group learns the same error. Answers are
 * given only after the backend said that the group is durable.
 */
import { CodedError, isCoded } from "@kontinuum/std";
import { fault, storeClosed } from "../faults.ts";
import type { Backend, Needs, Session } from "./backend.ts";

/** Jobs that share one commit at most. */
const maxGroupJobs = 512;
/** Bytes that share one commit at most (a single larger job goes alone). */
const maxGroupBytes = 8 * 1024 * 1024;
/** Jobs that wait at most; beyond it a writer is refused with `unavailable`. */
const maxWaitingJobs = 16_384;

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
  #waiting: Waiting[] = [];
  #flushing: Promise<void> | undefined;
  #closed = false;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Queues a job; resolves when its group is durable. */
  submit<T>(job: Job<T>, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(storeClosed());
      if (this.#waiting.length >= maxWaitingJobs)
        return reject(fault("overloaded", `${maxWaitingJobs} writes wait already: try again shortly`));
      if (signal?.aborted) return reject(cancelled(signal));
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
      // The flush waits for the end of this turn of the event loop, so that writers whose requests
      // arrived together are gathered.
      this.#flushing ??= new Promise<void>((next) => setImmediate(next)).then(() => this.#flush());
    });
  }

  /** Refuses new jobs and waits for those queued. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#flushing;
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) await this.#commit(this.#take());
    this.#flushing = undefined;
  }

  #take(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const job of this.#waiting) {
      bytes += job.bytes;
      if (count === maxGroupJobs || (count > 0 && bytes > maxGroupBytes)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
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
