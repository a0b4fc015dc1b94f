/**
 * The writing connection: one group at a time, in two round trips.
 *
 * First: begin, lock the revision, fetch what the group looks at. Second: write everything, commit. An
 * answer lost before the commit was sent means that nothing happened, and the group is tried again; one
 * lost after it is looked up by the transaction's id, so that nobody is told a wrong outcome.
 */
import type { Clock } from "@kontinuum/std";
import pg from "pg";
import type { LeaseId } from "../../contract.ts";
import type { Change, Needs, Scan, Scanned } from "../../engine/backend.ts";
import { fault } from "../../faults.ts";
import { byteaArray, int4Array, int8Array, leaseArray } from "./arrays.ts";
import { clientOptions, planSettings, query, type Row } from "./connections.ts";
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
      points.length > 0 ? query(client, "pairs", sql.pairsOf, [byteaArray(points)]) : [],
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
    await client.query(planSettings);
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

/** A change and its place inside its revision. */
interface Numbered {
  readonly change: Change;
  readonly sub: number;
}

/** Changes with their place inside their revision. */
export function* numbered(changes: readonly Change[]): Generator<Numbered, void, undefined> {
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
  const entries = [...numbered(session.changes)];
  const kvs = entries.map(({ change }) => change.kv);
  const heads = new Map<string, Numbered>();
  for (const entry of entries) heads.set(entry.change.kv.key.toString("latin1"), entry);
  const newest = [...heads.values()];
  const live = newest.filter(({ change }) => change.type === "put");
  const dead = newest.filter(({ change }) => change.type === "delete");
  const leases = [...session.leaseChanges];
  const started = leases.filter((lease): lease is [LeaseId, number] => lease[1] !== undefined);
  return [
    int8Array(kvs.map((kv) => kv.modRevision)),
    int4Array(entries.map(({ sub }) => sub)),
    byteaArray(kvs.map((kv) => kv.key)),
    int8Array(kvs.map((kv) => kv.createRevision)),
    int8Array(kvs.map((kv) => kv.version)),
    leaseArray(kvs.map((kv) => kv.lease)),
    int8Array(entries.map(({ change }) => change.prev?.modRevision ?? 0)),
    byteaArray(kvs.map((kv) => kv.value)),
    byteaArray(live.map(({ change }) => change.kv.key)),
    int8Array(live.map(({ change }) => change.kv.modRevision)),
    int4Array(live.map(({ sub }) => sub)),
    leaseArray(live.map(({ change }) => change.kv.lease)),
    byteaArray(dead.map(({ change }) => change.kv.key)),
    leaseArray(started.map(([id]) => id)),
    int8Array(started.map(([, ttl]) => ttl)),
    leaseArray(leases.filter(([, ttl]) => ttl === undefined).map(([id]) => id)),
    session.revision,
  ];
}
