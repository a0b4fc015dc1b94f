/**
 * The objects of a cache, by key and in the order of keys.
 *
 * In order they lie in short runs: a change moves a few hundred neighbours at most, however many there are.
 */
import type { CacheEntry } from "./entry.ts";

/** A run that grows beyond this is cut in halves. */
const maxRun = 512;

/** Objects by key, in order. */
export class EntryIndex {
  readonly #byKey = new Map<string, CacheEntry>();
  /** Runs in order, none of them empty. */
  readonly #runs: CacheEntry[][] = [];

  /** Of entries with different keys, in any order. */
  constructor(entries: readonly CacheEntry[] = []) {
    const sorted = entries.toSorted((a, b) => (a.key < b.key ? -1 : 1));
    for (const entry of sorted) this.#byKey.set(entry.key, entry);
    for (let i = 0; i < sorted.length; i += maxRun / 2) this.#runs.push(sorted.slice(i, i + maxRun / 2));
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): CacheEntry | undefined {
    return this.#byKey.get(key);
  }

  /** Puts an entry in; answers the one of the same key that it replaces. */
  set(entry: CacheEntry): CacheEntry | undefined {
    const { key } = entry;
    const previous = this.#byKey.get(key);
    this.#byKey.set(key, entry);
    const at = Math.min(this.#runOf(key), this.#runs.length - 1);
    const run = this.#runs[at];
    if (!run) this.#runs.push([entry]);
    else {
      run.splice(lowerBound(run, key), previous ? 1 : 0, entry);
      if (run.length > maxRun) this.#runs.splice(at + 1, 0, run.splice(maxRun / 2));
    }
    return previous;
  }

  /** Takes a key out; answers its entry. */
  delete(key: string): CacheEntry | undefined {
    const previous = this.#byKey.get(key);
    if (!previous) return undefined;
    this.#byKey.delete(key);
    const at = this.#runOf(key);
    const run = this.#runs[at];
    run?.splice(lowerBound(run, key), 1);
    if (run?.length === 0) this.#runs.splice(at, 1);
    return previous;
  }

  /** Entries whose keys are at or after `from` and before `end`, in order. Not to be changed while it is read. */
  *range(from: string, end: string): Generator<CacheEntry, void> {
    for (let at = this.#runOf(from), first = true; at < this.#runs.length; at++, first = false) {
      const run = this.#runs[at] ?? [];
      for (let i = first ? lowerBound(run, from) : 0; i < run.length; i++) {
        const entry = run[i];
        if (!entry || entry.key >= end) return;
        yield entry;
      }
    }
  }

  /** How many there are at or after `from` and before `end`. */
  count(from: string, end: string): number {
    return Math.max(0, this.#before(end) - this.#before(from));
  }

  #before(key: string): number {
    const at = this.#runOf(key);
    let count = 0;
    for (let i = 0; i < at; i++) count += this.#runs[i]?.length ?? 0;
    const run = this.#runs[at];
    return run ? count + lowerBound(run, key) : count;
  }

  /** Index of the first run that ends at or after a key; the number of runs when none does. */
  #runOf(key: string): number {
    let low = 0;
    let high = this.#runs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const last = this.#runs[middle]?.at(-1);
      if (last && last.key < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function lowerBound(run: readonly CacheEntry[], key: string): number {
  let low = 0;
  let high = run.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = run[middle];
    if (entry && entry.key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
