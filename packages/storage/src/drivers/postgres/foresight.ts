/**
 * What the writer knows without asking: the newest pairs of keys that it wrote or read under the lock, and the revision they
 * are of. A group decided on them is sent together with the question whether that is still the newest revision, so it takes one
 * round trip; a wrong guess costs the statement, never a wrong answer.
 */
import type { KeyValue, Revision } from "../../contract.ts";
import type { Needs } from "../../engine/backend.ts";
import { PairCache } from "../../engine/pair-cache.ts";
import { keyName, newestOf } from "./group.ts";
import { PrefetchedSession } from "./prefetched-session.ts";

/** Groups that look first after a guess was wrong: others write, or keys are touched that are not at hand. */
const groupsOfDoubt = 16;

/** A session decided on what is known, and what it takes for granted. */
export interface Guess {
  readonly session: PrefetchedSession;
  /** Must still be the newest revision. */
  readonly base: Revision;
  /** Keys that must not exist. */
  readonly absent: readonly Buffer[];
}

/** The foresight of one writer. */
export class Foresight {
  readonly #pairs = new PairCache<string>();
  #base: Revision | undefined;
  #doubt = 0;

  /** A session over what is known; `undefined` when the group needs more than single keys, or after a wrong guess. */
  guess(needs: Needs): Guess | undefined {
    if (this.#base === undefined) return undefined;
    if (needs.leases.length > 0 || needs.leaseKeys.length > 0) return undefined;
    if (needs.scans.some((scan) => !scan.span.single || scan.revision > 0)) return undefined;
    if (this.#doubt > 0) {
      this.#doubt--;
      return undefined;
    }
    const pairs: KeyValue[] = [];
    const absent: Buffer[] = [];
    for (const { span } of needs.scans) {
      const kv = this.#pairs.get(keyName(span.start));
      if (kv) pairs.push(kv);
      else absent.push(span.start);
    }
    // The mark matters to reads in the past only, and there are none.
    const position = { revision: this.#base, compactRevision: 0 };
    const session = new PrefetchedSession({ position, pairs, leases: [], history: new Map() });
    return { session, base: this.#base, absent };
  }

  /** A guess was wrong. */
  wrong(): void {
    this.#doubt = groupsOfDoubt;
  }

  /** A session that was decided on revision `base` is committed. */
  committed(base: Revision, fetched: readonly KeyValue[], session: PrefetchedSession): void {
    if (base !== this.#base) this.#pairs.clear();
    for (const kv of fetched) this.#pairs.set(keyName(kv.key), kv);
    for (const [name, { change }] of newestOf(session.changes)) {
      if (change.type === "put") this.#pairs.set(name, change.kv);
      else this.#pairs.delete(name);
    }
    this.#base = session.revision;
  }

  /** Nothing is known any more. */
  forget(): void {
    this.#pairs.clear();
    this.#base = undefined;
  }
}
