/**
 * Work driven by a watch cache: every object that changed is looked at again, one at a time, never twice at once.
 *
 * Level-triggered: a key says only "look at this"; what to do is decided by the present state. Failures and
 * requests to look again come back after a delay.
 */
import { messageOf, type Clock, type Log } from "@kontinuum/std";
import type { CacheEntry } from "../watch-cache/entry.ts";
import type { ResourceCache } from "../watch-cache/resource-cache.ts";

/** Delay after a first failure; doubled each time. */
const minRetryMs = 100;
const maxRetryMs = 30_000;

/** What a worker does. */
export interface CacheWorkerOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Looks at one key; answers after how many milliseconds to look again, if at all. */
  readonly reconcile: (key: string) => Promise<number | undefined>;
}

/** One object seen: for the first time, changed, or gone. */
export interface Change {
  /** Its key in the store. */
  readonly key: string;
  readonly entry: CacheEntry | undefined;
  readonly previous: CacheEntry | undefined;
}

interface Source {
  readonly cache: ResourceCache;
  readonly keysOf: (change: Change) => readonly string[];
  sequence: number;
}

/** Collects keys from caches and works through them. */
export class CacheWorker {
  readonly #options: CacheWorkerOptions;
  readonly #sources: Source[] = [];
  readonly #dirty = new Set<string>();
  readonly #failures = new Map<string, number>();
  #wake: (() => void) | undefined;

  constructor(options: CacheWorkerOptions) {
    this.#options = options;
  }

  /** Follows a loaded cache; `keysOf` turns what was seen into keys of work. Returns how to stop. */
  follow(cache: ResourceCache, keysOf: (change: Change) => readonly string[]): () => void {
    const source: Source = { cache, keysOf, sequence: cache.ring.end };
    const everything = (): void => {
      source.sequence = cache.ring.end;
      for (const entry of cache.list())
        for (const key of keysOf({ key: entry.key, entry, previous: undefined })) this.#dirty.add(key);
      this.#wake?.();
    };
    const listener = {
      notify: () => this.#collect(source),
      reset: (lost: boolean) => {
        if (lost) everything();
      },
    };
    this.#sources.push(source);
    cache.add(listener);
    everything();
    return () => {
      cache.remove(listener);
      this.#sources.splice(this.#sources.indexOf(source), 1);
    };
  }

  /** Has a key looked at. */
  mark(key: string): void {
    this.#dirty.add(key);
    this.#wake?.();
  }

  /** Works until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, name, reconcile } = this.#options;
    const wake = (): void => this.#wake?.();
    signal.addEventListener("abort", wake);
    const timers = new Set<{ clear(): void }>();
    const later = (key: string, delayMs: number): void => {
      const timer = clock.timer(delayMs, () => {
        timers.delete(timer);
        this.mark(key);
      });
      timers.add(timer);
    };
    while (!signal.aborted) {
      const [key] = this.#dirty;
      if (key === undefined) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
        continue;
      }
      this.#dirty.delete(key);
      try {
        const again = await reconcile(key);
        this.#failures.delete(key);
        if (again !== undefined) later(key, again);
      } catch (error) {
        if (signal.aborted) break;
        const delay = Math.min((this.#failures.get(key) ?? minRetryMs / 2) * 2, maxRetryMs);
        this.#failures.set(key, delay);
        log.warn("a controller will try again", {
          controller: name,
          item: key,
          reason: messageOf(error),
          delayMs: delay,
        });
        later(key, delay);
      }
    }
    for (const timer of timers) timer.clear();
    signal.removeEventListener("abort", wake);
  }

  #collect(source: Source): void {
    const { ring } = source.cache;
    source.sequence = Math.max(source.sequence, ring.start);
    for (let event = ring.at(source.sequence); event; event = ring.at(source.sequence)) {
      source.sequence++;
      for (const key of source.keysOf(event)) this.#dirty.add(key);
    }
    this.#wake?.();
  }
}
