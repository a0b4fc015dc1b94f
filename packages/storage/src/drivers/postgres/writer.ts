/**
 * The writing connection: one group at a time, in two round trips.
 *
 * First: begin, lock the revision, fetch what the group looks at. Second: write everything, commit. An
 * answer lost before the commit was sent means that nothing happened, and the group is tried again; one
 * lost after it is looked up by the transaction's id, so that nobody is told a wrong outcome.
 */
import type { Clock } from "@kontinuum/std";
import pg from "pg";
import type { Change, Needs, Scan, Scanned } from "../../engine/backend.ts";
import { fault } from "../../faults.ts";
import { clientOptions, query, type Row } from "./connections.ts";
import { isPassing, postgresFault } from "./postgres-faults.ts";
import { PrefetchedSession } from "./prefetched-session.ts";
import { integer, leaseId, pairAt, real } from "./rows.ts";
import { scanStatement, scannedFrom } from "./scans.ts";
import * as sql from "./sql.ts";

/** Longest time that a group is tried again after a lost connection, milliseconds. */
const retryLimitMs = 10_000;
/** Pause between tries, milliseconds. */
const retryPauseMs = 100;

/** What a group did. */
export interface Written {
  readonly changes: readonly Change[];
  readonly revision: number;
}

/** The group cannot be tried again as it is: it is known to be written. */
interface Attempt {
  readonly written: Written;
}

/** The writer of one store. */
export class Writer {
  readonly #url: string;
  readonly #clock: Clock;
  #client: pg.Client | undefined;
  #closed = false;

  constructor(url: string, clock: Clock) {
    this.#url = url;
    this.#clock = clock;
  }

  /** Runs a group; see `Backend.write`. */
  async write(needs: Needs, work: (session: PrefetchedSession) => void): Promise<Written> {
    const until = this.#clock.monotonic() + retryLimitMs;
    for (;;) {
      try {
        return (await this.#attempt(needs, work)).written;
      } catch (error) {
        await this.#drop();
        if (!isPassing(error) || this.#closed || this.#clock.monotonic() > until) throw postgresFault(error);
        await this.#clock.sleep(retryPauseMs);
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#drop();
  }

  async #attempt(needs: Needs, work: (session: PrefetchedSession) => void): Promise<Attempt> {
    const client = await this.#connected();
    const { session, xid } = await this.#fetch(client, needs);
    try {
      work(session);
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    }
    const written = { changes: session.changes, revision: session.revision };
    if (session.changes.length === 0 && session.leaseChanges.size === 0) {
      await client.query("ROLLBACK");
      return { written };
    }
    const writing = client.query({ name: "w", text: sql.writeGroup, values: groupValues(session) });
    const committing = client.query("COMMIT");
    const [wrote, committed] = await Promise.allSettled([writing, committing]);
    // A refused write ends the transaction; the commit then answers as a rollback.
    if (wrote.status === "rejected" && !isPassing(wrote.reason)) throw wrote.reason;
    if (committed.status === "fulfilled" && committed.value.command === "COMMIT") return { written };
    if (committed.status === "fulfilled") throw wrote.status === "rejected" ? wrote.reason : rolledBack();
    if (await this.#committed(xid)) return { written };
    throw committed.reason;
  }

  /** Takes the lock and fetches, all sent at once. */
  async #fetch(client: pg.Client, needs: Needs): Promise<{ session: PrefetchedSession; xid: string }> {
    const points = needs.scans
      .filter((scan) => scan.span.single && scan.revision === 0)
      .map((s) => s.span.start);
    const ranges = needs.scans.filter((scan) => !scan.span.single && scan.revision === 0);
    const past = needs.scans.filter((scan) => scan.revision > 0);
    const leaseIds = needs.leases.map(String);
    const boundIds = needs.leaseKeys.map(String);
    const rows = await Promise.all([
      client.query("BEGIN").then((): Row[] => []),
      query(client, "lock", sql.lockMeta),
      points.length > 0 ? query(client, "pairs", sql.pairsOf, [points]) : [],
      leaseIds.length > 0 ? query(client, "leases", sql.leasesOf, [leaseIds]) : [],
      boundIds.length > 0 ? query(client, "bound", sql.pairsOfLeases, [boundIds]) : [],
    ]);
    const whole = ranges.map((scan): Scan => ({ span: scan.span, revision: 0, limit: 0 }));
    const spans = await Promise.all(whole.map((scan) => this.#scan(client, scan)));
    const history = new Map<Scan, Scanned>();
    for (const scan of past) history.set(scan, await this.#scan(client, scan));
    const [revision, compactRevision, xid] = rows[1]?.[0] ?? [];
    const session = new PrefetchedSession({
      position: { revision: integer(revision), compactRevision: integer(compactRevision) },
      pairs: [
        ...[...rows[2], ...rows[4]].map((row) => pairAt(row, 0)).filter((kv) => kv !== undefined),
        ...spans.flatMap((span) => span.kvs),
      ],
      leases: rows[3].map(([id, ttl, left]) => ({
        id: leaseId(id),
        ttl: integer(ttl),
        remainingMs: real(left),
      })),
      history,
    });
    return { session, xid: String(xid) };
  }

  async #scan(client: pg.Client, scan: Scan): Promise<Scanned> {
    const { name, text, values } = scanStatement(scan);
    return scannedFrom(scan, await query(client, name, text, values));
  }

  /** What became of a transaction whose answer was lost. */
  async #committed(xid: string): Promise<boolean> {
    await this.#drop();
    const until = this.#clock.monotonic() + retryLimitMs;
    for (;;) {
      try {
        const rows = await query(await this.#connected(), "xact", sql.transactionStatus, [xid]);
        const status = rows[0]?.[0];
        if (status === "committed") return true;
        if (status === "aborted") return false;
      } catch (error) {
        await this.#drop();
        if (!isPassing(error)) throw postgresFault(error);
      }
      if (this.#closed || this.#clock.monotonic() > until)
        throw fault("lost", "PostgreSQL was lost during a commit: whether it was done is unknown");
      await this.#clock.sleep(retryPauseMs);
    }
  }

  async #connected(): Promise<pg.Client> {
    if (this.#closed) throw fault("closed", "the store is closed");
    if (this.#client) return this.#client;
    const client = new pg.Client({ ...clientOptions(this.#url), pipeline: true });
    // A connection that breaks between groups is noticed by the next one.
    client.on("error", () => {
      if (this.#client === client) this.#client = undefined;
    });
    await client.connect();
    this.#client = client;
    return client;
  }

  async #drop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }
}

function rolledBack(): Error {
  return fault("lost", "PostgreSQL rolled a group of writes back without saying why");
}

/** Changes with their place inside their revision. */
export function* numbered(
  changes: readonly Change[],
): Generator<{ change: Change; sub: number }, void, undefined> {
  let last = 0;
  let sub = 0;
  for (const change of changes) {
    sub = change.kv.modRevision === last ? sub + 1 : 0;
    last = change.kv.modRevision;
    yield { change, sub };
  }
}

/** The parameters of `writeGroup`. */
function groupValues(session: PrefetchedSession): unknown[] {
  const columns: unknown[][] = Array.from({ length: 8 }, () => []);
  const heads = new Map<string, { change: Change; sub: number }>();
  for (const { change, sub } of numbered(session.changes)) {
    const { kv, prev } = change;
    const row = [
      kv.modRevision,
      sub,
      kv.key,
      kv.createRevision,
      kv.version,
      String(kv.lease),
      prev?.modRevision ?? 0,
      kv.value,
    ];
    for (const [i, value] of row.entries()) columns[i]?.push(value);
    heads.set(kv.key.toString("latin1"), { change, sub });
  }
  const newest = [...heads.values()];
  const live = newest.filter(({ change }) => change.type === "put");
  const dead = newest.filter(({ change }) => change.type === "delete").map(({ change }) => change.kv.key);
  const started = [...session.leaseChanges].filter(([, ttl]) => ttl !== undefined);
  const ended = [...session.leaseChanges].filter(([, ttl]) => ttl === undefined);
  return [
    ...columns,
    live.map(({ change }) => change.kv.key),
    live.map(({ change }) => change.kv.modRevision),
    live.map(({ sub }) => sub),
    live.map(({ change }) => String(change.kv.lease)),
    dead,
    started.map(([id]) => String(id)),
    started.map(([, ttl]) => ttl),
    ended.map(([id]) => String(id)),
    session.revision,
  ];
}
