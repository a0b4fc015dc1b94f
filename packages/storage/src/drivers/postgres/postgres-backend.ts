/**
 * The `postgres` driver: any number of replicas over one database.
 *
 * A group of writes holds the lock of the one-row revision counter from its first look at the data to
 * its commit, so the order of commits is the order of revisions and nobody decides on stale data. Reads
 * are single statements: what they check and what they return are one snapshot.
 */
import { CodedError, isCoded, type Edges } from "@kontinuum/std";
import type pg from "pg";
import type { CallOptions, LeaseId, Revision } from "../../contract.ts";
import type {
  Backend,
  BackendStatus,
  Change,
  Contents,
  LeaseRecord,
  LogPage,
  Needs,
  Position,
  Scan,
  Scanned,
  Session,
} from "../../engine/backend.ts";
import { SharedRead } from "../../engine/shared-read.ts";
import type { Span } from "../../engine/span.ts";
import { compacted, futureRevision } from "../../faults.ts";
import { byteaArray, leaseArray } from "./arrays.ts";
import { CachedPairs } from "./cached-pairs.ts";
import { connect, query, readPool, type Row } from "./connections.ts";
import { Feed } from "./feed.ts";
import { isPassing, postgresFault } from "./postgres-faults.ts";
import { bytes, integer, leaseId, pairAt, real } from "./rows.ts";
import { positionFrom, scanStatement, scannedFrom } from "./scans.ts";
import { Servers } from "./servers.ts";
import * as sql from "./sql.ts";
import { Writer } from "./writer.ts";

/** How long opening waits for a database that does not answer yet, milliseconds. */
const readyTimeoutMs = 30_000;
/** Pause between tries while opening, milliseconds. */
const readyPauseMs = 500;
/** Times a read is tried when its connection was lost. */
const maxReadAttempts = 3;
/** Log entries that one step of removal looks at. */
const sweepEntries = 500;
/** Log entries that the feed reads at a time. */
const feedPage = 1_000;

const everything: Span = { start: Buffer.alloc(0), end: undefined, single: false };

/** A backend over a PostgreSQL database. */
export class PostgresBackend implements Backend {
  readonly driver = "postgres";
  readonly exclusive = false;
  readonly #servers: Servers;
  readonly #edges: Edges;
  readonly #pool: pg.Pool;
  readonly #writer: Writer;
  readonly #feed: Feed;
  readonly #pairs = new CachedPairs((name, text, values) => this.#read(name, text, values));
  readonly #position = new SharedRead(async () => {
    const position = positionFrom((await this.#read("position", sql.position))[0]);
    this.#feed.noticed(position);
    return position;
  });
  #known: Position;
  #listener: ((changes: readonly Change[] | undefined) => void) | undefined;
  #lossListener: (() => void) | undefined;

  /** Connects, creates the tables when they are missing, and starts to follow the log. */
  static async open(url: string, edges: Edges): Promise<PostgresBackend> {
    const servers = new Servers(url);
    const position = await prepare(servers, edges);
    return new PostgresBackend(servers, edges, position);
  }

  private constructor(servers: Servers, edges: Edges, position: Position) {
    this.#servers = servers;
    this.#edges = edges;
    this.#known = position;
    this.#pool = readPool(servers);
    this.#writer = new Writer(servers, edges.clock);
    this.#feed = new Feed(
      {
        servers,
        edges,
        read: async (from) => {
          const rows = await this.#logRows(from, everything, true, feedPage);
          return { ...pageFrom(rows, from), position: positionFrom(rows[0]) };
        },
        publish: (next, changes) => {
          this.#known = next;
          if (changes) this.#pairs.add(changes);
          if (changes === undefined || changes.length > 0) this.#listener?.(changes);
        },
        lost: (next) => {
          this.#known = next;
          this.#lossListener?.();
        },
      },
      position,
    );
    servers.onTakeover(() => {
      this.#pairs.clear();
      this.#writer.forget();
      this.#feed.doubt();
    });
    this.#feed.start();
  }

  get known(): Position {
    return this.#known;
  }

  position(): Promise<Position> {
    return this.#position.get();
  }

  async scan(scan: Scan, _options?: CallOptions): Promise<Scanned & { at: Revision }> {
    const cached = this.#pairs.suits(scan) ? await this.#pairs.scan(scan) : undefined;
    if (cached) return cached;
    const { name, text, values } = scanStatement(scan);
    const rows = await this.#read(name, text, values);
    const { revision, compactRevision } = positionFrom(rows[0]);
    if (scan.revision > revision) throw futureRevision(scan.revision, revision);
    if (scan.revision > 0 && scan.revision < compactRevision) throw compacted(scan.revision, compactRevision);
    return scannedFrom(scan, rows);
  }

  async write(needs: Needs, work: (session: Session) => void): Promise<void> {
    const { changes, revision } = await this.#writer.write(needs, work);
    this.#feed.committed(changes, revision);
  }

  async log(request: { from: Revision; span: Span; prevKv: boolean; limit: number }): Promise<LogPage> {
    const rows = await this.#logRows(request.from, request.span, request.prevKv, request.limit);
    const { revision, compactRevision } = positionFrom(rows[0]);
    this.#feed.noticed({ revision, compactRevision });
    if (request.from < compactRevision) throw compacted(request.from, compactRevision);
    return pageFrom(rows, request.from);
  }

  onCommit(listener: (changes: readonly Change[] | undefined) => void): void {
    this.#listener = listener;
  }

  onLoss(listener: () => void): void {
    this.#lossListener = listener;
  }

  async setCompact(revision: Revision): Promise<void> {
    await this.#read("compact", sql.setCompact, [revision]);
    this.#feed.noticed({ revision: 0, compactRevision: revision });
  }

  async sweep(budgetMs: number): Promise<boolean> {
    const until = this.#edges.clock.monotonic() + budgetMs;
    for (;;) {
      if (!(await this.#sweepOnce())) return false;
      if (this.#edges.clock.monotonic() >= until) return true;
    }
  }

  async lease(id: LeaseId): Promise<LeaseRecord | undefined> {
    const [row] = await this.#read("leases", sql.leasesOf, [leaseArray([id])]);
    return row && { id, ttl: integer(row[1]), remainingMs: real(row[2]) };
  }

  async leases(): Promise<readonly LeaseId[]> {
    return (await this.#read("alllease", sql.allLeases)).map((row) => leaseId(row[0]));
  }

  async leaseKeys(id: LeaseId): Promise<readonly Buffer[]> {
    return (await this.#read("leasekeys", sql.leaseKeys, [String(id)])).map((row) => bytes(row[0]));
  }

  async due(limit: number): Promise<{ ids: readonly LeaseId[]; nextMs: number | undefined }> {
    const ids = (await this.#read("due", sql.dueLeases, [limit])).map((row) => leaseId(row[0]));
    const next = (await this.#read("nextlease", sql.nextLease))[0]?.[0];
    return { ids, nextMs: next === undefined ? undefined : Math.max(0, real(next)) };
  }

  async status(): Promise<BackendStatus> {
    const [size, dead, keys] = (await this.#read("status", sql.status))[0] ?? [];
    const sizeBytes = integer(size);
    return { sizeBytes, sizeInUseBytes: Math.round(sizeBytes * (1 - real(dead))), keys: integer(keys) };
  }

  async load(contents: Contents): Promise<void> {
    try {
      const client = await this.#pool.connect();
      try {
        await client.query("BEGIN");
        await query(client, "lock", sql.lockMeta, [byteaArray([])]);
        await loadContents(client, contents);
        await client.query("COMMIT");
        client.release();
      } catch (error) {
        client.release(true);
        throw error;
      }
    } catch (error) {
      throw postgresFault(error);
    }
    this.#feed.noticed({ revision: contents.revision, compactRevision: contents.revision });
    this.#known = { revision: contents.revision, compactRevision: contents.revision };
  }

  async *check(): AsyncGenerator<string, void, undefined> {
    // On a connection of its own: these read whole tables, for as long as it takes.
    let client: pg.Client | undefined;
    try {
      client = await connect(this.#servers, { statement_timeout: 0, query_timeout: 0 });
      for (const { what, text } of sql.checks)
        for (const [key] of await query(client, "", text))
          yield `${what}: ${JSON.stringify(bytes(key).toString())}`;
    } catch (error) {
      throw postgresFault(error);
    } finally {
      await client?.end().catch(() => {});
    }
  }

  async close(): Promise<void> {
    this.#listener = undefined;
    await Promise.all([this.#feed.close(), this.#writer.close(), this.#pool.end()]);
  }

  /** A statement that may be repeated. */
  async #read(name: string, text: string, values: unknown[] = []): Promise<Row[]> {
    for (let attempt = 1; ; attempt++) {
      const url = this.#servers.current;
      try {
        return await query(this.#pool, name, text, values);
      } catch (error) {
        if (isPassing(error)) this.#servers.lost(url);
        if (attempt === maxReadAttempts || !isPassing(error)) throw postgresFault(error);
        await this.#edges.clock.sleep(100 * attempt);
      }
    }
  }

  #logRows(from: Revision, span: Span, prevKv: boolean, limit: number): Promise<Row[]> {
    const bounded = span.end !== undefined;
    const name = `log${bounded ? "b" : ""}${prevKv ? "p" : ""}`;
    return this.#read(name, sql.logPage(bounded, prevKv), [from, limit, span.start, span.end ?? null]);
  }

  /** One step of removal, by one process at a time; whether there is more to do. */
  async #sweepOnce(): Promise<boolean> {
    try {
      const client = await this.#pool.connect();
      try {
        await client.query("BEGIN");
        const [allowed] = (await query(client, "sweeplock", sql.trySweepLock))[0] ?? [];
        const more = allowed === true && (await this.#sweepStep(client));
        await client.query("COMMIT");
        client.release();
        return more;
      } catch (error) {
        client.release(true);
        throw error;
      }
    } catch (error) {
      throw postgresFault(error);
    }
  }

  async #sweepStep(client: pg.PoolClient): Promise<boolean> {
    const { compactRevision } = positionFrom((await query(client, "position", sql.position))[0]);
    const [rev, sub] = (await query(client, "readsweep", sql.readSweep))[0] ?? [];
    if (integer(rev) >= compactRevision) return false;
    const step = await query(client, "sweep", sql.sweepStep, [rev, sub, compactRevision, sweepEntries]);
    const [count, lastRev, lastSub] = step[0] ?? [];
    const done = integer(count) < sweepEntries;
    // What changed at the mark itself is looked at again when the mark has moved on.
    await query(client, "savesweep", sql.saveSweep, done ? [compactRevision, -1] : [lastRev, lastSub]);
    return !done;
  }
}

async function loadContents(client: pg.PoolClient, { pairs, leases, revision }: Contents): Promise<void> {
  for (const lease of leases)
    await query(client, "loadlease", sql.loadLease, [String(lease.id), lease.ttl, lease.remainingSeconds]);
  let sub = 0;
  for await (const kvs of pairs) {
    const columns = [
      kvs.map((kv) => kv.modRevision),
      // Unique within a revision is all that matters below the mark.
      kvs.map(() => sub++ % 2_000_000_000),
      kvs.map((kv) => kv.key),
      kvs.map((kv) => kv.createRevision),
      kvs.map((kv) => kv.version),
      kvs.map((kv) => String(kv.lease)),
      kvs.map((kv) => kv.value),
    ];
    await query(client, "loadpairs", sql.loadPairs, columns);
  }
  await query(client, "loadmeta", sql.loadMeta, [revision]);
  await query(client, "savesweep", sql.saveSweep, [revision, -1]);
}

/** The rows of a log page as changes. */
function pageFrom(rows: readonly Row[], from: Revision): LogPage {
  const changes: Change[] = [];
  for (const row of rows) {
    const kv = pairAt(row, 3);
    if (!kv) continue;
    const prev = pairAt(row, 11);
    changes.push({ type: kv.version === 0 ? "delete" : "put", kv, ...(prev ? { prev } : {}) });
  }
  return { changes, through: Math.max(from - 1, integer(rows[0]?.[2])) };
}

/** Waits for the database, creates tables, says where the store stands. */
async function prepare(servers: Servers, edges: Edges): Promise<Position> {
  const until = edges.clock.monotonic() + readyTimeoutMs;
  for (;;) {
    let client: pg.Client | undefined;
    try {
      client = await connect(servers);
      await client.query(`SELECT pg_advisory_lock(${sql.locks.schema})`);
      await client.query(sql.schema);
      const version = integer((await query(client, "version", "SELECT version FROM kontinuum_meta"))[0]?.[0]);
      if (version > sql.schemaVersion)
        throw new CodedError(
          "failed_precondition",
          `the database has schema version ${version}, this program knows ${sql.schemaVersion}: use the newer release that wrote it`,
        );
      return positionFrom((await query(client, "position", sql.position))[0]);
    } catch (error) {
      if (isCoded(error) || !isPassing(error) || edges.clock.monotonic() > until) throw postgresFault(error);
    } finally {
      await client?.end().catch(() => {});
    }
    await edges.clock.sleep(readyPauseMs);
  }
}
