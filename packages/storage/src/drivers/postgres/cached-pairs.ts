/**
 * Ranges from a cache of pairs: the database names the newest pairs of a span by their ids, and only those
 * that are not at hand are fetched.
 */
import type { KeyValue, Revision } from "../../contract.ts";
import type { Change, Scan, Scanned } from "../../engine/backend.ts";
import { PairCache } from "../../engine/pair-cache.ts";
import type { Row } from "./connections.ts";
import { numbered } from "./group.ts";
import { integer, pairAt } from "./rows.ts";
import { positionFrom } from "./scans.ts";
import * as sql from "./sql.ts";

/** Pairs from which on a range asks for ids first; below it, one statement is quicker. */
const worthwhile = 64;

/** Runs a prepared statement. */
export type Query = (name: string, text: string, values: unknown[]) => Promise<Row[]>;

/** The pairs that one process has seen lately. */
export class CachedPairs {
  readonly #cache = new PairCache<string>();
  readonly #query: Query;

  constructor(query: Query) {
    this.#query = query;
  }

  /** Forgets everything: another server's revisions mean something else. */
  clear(): void {
    this.#cache.clear();
  }

  /** Remembers what was committed. */
  add(changes: readonly Change[]): void {
    for (const { change, sub } of numbered(changes))
      if (change.type === "put") this.#cache.set(`${change.kv.modRevision}.${sub}`, change.kv);
  }

  /** Whether a scan is better asked here than directly. */
  suits({ span, revision, limit, countOnly, keysOnly }: Scan): boolean {
    const large = limit === 0 || limit >= worthwhile;
    return large && !span.single && revision === 0 && countOnly !== true && keysOnly !== true;
  }

  /** The newest pairs of a span; `undefined` when removal of history came between and it must be read whole. */
  async scan({
    span,
    limit,
    descending = false,
    uncounted = false,
  }: Scan): Promise<(Scanned & { at: Revision }) | undefined> {
    const counted = limit > 0 && !uncounted;
    const shape: sql.Shape = { bounded: span.end !== undefined, descending, counted, keysOnly: false };
    const values = [span.start, span.end ?? null, limit > 0 ? limit : null];
    const [row] = await this.#query(sql.shapeName("ids", shape), sql.idsNow(shape), values);
    const position = positionFrom(row);
    const joined = row?.[3];
    const ids = typeof joined === "string" ? joined.split(" ") : [];
    const missing = ids.filter((id) => !this.#cache.get(id));
    const fetched = missing.length > 0 ? await this.#fetch(missing) : new Map<string, KeyValue>();
    const kvs: KeyValue[] = [];
    for (const id of ids) {
      const kv = fetched.get(id) ?? this.#cache.get(id);
      // Removed between the two statements, or pushed out of the cache: too rare to be clever about.
      if (!kv) return undefined;
      kvs.push(kv);
    }
    return { kvs, count: counted ? integer(row?.[2]) : kvs.length, at: position.revision };
  }

  async #fetch(ids: readonly string[]): Promise<Map<string, KeyValue>> {
    const parts = ids.map((id) => id.split("."));
    const rows = await this.#query("byid", sql.pairsById, [
      parts.map(([rev]) => rev),
      parts.map(([, sub]) => sub),
    ]);
    const fetched = new Map<string, KeyValue>();
    for (const row of rows) {
      const kv = pairAt(row, 0);
      if (!kv) continue;
      const id = `${kv.modRevision}.${integer(row[6])}`;
      fetched.set(id, kv);
      this.#cache.set(id, kv);
    }
    return fetched;
  }
}
