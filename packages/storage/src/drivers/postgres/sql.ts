/**
 * The tables and statements of the driver.
 *
 * Revisions come from one row that a writer locks: the order of commits is the order of revisions, with
 * no gaps, on any number of replicas. Keys are `bytea`, whose order is that of bytes. What a read checks
 * (newest revision, compaction mark) and what it reads are one statement, so one snapshot.
 */

/** Version of the schema below. */
export const schemaVersion = 1;
/** Bytes of values after which a page of the log ends, at the end of a revision. */
const logPageBytes = 4 * 1024 * 1024;
/** Advisory locks: creating the schema, and removing history. */
export const locks = { schema: 7_310_001, sweep: 7_310_002 } as const;
/** Channel that is told of every commit. */
export const channel = "kontinuum_storage";

/** Creates what is missing. */
export const schema = `
CREATE TABLE IF NOT EXISTS kontinuum_meta(
  one boolean PRIMARY KEY DEFAULT true CHECK (one), version int NOT NULL,
  revision bigint NOT NULL, compact bigint NOT NULL) WITH (fillfactor = 10);
CREATE TABLE IF NOT EXISTS kontinuum_log(
  rev bigint NOT NULL, sub int NOT NULL, key bytea NOT NULL, created bigint NOT NULL,
  version bigint NOT NULL, lease bigint NOT NULL, prev bigint NOT NULL, value bytea NOT NULL,
  PRIMARY KEY (rev, sub))
  WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE UNIQUE INDEX IF NOT EXISTS kontinuum_log_key ON kontinuum_log(key, rev);
CREATE INDEX IF NOT EXISTS kontinuum_log_turn ON kontinuum_log(rev, key, version) WHERE version <= 1;
CREATE TABLE IF NOT EXISTS kontinuum_head(
  key bytea PRIMARY KEY, rev bigint NOT NULL, sub int NOT NULL, lease bigint NOT NULL)
  WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX IF NOT EXISTS kontinuum_head_lease ON kontinuum_head(lease, key) WHERE lease <> 0;
CREATE TABLE IF NOT EXISTS kontinuum_lease(id bigint PRIMARY KEY, ttl bigint NOT NULL, expires_at timestamptz NOT NULL);
CREATE INDEX IF NOT EXISTS kontinuum_lease_expiry ON kontinuum_lease(expires_at);
CREATE TABLE IF NOT EXISTS kontinuum_sweep(one boolean PRIMARY KEY DEFAULT true CHECK (one), rev bigint NOT NULL, sub int NOT NULL);
INSERT INTO kontinuum_meta(version, revision, compact) VALUES (${schemaVersion}, 1, 0) ON CONFLICT DO NOTHING;
INSERT INTO kontinuum_sweep(rev, sub) VALUES (0, -1) ON CONFLICT DO NOTHING;
`;

/** Columns of a pair, of a log row `l`. Lease ids do not fit a double: they travel as text. */
const pair = "l.key, l.rev, l.created, l.version, l.lease::text, l.value";

/** `$i <= key [AND key < $j]` */
function inRange(column: string, start: string, end: string | undefined): string {
  return end === undefined ? `${column} >= ${start}` : `${column} >= ${start} AND ${column} < ${end}`;
}

/** Shape of a range read. */
export interface Shape {
  readonly bounded: boolean;
  readonly descending: boolean;
  /** What lies beyond the limit is counted. */
  readonly counted: boolean;
  readonly keysOnly: boolean;
}

/** A name for a statement of a shape. */
export function shapeName(prefix: string, shape: Shape): string {
  return `${prefix}${shape.bounded ? "b" : ""}${shape.descending ? "d" : ""}${shape.counted ? "c" : ""}${shape.keysOnly ? "k" : ""}`;
}

/** Newest revision and compaction mark. */
export const position = "SELECT revision, compact FROM kontinuum_meta";

/** One pair, newest; parameter: key. */
export const point = `SELECT m.revision, m.compact, NULL, ${pair} FROM kontinuum_meta m
  LEFT JOIN (kontinuum_head h JOIN kontinuum_log l ON l.rev = h.rev AND l.sub = h.sub) ON h.key = $1`;

/** Newest pairs of a span; parameters: start, end, limit. The third column is the count when asked for. */
export function pairsNow(shape: Shape): string {
  const end = shape.bounded ? "$2" : undefined;
  const order = shape.descending ? "DESC" : "ASC";
  const count = shape.counted
    ? `(SELECT count(*) FROM kontinuum_head WHERE ${inRange("key", "$1", end)})`
    : "NULL";
  const columns = shape.keysOnly ? pair.replace("l.value", "''::bytea") : pair;
  return `SELECT m.revision, m.compact, ${count}, l.* FROM kontinuum_meta m LEFT JOIN LATERAL (
      SELECT ${columns} FROM kontinuum_head h JOIN kontinuum_log l ON l.rev = h.rev AND l.sub = h.sub
      WHERE ${inRange("h.key", "$1", end)} AND ($2::bytea IS NOT NULL OR true)
      ORDER BY h.key ${order} LIMIT $3) l ON true ORDER BY l.key ${order}`;
}

/**
 * Ids (`rev.sub`, joined by spaces) of the newest pairs of a span; parameters: start, end, limit. One value
 * for any number of pairs: what is cached need not travel again.
 */
export function idsNow(shape: Shape): string {
  const end = shape.bounded ? "$2" : undefined;
  const order = shape.descending ? "DESC" : "ASC";
  const count = shape.counted
    ? `(SELECT count(*) FROM kontinuum_head WHERE ${inRange("key", "$1", end)})`
    : "NULL";
  return `SELECT m.revision, m.compact, ${count}, (SELECT string_agg(x.rev || '.' || x.sub, ' ' ORDER BY x.key ${order}) FROM (
      SELECT key, rev, sub FROM kontinuum_head WHERE ${inRange("key", "$1", end)} AND ($2::bytea IS NOT NULL OR true)
      ORDER BY key ${order} LIMIT $3) x) FROM kontinuum_meta m`;
}

/** Pairs by id; parameters: revisions, subs. */
export const pairsById = `SELECT ${pair}, l.sub FROM unnest($1::bigint[], $2::int[]) x(rev, sub)
  JOIN kontinuum_log l ON l.rev = x.rev AND l.sub = x.sub`;

/** Live keys of a span; parameters: start, end. */
export function countNow(bounded: boolean): string {
  return `SELECT m.revision, m.compact, (SELECT count(*) FROM kontinuum_head
    WHERE ${inRange("key", "$1", bounded ? "$2" : undefined)} AND ($2::bytea IS NOT NULL OR true)) FROM kontinuum_meta m`;
}

/** Live keys as of a revision, from those of today and the births and deaths since; parameters: start, end, revision. */
function countAtExpression(bounded: boolean): string {
  const range = inRange("key", "$1", bounded ? "$2" : undefined);
  return `(SELECT count(*) FROM kontinuum_head WHERE ${range}) + (SELECT coalesce(sum(CASE version WHEN 1 THEN -1 ELSE 1 END), 0)
    FROM kontinuum_log WHERE version <= 1 AND rev > $3 AND ${range})`;
}

/** Keys of a span as of a revision; parameters: start, end, revision. */
export function countAt(bounded: boolean): string {
  return `SELECT m.revision, m.compact, ${countAtExpression(bounded)} FROM kontinuum_meta m
    WHERE $2::bytea IS NOT NULL OR true`;
}

/**
 * Pairs of a span as of a revision; parameters: start, end, revision, limit. Jumps from key to key in the
 * index, so the number of retained versions does not matter.
 */
export function pairsAt(shape: Shape): string {
  const end = shape.bounded ? "$2" : undefined;
  const order = shape.descending ? "DESC" : "ASC";
  const upper = end === undefined ? "" : `AND key < ${end}`;
  const next = shape.descending ? "key < k.key AND key >= $1" : `key > k.key ${upper}`;
  const count = shape.counted ? countAtExpression(shape.bounded) : "NULL";
  return `WITH RECURSIVE k(key) AS (
      (SELECT key FROM kontinuum_log WHERE key >= $1 ${upper} AND ($2::bytea IS NOT NULL OR true) ORDER BY key ${order} LIMIT 1)
      UNION ALL
      SELECT (SELECT key FROM kontinuum_log WHERE ${next} ORDER BY key ${order} LIMIT 1) FROM k WHERE k.key IS NOT NULL)
    SELECT m.revision, m.compact, ${count}, l.* FROM kontinuum_meta m LEFT JOIN LATERAL (
      SELECT l.* FROM k CROSS JOIN LATERAL (
        SELECT ${pair} FROM kontinuum_log l WHERE l.key = k.key AND l.rev <= $3 ORDER BY l.rev DESC LIMIT 1) l
      WHERE k.key IS NOT NULL AND l.version > 0 LIMIT $4) l ON true ORDER BY l.key ${order}`;
}

/**
 * A page of the log; parameters: from, entries, start, end. Columns: newest revision, mark, revision that the
 * page is complete to, the entry with its predecessor's revision, the predecessor.
 *
 * The span is a filter and no condition of an index (`IS TRUE`): a page is short, a span may be everything.
 */
export function logPage(bounded: boolean, withPrev: boolean): string {
  const p = withPrev
    ? "p.key, p.rev, p.created, p.version, p.lease::text, p.value"
    : "NULL, NULL, NULL, NULL, NULL, NULL";
  const join = withPrev
    ? "LEFT JOIN kontinuum_log p ON p.key = l.key AND p.rev = l.prev AND l.rev > t.compact"
    : "";
  return `WITH page AS MATERIALIZED (
      SELECT rev, sub, octet_length(value) AS size FROM kontinuum_log WHERE rev >= $1 ORDER BY rev, sub LIMIT $2 + 1),
    cut AS MATERIALIZED (SELECT x.rev FROM (
        SELECT rev, sub, row_number() OVER entries AS n, sum(size) OVER entries AS size
        FROM page WINDOW entries AS (ORDER BY rev, sub)) x
      WHERE x.n > $2 OR x.size > ${logPageBytes} ORDER BY x.rev, x.sub LIMIT 1),
    t AS MATERIALIZED (
      SELECT m.revision, m.compact, CASE WHEN cut.rev IS NULL THEN m.revision ELSE greatest($1::bigint, cut.rev - 1) END AS through
      FROM kontinuum_meta m LEFT JOIN cut ON true)
    SELECT t.revision, t.compact, t.through, l.*, ${p} FROM t
    LEFT JOIN LATERAL (SELECT l.key, l.rev, l.created, l.version, l.lease::text, l.value, l.prev, l.sub FROM kontinuum_log l
      WHERE l.rev >= $1 AND l.rev <= (SELECT through FROM t) AND (${inRange("l.key", "$3", bounded ? "$4" : undefined)}) IS TRUE
        AND ($4::bytea IS NOT NULL OR true)) l ON true
    ${join} ORDER BY l.rev, l.sub`;
}

/**
 * Takes the writer's lock and says where the store stands; parameter: keys. The last column is how many of them exist: as of
 * that revision, if the revision is one whose commit the caller had seen before.
 */
export const lockMeta = `SELECT revision, compact, pg_current_xact_id()::text,
  (SELECT count(*) FROM kontinuum_head WHERE key = ANY($1::bytea[])) FROM kontinuum_meta FOR UPDATE`;

/** Newest pairs of many keys; parameter: keys. */
export const pairsOf = `SELECT ${pair} FROM unnest($1::bytea[]) k(key)
  JOIN kontinuum_head h ON h.key = k.key JOIN kontinuum_log l ON l.rev = h.rev AND l.sub = h.sub`;

/** Newest pairs bound to leases; parameter: lease ids as text. */
export const pairsOfLeases = `SELECT ${pair} FROM kontinuum_head h JOIN kontinuum_log l ON l.rev = h.rev AND l.sub = h.sub
  WHERE h.lease = ANY($1::bigint[]) AND h.lease <> 0`;

/** Milliseconds left of a lease row `x`. */
const left = "(extract(epoch FROM x.expires_at - clock_timestamp()) * 1000)::float8";

/** Leases; parameter: ids as text. */
export const leasesOf = `SELECT x.id::text, x.ttl, ${left} FROM kontinuum_lease x WHERE x.id = ANY($1::bigint[])`;

/**
 * Writes a group: log entries (parallel arrays $1–$8), heads to set ($9–$12), heads to drop ($13), leases to
 * start ($14, $15) and to drop ($16), and the new revision ($17); tells everybody who listens. Does nothing unless the
 * revision is $18; run under the lock.
 */
export const writeGroup = `
  WITH base AS MATERIALIZED (SELECT FROM kontinuum_meta WHERE revision = $18),
  entries AS (
    INSERT INTO kontinuum_log SELECT x.* FROM base, unnest($1::bigint[], $2::int[], $3::bytea[], $4::bigint[],
      $5::bigint[], $6::bigint[], $7::bigint[], $8::bytea[]) x),
  heads AS (
    INSERT INTO kontinuum_head SELECT x.* FROM base, unnest($9::bytea[], $10::bigint[], $11::int[], $12::bigint[]) x
    ON CONFLICT (key) DO UPDATE SET rev = excluded.rev, sub = excluded.sub, lease = excluded.lease),
  gone AS (DELETE FROM kontinuum_head WHERE key = ANY($13::bytea[]) AND EXISTS (SELECT FROM base)),
  started AS (
    INSERT INTO kontinuum_lease SELECT id, ttl, clock_timestamp() + make_interval(secs => ttl)
    FROM base, unnest($14::bigint[], $15::bigint[]) x(id, ttl)
    ON CONFLICT (id) DO UPDATE SET ttl = excluded.ttl, expires_at = excluded.expires_at),
  ended AS (DELETE FROM kontinuum_lease WHERE id = ANY($16::bigint[]) AND EXISTS (SELECT FROM base))
  UPDATE kontinuum_meta SET revision = $17 FROM base
  RETURNING pg_notify('${channel}', revision::text)`;

/** What became of a transaction whose answer was lost; parameter: its id. */
export const transactionStatus = "SELECT pg_xact_status($1::xid8)";

export const setCompact = "UPDATE kontinuum_meta SET compact = $1 WHERE compact < $1";

/** One step of removal; parameters: after revision, after sub, mark, entries. */
export const sweepStep = `
  WITH page AS MATERIALIZED (
    SELECT rev, sub, key, version, prev FROM kontinuum_log WHERE (rev, sub) > ($1, $2) AND rev <= $3 ORDER BY rev, sub LIMIT $4),
  superseded AS (DELETE FROM kontinuum_log l USING page WHERE page.prev > 0 AND l.key = page.key AND l.rev = page.prev),
  tombstones AS (DELETE FROM kontinuum_log l USING page
    WHERE page.version = 0 AND page.rev < $3 AND l.rev = page.rev AND l.sub = page.sub)
  SELECT count(*), (SELECT rev FROM page ORDER BY rev DESC, sub DESC LIMIT 1),
    (SELECT sub FROM page ORDER BY rev DESC, sub DESC LIMIT 1) FROM page`;
export const readSweep = "SELECT rev, sub FROM kontinuum_sweep";
export const saveSweep = "UPDATE kontinuum_sweep SET rev = $1, sub = $2";
export const trySweepLock = `SELECT pg_try_advisory_xact_lock(${locks.sweep})`;

export const allLeases = "SELECT id::text FROM kontinuum_lease ORDER BY id";
export const leaseKeys =
  "SELECT key FROM kontinuum_head WHERE lease = $1::bigint AND lease <> 0 ORDER BY key";
export const dueLeases =
  "SELECT id::text FROM kontinuum_lease WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1";
export const nextLease = `SELECT ${left} FROM kontinuum_lease x ORDER BY x.expires_at LIMIT 1`;

/** Bytes taken, live share of log rows, keys. */
export const status = `SELECT
  pg_total_relation_size('kontinuum_log') + pg_total_relation_size('kontinuum_head') + pg_total_relation_size('kontinuum_lease'),
  (SELECT coalesce(sum(n_dead_tup)::float8 / nullif(sum(n_live_tup + n_dead_tup), 0), 0) FROM pg_stat_user_tables
    WHERE relname IN ('kontinuum_log', 'kontinuum_head')),
  (SELECT count(*) FROM kontinuum_head)`;

/** Pairs of a backup; parallel arrays. */
export const loadPairs = `
  WITH entries AS (
    INSERT INTO kontinuum_log SELECT rev, sub, key, created, version, lease, 0, value
    FROM unnest($1::bigint[], $2::int[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[])
      x(rev, sub, key, created, version, lease, value) RETURNING key, rev, sub, lease)
  INSERT INTO kontinuum_head SELECT key, rev, sub, lease FROM entries`;
/** A lease of a backup; parameters: id, time to live, seconds left. */
export const loadLease =
  "INSERT INTO kontinuum_lease VALUES ($1::bigint, $2, clock_timestamp() + make_interval(secs => $3::float8))";
export const loadMeta = "UPDATE kontinuum_meta SET revision = $1::bigint, compact = $1::bigint";

/** What must hold between the tables, as queries for the keys where it does not. */
export const checks: readonly { readonly what: string; readonly text: string }[] = [
  {
    what: "a live key without its log entry",
    text: `SELECT h.key FROM kontinuum_head h LEFT JOIN kontinuum_log l ON l.rev = h.rev AND l.sub = h.sub
      WHERE l.key IS NULL OR l.version = 0 LIMIT 100`,
  },
  {
    what: "a live key that has a newer log entry",
    text: `SELECT h.key FROM kontinuum_head h
      WHERE EXISTS (SELECT 1 FROM kontinuum_log n WHERE n.key = h.key AND n.rev > h.rev) LIMIT 100`,
  },
  {
    what: "a key whose newest log entry is a value but that is not live",
    text: `SELECT l.key FROM kontinuum_log l LEFT JOIN kontinuum_head h ON h.key = l.key WHERE l.version > 0 AND h.key IS NULL
      AND NOT EXISTS (SELECT 1 FROM kontinuum_log n WHERE n.key = l.key AND n.rev > l.rev) LIMIT 100`,
  },
  {
    what: "a lease that differs between a live key and its log entry",
    text: `SELECT h.key FROM kontinuum_head h JOIN kontinuum_log l ON l.rev = h.rev AND l.sub = h.sub
      WHERE h.lease <> l.lease LIMIT 100`,
  },
  {
    what: "a log entry with impossible revisions",
    text: `SELECT key FROM kontinuum_log WHERE rev > (SELECT revision FROM kontinuum_meta)
      OR (version > 0 AND created > rev) OR version < 0 LIMIT 100`,
  },
  {
    what: "a key bound to a lease that does not exist",
    text: "SELECT key FROM kontinuum_head WHERE lease <> 0 AND lease NOT IN (SELECT id FROM kontinuum_lease) LIMIT 100",
  },
];
