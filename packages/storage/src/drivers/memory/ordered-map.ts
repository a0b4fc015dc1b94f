/**
 * A map ordered by key bytes: a list of short sorted runs. A step costs a binary search over the runs
 * and a shift inside one, which for the sizes of a control plane beats a balanced tree in JavaScript.
 */

/** Entries in one run before it is split. */
const maxRun = 512;

interface Entry<V> {
  readonly key: Buffer;
  value: V;
}

/** Ordered by bytes, no key twice. */
export class OrderedMap<V> {
  readonly #runs: Entry<V>[][] = [[]];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: Buffer): V | undefined {
    const run = this.#runs[this.#runAt(key)] ?? [];
    const entry = run[lowerBound(run, key)];
    return entry?.key.equals(key) ? entry.value : undefined;
  }

  set(key: Buffer, value: V): void {
    const r = this.#runAt(key);
    const run = this.#runs[r] ?? [];
    const i = lowerBound(run, key);
    const present = run[i];
    if (present && present.key.equals(key)) {
      present.value = value;
      return;
    }
    run.splice(i, 0, { key, value });
    this.#size++;
    if (run.length > maxRun) this.#runs.splice(r + 1, 0, run.splice(maxRun / 2));
  }

  delete(key: Buffer): void {
    const r = this.#runAt(key);
    const run = this.#runs[r] ?? [];
    const i = lowerBound(run, key);
    if (!run[i]?.key.equals(key)) return;
    run.splice(i, 1);
    this.#size--;
    if (run.length === 0 && this.#runs.length > 1) this.#runs.splice(r, 1);
  }

  /** Values with `start <= key < end` (to the end when absent), in order. */
  *between(start: Buffer, end: Buffer | undefined, descending = false): Generator<V, void, undefined> {
    if (descending) {
      const all = [...this.between(start, end)];
      for (let i = all.length - 1; i >= 0; i--) {
        const value = all[i];
        if (value !== undefined) yield value;
      }
      return;
    }
    const first = this.#runAt(start);
    for (let r = first; r < this.#runs.length; r++) {
      const run = this.#runs[r] ?? [];
      for (let i = r === first ? lowerBound(run, start) : 0; i < run.length; i++) {
        const entry = run[i];
        if (!entry) continue;
        if (end !== undefined && entry.key.compare(end) >= 0) return;
        yield entry.value;
      }
    }
  }

  /** Index of the last run whose first key is not above `key`. */
  #runAt(key: Buffer): number {
    let low = 0;
    let high = this.#runs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      const first = this.#runs[middle]?.[0];
      if (first && first.key.compare(key) <= 0) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function lowerBound<V>(run: readonly Entry<V>[], key: Buffer): number {
  let low = 0;
  let high = run.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const entry = run[middle];
    if (entry && entry.key.compare(key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
