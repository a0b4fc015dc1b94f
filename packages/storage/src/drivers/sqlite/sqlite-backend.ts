/**
 * The `sqlite` driver: one file, one process, every acknowledged write flushed.
 *
 * A group of writes is one transaction: `BEGIN IMMEDIATE … COMMIT` in one turn of the event loop, then one flush, off it. What is
 * committed and not flushed yet shows to nobody: reads wait for the flush, as the writers do. The newest pairs are found through a head table,
 * older ones through the index on (key, revision); pairs are cached by log id, which never changes.
 */
import { assert, messageOf, type Edges } from "@kontinuum/std";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { KeyValue, LeaseId, Revision } from "../../contract.ts";
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
import { LeaseDeadlines } from "../../engine/lease-deadlines.ts";
import { PairCache } from "../../engine/pair-cache.ts";
import { pointSpan, type Span } from "../../engine/span.ts";
import { compacted, fault, futureRevision } from "../../faults.ts";
import { checks, describeRow } from "./checks.ts";
import { canonicalPath, closeDatabase, openDatabase } from "./database.ts";
import { bytes, columns, decodePair, integer, scalar } from "./rows.ts";
import { isDeviceFailure, sqliteFault } from "./sqlite-faults.ts";
import { Statements } from "./statements.ts";
import { Sweeper } from "./sweeper.ts";
import { WalFlush, type StartFlush } from "./wal-flush.ts";

/** Bytes of values after which a page of the log ends, at the end of a revision. */
const logPageBytes = 4 * 1024 * 1024;
/** Pairs that a scan reads in one turn of the event loop. */
const sliceSize = 2_000;

/** A backend over one SQLite file. */
export class SqliteBackend implements Backend {
  readonly driver = "sqlite";
  readonly exclusive = true;
  readonly #path: string;
  readonly #db: DatabaseSync;
  readonly #sql: Statements;
  readonly #sweeper: Sweeper;
  readonly #cache = new PairCache<number>();
  readonly #deadlines: LeaseDeadlines;
  readonly #flushes: WalFlush;
  /** The newest revision that is committed, and the newest that is flushed. */
  #revision: Revision;
  #durable: Revision;
  #compactRevision: Revision;
  #lastId: number;
  #listener: ((changes: readonly Change[]) => void) | undefined;
  /** Set after the device failed: what was flushed is not known any more. */
  #broken: unknown;
  #loading = false;

  /** Opens the file, creating it when it does not exist. `flush` makes a file durable; by default the system's own. */
  static open(path: string, edges: Edges, flush?: StartFlush): SqliteBackend {
    return new SqliteBackend(canonicalPath(resolve(path)), edges, flush);
  }

  private constructor(path: string, edges: Edges, flush?: StartFlush) {
    this.#path = path;
    this.#db = openDatabase(path);
    this.#sql = new Statements(this.#db);
    this.#sweeper = new Sweeper(this.#db, this.#sql, edges.clock);
    this.#deadlines = new LeaseDeadlines(edges.clock);
    this.#flushes = new WalFlush(path, flush);
    this.#revision = this.#meta("revision");
    this.#durable = this.#revision;
    this.#compactRevision = this.#meta("compact");
    this.#lastId = scalar(this.#sql.get(this.#sql.maxId).get());
    for (const row of this.#sql.get(this.#sql.allLeases).all()) {
      const [id, ttl, expiresAt] = columns(row) ?? [];
      this.#deadlines.restore(BigInt(String(id)), integer(ttl), integer(expiresAt));
    }
  }

  get known(): Position {
    return { revision: this.#durable, compactRevision: this.#compactRevision };
  }

  position(): Promise<Position> {
    return Promise.resolve(this.known);
  }

  async scan(asked: Scan): Promise<Scanned & { at: Revision }> {
    if (this.#durable < this.#revision) await this.#flushes.settled();
    const at = this.#durable;
    this.#checkRevision(asked.revision);
    // A disk that failed leaves commits of which nobody knows whether they are kept: they are left out.
    const scan = asked.revision === 0 && at < this.#revision ? { ...asked, revision: at } : asked;
    const large = scan.limit === 0 || scan.limit > sliceSize;
    if (scan.span.single || scan.countOnly === true || !large)
      return this.#guard(() => ({ ...this.#scan(scan), at }));
    return { ...(await this.#sliced(scan)), at };
  }

  /** A long scan in slices of one state, so that it holds nobody up for long. */
  async #sliced(scan: Scan): Promise<Scanned> {
    const revision = scan.revision > 0 ? scan.revision : this.#durable;
    const kvs: KeyValue[] = [];
    let { span } = scan;
    for (;;) {
      const wanted = scan.limit === 0 ? sliceSize : Math.min(sliceSize, scan.limit - kvs.length);
      const slice = this.#guard(() => this.#slice({ ...scan, span, revision, limit: wanted }));
      for (const kv of slice) kvs.push(kv);
      const last = slice.at(-1);
      if (!last || slice.length < wanted) return { kvs, count: kvs.length };
      if (kvs.length === scan.limit) {
        if (scan.uncounted === true) return { kvs, count: kvs.length };
        const past = revision < this.#revision ? revision : 0;
        return { kvs, count: this.#guard(() => this.#count(scan.span, past)) };
      }
      span =
        scan.descending === true
          ? { ...span, end: last.key }
          : { ...span, start: pointSpan(last.key).end ?? last.key };
      await new Promise<void>((next) => setImmediate(next));
      // Writes that came between do not show: what was begun is of one revision, unless that is compacted.
      this.#checkRevision(revision);
    }
  }

  #slice(scan: Scan): KeyValue[] {
    return scan.revision < this.#revision ? this.#pairsAt(scan) : this.#pairsNow(scan);
  }

  #checkRevision(revision: Revision): void {
    if (revision > this.#durable) throw futureRevision(revision, this.#durable);
    if (revision > 0 && revision < this.#compactRevision) throw compacted(revision, this.#compactRevision);
  }

  async write(_needs: Needs, work: (session: Session) => void): Promise<void> {
    this.#refuseBroken();
    if (this.#loading) throw fault("overloaded", "the store is being restored: try again when it is done");
    const revision = this.#revision;
    const lastId = this.#lastId;
    const group: Change[] = [];
    let began = false;
    try {
      this.#deadlines.atomically(() => {
        work(this.#session(group));
        began = this.#db.isTransaction;
        if (!began) return;
        if (this.#revision !== revision) this.#setMeta("revision", this.#revision);
        this.#db.exec("COMMIT");
      });
    } catch (error) {
      this.#revision = revision;
      this.#lastId = lastId;
      this.#cache.clear();
      if (isDeviceFailure(error)) this.#broken = error;
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw sqliteFault(error, this.#path);
    }
    if (began) await this.#flushes.flush();
    // In one step: a watch that was told of a revision without its changes would take them for delivered.
    this.#durable = this.#revision;
    if (group.length > 0) this.#listener?.(group);
  }

  async log(request: { from: Revision; span: Span; prevKv: boolean; limit: number }): Promise<LogPage> {
    const { from, span } = request;
    if (this.#durable < this.#revision) await this.#flushes.settled();
    if (from < this.#compactRevision) throw compacted(from, this.#compactRevision);
    return this.#guard(() => {
      const sql = this.#sql;
      const next = columns(sql.get(sql.logPageEnd).get(from, request.limit))?.[0];
      const end = next === undefined ? this.#durable + 1 : integer(next);
      let through = Math.min(Math.max(from, end - 1), Math.max(this.#durable, from - 1));
      const changes: Change[] = [];
      let bytes = 0;
      for (const row of sql.get(sql.logPage(span.end !== undefined)).all(from, through, ...bounds(span))) {
        const [id, prev] = columns(row) ?? [];
        const kv = this.#pair(integer(id));
        const last = changes.at(-1)?.kv.modRevision ?? kv.modRevision;
        if (bytes > logPageBytes && kv.modRevision > last) {
          through = last;
          break;
        }
        const before = request.prevKv && prev !== 0 && kv.modRevision > this.#compactRevision;
        const change: Change = {
          type: kv.version === 0 ? "delete" : "put",
          kv,
          ...(before ? { prev: this.#pair(integer(prev)) } : {}),
        };
        bytes += kv.value.length + (change.prev?.value.length ?? 0);
        changes.push(change);
      }
      return { changes, through };
    });
  }

  onCommit(listener: (changes: readonly Change[]) => void): void {
    this.#listener = listener;
  }

  async setCompact(revision: Revision): Promise<void> {
    if (revision <= this.#compactRevision) return;
    this.#refuseBroken();
    this.#guard(() => this.#setMeta("compact", revision));
    await this.#flushes.flush();
    this.#compactRevision = Math.max(this.#compactRevision, revision);
  }

  async sweep(budgetMs: number): Promise<boolean> {
    this.#refuseBroken();
    return this.#guard(() => this.#sweeper.sweep(this.#compactRevision, budgetMs));
  }

  /** Folds the write-ahead log into the file and cuts it off. */
  async shrink(): Promise<void> {
    await this.#flushes.settled();
    this.#refuseBroken();
    this.#guard(() => this.#db.exec("PRAGMA wal_checkpoint(TRUNCATE)"));
  }

  async lease(id: LeaseId): Promise<LeaseRecord | undefined> {
    await this.#flushes.settled();
    return this.#deadlines.get(id);
  }

  async leases(): Promise<readonly LeaseId[]> {
    await this.#flushes.settled();
    return this.#deadlines.ids();
  }

  async leaseKeys(id: LeaseId): Promise<readonly Buffer[]> {
    await this.#flushes.settled();
    return this.#guard(() => this.#leaseKeys(id));
  }

  async due(limit: number): Promise<{ ids: readonly LeaseId[]; nextMs: number | undefined }> {
    return this.#deadlines.due(limit);
  }

  async status(): Promise<BackendStatus> {
    return this.#guard(() => {
      const pragma = (name: string): number => scalar(this.#sql.get(`PRAGMA ${name}`).get());
      const pageSize = pragma("page_size");
      const wal = statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
      return {
        sizeBytes: pragma("page_count") * pageSize + wal,
        sizeInUseBytes: (pragma("page_count") - pragma("freelist_count")) * pageSize,
        keys: scalar(this.#sql.get("SELECT count(*) FROM head").get()),
      };
    });
  }

  async load({ pairs, leases, revision }: Contents): Promise<void> {
    // One transaction over many turns of the event loop: `write` refuses meanwhile.
    this.#loading = true;
    try {
      this.#db.exec("BEGIN IMMEDIATE");
      for (const { id, ttl, remainingSeconds } of leases)
        this.#sql.get(this.#sql.putLease).run(id, ttl, this.#deadlines.start(id, ttl, remainingSeconds));
      for await (const kvs of pairs) for (const kv of kvs) this.#insert(kv, 0);
      this.#setMeta("revision", revision);
      this.#setMeta("compact", revision);
      this.#setMeta("swept", revision);
      this.#db.exec("COMMIT");
      this.#revision = revision;
      this.#compactRevision = revision;
      await this.#flushes.flush();
      this.#durable = revision;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw sqliteFault(error, this.#path);
    } finally {
      this.#loading = false;
    }
  }

  async *check(): AsyncGenerator<string, void, undefined> {
    try {
      for (const row of this.#db.prepare("PRAGMA integrity_check(100)").iterate())
        if (row["integrity_check"] !== "ok") yield `SQLite: ${String(row["integrity_check"])}`;
      for (const { what, sql } of checks)
        for (const row of this.#db.prepare(sql).iterate()) yield `${what}: ${describeRow(row)}`;
    } catch (error) {
      yield messageOf(sqliteFault(error, this.#path));
    }
  }

  async close(): Promise<void> {
    this.#listener = undefined;
    await this.#flushes.settled();
    this.#flushes.close();
    closeDatabase(this.#db, this.#path);
  }

  #session(group: Change[]): Session {
    const revision = (): Revision => this.#revision;
    const compactRevision = (): Revision => this.#compactRevision;
    const begin = (): void => {
      if (!this.#db.isTransaction) this.#db.exec("BEGIN IMMEDIATE");
    };
    return {
      get revision() {
        return revision();
      },
      get compactRevision() {
        return compactRevision();
      },
      get: (key) => this.#newest(key),
      scan: (scan) => this.#scan(scan),
      hasLease: (id) => this.#deadlines.get(id) !== undefined,
      lease: (id) => this.#deadlines.get(id),
      leaseKeys: (id) => this.#leaseKeys(id),
      apply: (changes) => {
        begin();
        this.#revision++;
        for (const change of changes) this.#append(change);
        group.push(...changes);
      },
      putLease: (id, ttl) => {
        begin();
        this.#sql.get(this.#sql.putLease).run(id, ttl, this.#deadlines.start(id, ttl));
      },
      dropLease: (id) => {
        begin();
        this.#deadlines.drop(id);
        this.#sql.get(this.#sql.dropLease).run(id);
      },
    };
  }

  #append({ type, kv, prev }: Change): void {
    assert(kv.modRevision === this.#revision, "a change carries the revision it makes");
    const sql = this.#sql;
    const prevId = prev ? scalar(sql.get(sql.headId).get(kv.key)) : 0;
    if (type === "put") this.#cache.set(this.#insert(kv, prevId), kv);
    else {
      this.#insertLog(kv, prevId);
      sql.get(sql.dropHead).run(kv.key);
    }
  }

  #insert(kv: KeyValue, prevId: number): number {
    const id = this.#insertLog(kv, prevId);
    this.#sql.get(this.#sql.putHead).run(kv.key, id, kv.lease);
    return id;
  }

  #insertLog(kv: KeyValue, prevId: number): number {
    const id = ++this.#lastId;
    this.#sql
      .get(this.#sql.insertLog)
      .run(id, kv.modRevision, kv.key, kv.createRevision, kv.version, kv.lease, prevId, kv.value);
    return id;
  }

  #newest(key: Buffer): KeyValue | undefined {
    const id = columns(this.#sql.get(this.#sql.headId).get(key))?.[0];
    return id === undefined ? undefined : this.#pair(integer(id));
  }

  /** The pair of a log id that is known to exist. */
  #pair(id: number): KeyValue {
    const cached = this.#cache.get(id);
    if (cached) return cached;
    const { kv } = decodePair(this.#sql.get(this.#sql.pair).get(id));
    this.#cache.set(id, kv);
    return kv;
  }

  #scan(scan: Scan): Scanned {
    const { span, revision, limit } = scan;
    const past = revision > 0 && revision < this.#revision;
    if (scan.countOnly === true) return { kvs: [], count: this.#count(span, past ? revision : 0) };
    if (span.single && !past) {
      const kv = this.#newest(span.start);
      return kv ? { kvs: [kv], count: 1 } : { kvs: [], count: 0 };
    }
    const kvs = past ? this.#pairsAt(scan) : this.#pairsNow(scan);
    const all = limit === 0 || kvs.length < limit || scan.uncounted === true;
    return { kvs, count: all ? kvs.length : this.#count(span, past ? revision : 0) };
  }

  #pairsNow({ span, limit, descending = false }: Scan): KeyValue[] {
    const shape = { bounded: span.end !== undefined, descending };
    const parameters = [...bounds(span), limit === 0 ? -1 : limit];
    const ids = this.#sql
      .get(this.#sql.headIds(shape))
      .all(...parameters)
      .map(scalar);
    const cached = ids.map((id) => this.#cache.get(id));
    const missing = cached.reduce((n, kv) => (kv ? n : n + 1), 0);
    // One by one pays while most are at hand; else a join is three times faster.
    if (missing < ids.length / 4) return ids.map((id, i) => cached[i] ?? this.#pair(id));
    return this.#sql
      .get(this.#sql.headPairs(shape))
      .all(...parameters)
      .map((row, i) => {
        const present = cached[i];
        if (present) return present;
        const { id, kv } = decodePair(row);
        this.#cache.set(id, kv);
        return kv;
      });
  }

  #pairsAt({ span, revision, limit, descending = false }: Scan): KeyValue[] {
    const shape = { bounded: span.end !== undefined, descending };
    const named: Record<string, SQLInputValue> = {
      start: span.start,
      rev: revision,
      limit: limit === 0 ? -1 : limit,
      ...(span.end ? { end: span.end } : {}),
    };
    return this.#sql
      .get(this.#sql.idsAt(shape))
      .all(named)
      .map((row) => this.#pair(scalar(row)));
  }

  #count(span: Span, revision: Revision): number {
    const bounded = span.end !== undefined;
    const now = scalar(this.#sql.get(this.#sql.headCount(bounded)).get(...bounds(span)));
    if (revision === 0) return now;
    return now + scalar(this.#sql.get(this.#sql.countDifference(bounded)).get(revision, ...bounds(span)));
  }

  #leaseKeys(id: LeaseId): Buffer[] {
    return this.#sql
      .get(this.#sql.leaseKeys)
      .all(id)
      .map((row) => bytes(columns(row)?.[0]));
  }

  #meta(name: string): number {
    return scalar(this.#sql.get(this.#sql.getMeta).get(name));
  }

  #setMeta(name: string, value: number): void {
    this.#sql.get(this.#sql.setMeta).run(value, name);
  }

  /** On a device that failed nothing is changed any more: the log must not be folded into the file when what it holds is not known. */
  #refuseBroken(): void {
    if (this.#broken === undefined && !this.#flushes.failed) return;
    throw fault("lost", `the disk of ${this.#path} failed earlier: check it and restart`, {
      cause: this.#broken,
    });
  }

  #guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw sqliteFault(error, this.#path);
    }
  }
}

function bounds(span: Span): Buffer[] {
  return span.end === undefined ? [span.start] : [span.start, span.end];
}
