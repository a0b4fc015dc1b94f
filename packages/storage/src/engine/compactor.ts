/**
 * Decides when history may go and removes it in small slices.
 *
 * Retention is by age and by count: a revision is dropped only when it is older than `retainMs` and at
 * least `retainRevisions` newer ones exist. Removal is a loop of short slices with pauses, so that it
 * never holds up a request, always makes progress, and goes on after a restart where it stopped.
 */
import { isCoded, messageOf, type Edges, type Timer } from "@kontinuum/std";
import type { Revision } from "../contract.ts";
import type { Backend } from "./backend.ts";

/** How much history is kept. */
export interface Retention {
  /** Time between automatic compactions in milliseconds; 0 turns them off. Default 300,000. */
  readonly intervalMs: number;
  /** The newest revisions kept in any case. Default 1,000. */
  readonly retainRevisions: number;
  /** History younger than this is kept, milliseconds. Default 300,000. */
  readonly retainMs: number;
  /** The most revisions kept, however young: what bounds disk and memory. Default 200,000; 20,000 in memory. */
  readonly maxRevisions: number;
}

/** What applies when nothing is said. */
export const defaultRetention: Retention = {
  intervalMs: 300_000,
  retainRevisions: 1_000,
  retainMs: 300_000,
  maxRevisions: 200_000,
};

/** Length of one slice of removal, milliseconds. */
const sweepSliceMs = 10;
/** Pause between slices, milliseconds. */
const sweepPauseMs = 20;
/** Pause after a failed slice, milliseconds. */
const sweepRetryMs = 2_000;
/** Samples of "revision at a time" kept for the age rule. */
const maxSamples = 1_024;

/** Runs compaction for one store. */
export class Compactor {
  readonly #backend: Backend;
  readonly #edges: Edges;
  readonly #retention: Retention;
  /** Which revision was the newest at which monotonic time. */
  #samples: { readonly at: number; readonly revision: Revision }[] = [];
  #tickTimer: Timer | undefined;
  #sweepTimer: Timer | undefined;
  #sweeping: Promise<void> | undefined;
  #closed = false;
  #shrinking = false;

  constructor(backend: Backend, edges: Edges, retention: Retention) {
    this.#backend = backend;
    this.#edges = edges;
    this.#retention = retention;
  }

  /** Starts the schedule and finishes what an earlier process left. */
  start(): void {
    this.#schedule();
    this.sweepSoon(sweepPauseMs);
  }

  /** The compaction mark has moved: remove what lies below it. */
  sweepSoon(delayMs = 0): void {
    if (this.#closed || this.#sweepTimer || this.#sweeping) return;
    this.#sweepTimer = this.#edges.clock.timer(delayMs, () => {
      this.#sweepTimer = undefined;
      this.#sweeping = this.#sweep().then((again) => {
        this.#sweeping = undefined;
        if (again !== undefined) this.sweepSoon(again);
      });
    });
  }

  /** A write has made `revision`: more than the most that may be kept is compacted at once. */
  grown(revision: Revision): void {
    const { maxRevisions, intervalMs } = this.#retention;
    // A quarter more, so that the mark moves in steps and not with every write.
    if (
      intervalMs <= 0 ||
      this.#shrinking ||
      revision - this.#backend.known.compactRevision <= maxRevisions * 1.25
    )
      return;
    this.#shrinking = true;
    void this.#compactTo(revision - maxRevisions).finally(() => (this.#shrinking = false));
  }

  /** Removes everything below the mark before it resolves. */
  async drain(): Promise<void> {
    await this.#sweeping;
    while (!this.#closed && (await this.#backend.sweep(sweepSliceMs)));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#tickTimer?.clear();
    this.#sweepTimer?.clear();
    await this.#sweeping;
  }

  #schedule(): void {
    const { intervalMs } = this.#retention;
    if (intervalMs <= 0 || this.#closed) return;
    const now = this.#edges.clock.monotonic();
    this.#samples.push({ at: now, revision: this.#backend.known.revision });
    if (this.#samples.length > maxSamples) this.#samples.shift();
    this.#tickTimer = this.#edges.clock.timer(intervalMs, () => {
      void this.#tick().finally(() => this.#schedule());
    });
  }

  async #tick(): Promise<void> {
    const oldEnough = this.#edges.clock.monotonic() - this.#retention.retainMs;
    let aged: Revision = 0;
    let drop = 0;
    for (const sample of this.#samples) {
      if (sample.at > oldEnough) break;
      aged = sample.revision;
      drop++;
    }
    // The newest of the aged samples is all that is needed from now on.
    this.#samples.splice(0, Math.max(0, drop - 1));
    const { retainRevisions } = this.#retention;
    await this.#compactTo(Math.min(aged, this.#backend.known.revision - retainRevisions));
  }

  async #compactTo(target: Revision): Promise<void> {
    try {
      const { compactRevision } = await this.#backend.position();
      if (this.#closed || target <= compactRevision) return;
      await this.#backend.setCompact(target);
      this.sweepSoon();
    } catch (error) {
      this.#warn("compaction was put off", error);
    }
  }

  /** One slice; answers how long to wait before the next one, if there is one. */
  async #sweep(): Promise<number | undefined> {
    try {
      return (await this.#backend.sweep(sweepSliceMs)) ? sweepPauseMs : undefined;
    } catch (error) {
      this.#warn("history could not be removed, trying again", error);
      return sweepRetryMs;
    }
  }

  #warn(message: string, error: unknown): void {
    if (this.#closed) return;
    this.#edges.log.warn(message, {
      code: isCoded(error) ? error.code : "internal",
      reason: messageOf(error),
    });
  }
}
