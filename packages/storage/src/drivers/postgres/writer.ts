/**
 * The writing connection: one group at a time, in one round trip or two.
 *
 * One: the group is decided on what is known from earlier groups (`foresight.ts`). Begin, lock the revision, write, all sent at
 * once; the answer to the lock says whether what was known is still so, and then the commit goes out while the write runs. Two:
 * begin, lock, fetch what the group looks at; then write everything and commit.
 *
 * An answer lost before the commit was sent means that nothing happened, and the group is tried again; one lost after it is
 * looked up by the transaction's id, so that nobody is told a wrong outcome.
 */
import type { Clock } from "@kontinuum/std";
import type pg from "pg";
import type { KeyValue, Revision } from "../../contract.ts";
import type { Change, Needs, Position, Scan, Scanned } from "../../engine/backend.ts";
import { fault } from "../../faults.ts";
import { byteaArray, leaseArray } from "./arrays.ts";
import { connect, sessionSettings, query, type Row } from "./connections.ts";
import { Foresight } from "./foresight.ts";
import { groupValues } from "./group.ts";
import { isPassing, postgresFault } from "./postgres-faults.ts";
import { PrefetchedSession } from "./prefetched-session.ts";
import { integer, leaseId, pairAt, real } from "./rows.ts";
import { positionFrom, scanStatement, scannedFrom } from "./scans.ts";
import { timelineOf, type Servers } from "./servers.ts";
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

/** A transaction that has the lock. */
interface Locked {
  readonly position: Position;
  /** The transaction's id. */
  readonly xid: string;
  /** How many of the keys that were asked for exist. */
  readonly present: number;
}

/** A session over what was read under the lock. */
interface Fetched {
  readonly session: PrefetchedSession;
  readonly fetched: readonly KeyValue[];
  /** The revision that all of it is of. */
  readonly base: Revision;
  readonly xid: string;
}

/** The writer of one store. */
export class Writer {
  readonly #servers: Servers;
  readonly #clock: Clock;
  readonly #foresight = new Foresight();
  #client: pg.Client | undefined;
  /** The server's history: another one after a standby took the primary's place, with transaction ids of its own. */
  #timeline: string | undefined;
  #closed = false;

  constructor(servers: Servers, clock: Clock) {
    this.#servers = servers;
    this.#clock = clock;
  }

  /** Runs a group; see `Backend.write`. */
  async write(needs: Needs, work: (session: PrefetchedSession) => void): Promise<Written> {
    const until = this.#clock.monotonic() + retryLimitMs;
    for (;;) {
      try {
        return await this.#attempt(needs, work);
      } catch (error) {
        this.#foresight.forget();
        await this.#drop();
        if (!isPassing(error) || this.#closed || this.#clock.monotonic() > until) throw postgresFault(error);
        await this.#clock.sleep(retryPauseMs);
      }
    }
  }

  /** Another server has taken over: nothing that is known may be written on. */
  forget(): void {
    this.#foresight.forget();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#drop();
  }

  async #attempt(needs: Needs, work: (session: PrefetchedSession) => void): Promise<Written> {
    const client = await this.#connected();
    const guess = this.#foresight.guess(needs);
    if (guess) work(guess.session);
    // Nothing to write makes no transaction, but what was decided must be checked: that is the other way.
    if (!guess || guess.session.changes.length === 0) return this.#look(client, needs, work);
    const locked = this.#lock(client, guess.absent);
    const writing = this.#send(client, guess.session, guess.base);
    const { position, xid, present } = await locked;
    if (position.revision === guess.base && present === 0) {
      const written = await this.#commit(client, xid, writing, guess.session);
      this.#foresight.committed(guess.base, [], guess.session);
      return written;
    }
    this.#foresight.wrong();
    await Promise.allSettled([writing]);
    await client.query("ROLLBACK");
    return this.#look(client, needs, work);
  }

  /** Takes the lock, fetches what the group looks at, and then decides. */
  async #look(client: pg.Client, needs: Needs, work: (session: PrefetchedSession) => void): Promise<Written> {
    const { session, fetched, base, xid } = await this.#fetch(client, needs);
    try {
      work(session);
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    }
    let written: Written = { changes: session.changes, revision: session.revision };
    if (session.changes.length === 0 && session.leaseChanges.size === 0) await client.query("ROLLBACK");
    else written = await this.#commit(client, xid, this.#send(client, session, base), session);
    this.#foresight.committed(base, fetched, session);
    return written;
  }

  /** Begins a transaction and takes the lock; `absent`: keys to look for. */
  async #lock(client: pg.Client, absent: readonly Buffer[]): Promise<Locked> {
    const [, rows] = await Promise.all([
      client.query("BEGIN"),
      query(client, "lock", sql.lockMeta, [byteaArray(absent)]),
    ]);
    const [, , xid, present] = rows[0] ?? [];
    return { position: positionFrom(rows[0]), xid: String(xid), present: integer(present) };
  }

  /** Sends a group; it is not written before {@link Writer.#commit}. */
  #send(client: pg.Client, session: PrefetchedSession, base: number): Promise<Row[]> {
    const writing = query(client, "write", sql.writeGroup, groupValues(session, base));
    // Who waits for it may be waiting for something else that fails first.
    writing.catch(() => {});
    return writing;
  }

  async #commit(
    client: pg.Client,
    xid: string,
    writing: Promise<Row[]>,
    session: PrefetchedSession,
  ): Promise<Written> {
    const written = { changes: session.changes, revision: session.revision };
    const [wrote, committed] = await Promise.allSettled([writing, client.query("COMMIT")]);
    // A refused write ends the transaction; the commit then answers as a rollback.
    if (wrote.status === "rejected" && !isPassing(wrote.reason)) throw wrote.reason;
    if (committed.status === "fulfilled" && committed.value.command === "COMMIT") return written;
    if (committed.status === "fulfilled") throw wrote.status === "rejected" ? wrote.reason : rolledBack();
    if (await this.#committed(xid)) return written;
    throw committed.reason;
  }

  /** Takes the lock and fetches, all sent at once. */
  async #fetch(client: pg.Client, needs: Needs): Promise<Fetched> {
    const points = needs.scans
      .filter((scan) => scan.span.single && scan.revision === 0)
      .map((s) => s.span.start);
    const ranges = needs.scans.filter((scan) => !scan.span.single && scan.revision === 0);
    const past = needs.scans.filter((scan) => scan.revision > 0);
    const [locked, pairs, leaseRows, bound] = await Promise.all([
      this.#lock(client, []),
      points.length > 0 ? query(client, "pairs", sql.pairsOf, [byteaArray(points)]) : [],
      needs.leases.length > 0 ? query(client, "leases", sql.leasesOf, [leaseArray(needs.leases)]) : [],
      needs.leaseKeys.length > 0
        ? query(client, "bound", sql.pairsOfLeases, [leaseArray(needs.leaseKeys)])
        : [],
    ]);
    const whole = ranges.map((scan): Scan => ({ span: scan.span, revision: 0, limit: 0 }));
    const spans = await Promise.all(whole.map((scan) => this.#scan(client, scan)));
    const history = new Map<Scan, Scanned>();
    for (const scan of past) history.set(scan, await this.#scan(client, scan));
    const { position, xid } = locked;
    const fetched = [...pairs, ...bound].map((row) => pairAt(row, 0)).filter((kv) => kv !== undefined);
    const session = new PrefetchedSession({
      position,
      pairs: [...fetched, ...spans.flatMap((span) => span.kvs)],
      leases: leaseRows.map(([id, ttl, left]) => ({
        id: leaseId(id),
        ttl: integer(ttl),
        remainingMs: real(left),
      })),
      history,
    });
    return { session, fetched, base: position.revision, xid };
  }

  async #scan(client: pg.Client, scan: Scan): Promise<Scanned> {
    const { name, text, values } = scanStatement(scan);
    return scannedFrom(scan, await query(client, name, text, values));
  }

  /** What became of a transaction whose answer was lost. */
  async #committed(xid: string): Promise<boolean> {
    const timeline = this.#timeline;
    await this.#drop();
    const until = this.#clock.monotonic() + retryLimitMs;
    for (;;) {
      try {
        const client = await this.#connected();
        if (this.#timeline !== timeline)
          throw fault(
            "lost",
            "another PostgreSQL server took over during a commit: whether it was done is unknown",
          );
        const rows = await query(client, "xact", sql.transactionStatus, [xid]);
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
    const client = await connect(this.#servers, { pipeline: true });
    // A connection that breaks between groups is noticed by the next one.
    client.on("error", () => {
      if (this.#client === client) this.#client = undefined;
    });
    await client.query(sessionSettings);
    this.#timeline = await timelineOf(client);
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
