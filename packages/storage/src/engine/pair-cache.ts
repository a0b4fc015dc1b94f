/**
 * Recently used pairs by the id of their log entry. An entry never changes, so nothing here can be
 * stale; what is old is forgotten a generation at a time.
 */
import type { KeyValue } from "../contract.ts";

/** Bytes of keys and values held, about. */
const pairCacheBytes = 32 * 1024 * 1024;
/** What one entry costs beside its bytes, about. */
const overheadBytes = 256;

/** A bounded cache in two generations. */
export class PairCache<Id extends string | number> {
  #young = new Map<Id, KeyValue>();
  #old = new Map<Id, KeyValue>();
  #youngBytes = 0;

  get(id: Id): KeyValue | undefined {
    const young = this.#young.get(id);
    if (young) return young;
    const old = this.#old.get(id);
    if (old) this.set(id, old);
    return old;
  }

  /** Forgets one pair. */
  delete(id: Id): void {
    this.#young.delete(id);
    this.#old.delete(id);
  }

  /** Forgets everything: ids that were given out may be given out again. */
  clear(): void {
    this.#young.clear();
    this.#old.clear();
    this.#youngBytes = 0;
  }

  set(id: Id, kv: KeyValue): void {
    this.#young.set(id, kv);
    this.#youngBytes += kv.key.length + kv.value.length + overheadBytes;
    if (this.#youngBytes < pairCacheBytes / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}
