/**
 * The SQL of the driver, prepared once each. Ranges are conditions on key bytes, never patterns, so
 * user text is never interpreted and an index always answers.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";

/** The columns of {@link decodePair}, of table `l`. */
const pairColumns =
  "l.id, l.key, l.rev, l.created, l.version, CASE l.lease WHEN 0 THEN NULL ELSE CAST(l.lease AS TEXT) END, l.value";

/** Shape of a range query. */
export interface RangeShape {
  /** The span has an end. */
  readonly bounded: boolean;
  readonly descending: boolean;
}

/** Statements by name, and those built for a shape of range. */
export class Statements {
  readonly #db: DatabaseSync;
  readonly #built = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Prepares `sql` once; rows are arrays. */
  get(sql: string): StatementSync {
    const present = this.#built.get(sql);
    if (present) return present;
    const statement = this.#db.prepare(sql);
    statement.setReturnArrays(true);
    this.#built.set(sql, statement);
    return statement;
  }

  /** Log id of the newest entry of a key. */
  readonly headId = "SELECT id FROM head WHERE key = ?";
  readonly pair = `SELECT ${pairColumns} FROM log l WHERE l.id = ?`;

  /** Log ids of live pairs in a span; parameters: start, [end,] limit (-1 for all). */
  headIds({ bounded, descending }: RangeShape): string {
    return `SELECT id FROM head WHERE ${inRange("key", bounded)} ORDER BY key ${descending ? "DESC" : "ASC"} LIMIT ?`;
  }

  /** The same with the pairs themselves. */
  headPairs({ bounded, descending }: RangeShape): string {
    return `SELECT ${pairColumns} FROM head h JOIN log l ON l.id = h.id WHERE ${inRange("h.key", bounded)}
      ORDER BY h.key ${descending ? "DESC" : "ASC"} LIMIT ?`;
  }

  /** Live keys in a span; parameters: start[, end]. */
  headCount(bounded: boolean): string {
    return `SELECT count(*) FROM head WHERE ${inRange("key", bounded)}`;
  }

  /**
   * How many more keys a span had after revision R than it has now; parameters: R, start[, end].
   * Each key's life begins with version 1 and ends with version 0.
   */
  countDifference(bounded: boolean): string {
    return `SELECT ifnull(sum(CASE version WHEN 1 THEN -1 ELSE 1 END), 0) FROM log INDEXED BY log_turn
      WHERE version <= 1 AND rev > ? AND ${inRange("key", bounded)}`;
  }

  /**
   * Log ids of the pairs of a span as of revision R; parameters: start, [end, end,] R, limit, in the order
   * of their names here: `:start`, `:end`, `:rev`, `:limit`. Jumps from key to key in the index, so that the
   * number of retained versions does not matter.
   */
  idsAt({ bounded, descending }: RangeShape): string {
    const upper = bounded ? "AND key < :end" : "";
    const order = descending ? "DESC" : "ASC";
    const next = descending ? "key < k.key AND key >= :start" : `key > k.key ${upper}`;
    return `WITH RECURSIVE k(key) AS (
        SELECT (SELECT key FROM log WHERE key >= :start ${upper} ORDER BY key ${order} LIMIT 1)
        UNION ALL
        SELECT (SELECT key FROM log WHERE ${next} ORDER BY key ${order} LIMIT 1) FROM k WHERE k.key IS NOT NULL)
      SELECT id FROM (
        SELECT (SELECT CASE WHEN version > 0 THEN id END FROM log
          WHERE log.key = k.key AND rev <= :rev ORDER BY rev DESC LIMIT 1) AS id
        FROM k WHERE k.key IS NOT NULL)
      WHERE id IS NOT NULL LIMIT :limit`;
  }

  /** First revision after a page of the log; parameters: from, entries on the page. */
  readonly logPageEnd = "SELECT rev FROM log WHERE rev >= ? ORDER BY rev LIMIT 1 OFFSET ?";

  /** Entries of a page of the log; parameters: from, through, start[, end]. */
  logPage(bounded: boolean): string {
    return `SELECT id, prev FROM log WHERE rev BETWEEN ? AND ? AND ${inRange("key", bounded)} ORDER BY id`;
  }

  readonly insertLog = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
  readonly putHead =
    "INSERT INTO head VALUES (?, ?, ?) ON CONFLICT(key) DO UPDATE SET id = excluded.id, lease = excluded.lease";
  readonly dropHead = "DELETE FROM head WHERE key = ?";
  readonly maxId = "SELECT ifnull(max(id), 0) FROM log";
  readonly getMeta = "SELECT value FROM meta WHERE name = ?";
  readonly setMeta = "UPDATE meta SET value = ? WHERE name = ?";

  /** Entries to look at while removing history; parameters: after id, from revision, mark, limit. */
  readonly sweepPage =
    "SELECT id, rev, version, prev FROM log WHERE id > ? AND rev >= ? AND rev <= ? ORDER BY rev, id LIMIT ?";
  readonly dropLog = "DELETE FROM log WHERE id = ?";

  readonly putLease =
    "INSERT INTO lease VALUES (?, ?, ?) ON CONFLICT(id) DO UPDATE SET ttl = excluded.ttl, expires_at = excluded.expires_at";
  readonly dropLease = "DELETE FROM lease WHERE id = ?";
  readonly allLeases = "SELECT CAST(id AS TEXT), ttl, expires_at FROM lease";
  readonly leaseKeys = "SELECT key FROM head WHERE lease = ? AND lease <> 0 ORDER BY key";
}

function inRange(column: string, bounded: boolean): string {
  return bounded ? `${column} >= ? AND ${column} < ?` : `${column} >= ?`;
}
