/**
 * What tells this process of commits: a connection that listens, a slow poll as a safety net, and the
 * process's own writes. Hands every revision on exactly once, in order.
 */
import { isDeepStrictEqual } from "node:util";
import { isCoded, messageOf, type Edges, type Timer } from "@kontinuum/std";
import type pg from "pg";
import type { Change, LogPage, Position } from "../../engine/backend.ts";
import { connect } from "./connections.ts";
import { postgresFault } from "./postgres-faults.ts";
import type { Servers } from "./servers.ts";
import { channel } from "./sql.ts";

/** How often the log is looked at even when nobody said anything, milliseconds. */
const pollMs = 1_000;
/** Pause before listening is tried again, milliseconds. */
const relistenMs = 500;
/** Revisions behind from which watches read the log by themselves. */
const maxFeedLag = 5_000;

/** What the feed needs of its backend. */
export interface FeedSource {
  readonly servers: Servers;
  readonly edges: Edges;
  /** All changes from a revision on. */
  readonly read: (from: number) => Promise<LogPage & { readonly position: Position }>;
  /** New changes, or `undefined` when there are too many to hand out. Moves what is known on first. */
  readonly publish: (position: Position, changes: readonly Change[] | undefined) => void;
  /** What was handed out may not have been kept: the database is at `position` now. */
  readonly lost: (position: Position) => void;
}

/** The feed of one store. */
export class Feed {
  readonly #source: FeedSource;
  #known: Position;
  #client: pg.Client | undefined;
  #timer: Timer | undefined;
  #reading: Promise<void> | undefined;
  #again = false;
  /** The last change that was handed out. */
  #last: Change | undefined;
  /** How often another server has taken over, and for how many of these it is known whether it has what was handed out. */
  #takeovers = 0;
  #settled = 0;
  #closed = false;

  constructor(source: FeedSource, known: Position) {
    this.#source = source;
    this.#known = known;
  }

  /** It is not known yet whether the server has everything that was handed out. */
  get #doubtful(): boolean {
    return this.#settled !== this.#takeovers;
  }

  start(): void {
    void this.#listen();
    this.#schedule();
  }

  /** A group of this process was committed. */
  committed(changes: readonly Change[], revision: number): void {
    const first = changes[0]?.kv.modRevision;
    // Directly when nothing of others lies between; else the log has the right order.
    if (first !== undefined && first === this.#known.revision + 1 && !this.#doubtful)
      this.#publish({ ...this.#known, revision }, changes);
    else if (first !== undefined) this.#look();
  }

  /** Another server has taken over: it must be shown that it has what was handed out. */
  doubt(): void {
    this.#takeovers += 1;
    this.#look();
  }

  /** A position was read somewhere; if it is newer, changes are fetched. */
  noticed(position: Position): void {
    if (this.#doubtful) return this.#look();
    if (position.compactRevision > this.#known.compactRevision)
      this.#publish({ ...this.#known, compactRevision: position.compactRevision }, []);
    if (position.revision > this.#known.revision) this.#look();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.clear();
    await this.#client?.end().catch(() => {});
    await this.#reading;
  }

  #publish(position: Position, changes: readonly Change[] | undefined): void {
    this.#known = position;
    this.#last = changes?.at(-1) ?? (changes ? this.#last : undefined);
    this.#source.publish(position, changes);
  }

  #schedule(): void {
    if (this.#closed) return;
    this.#timer = this.#source.edges.clock.timer(pollMs, () => {
      this.#look();
      this.#schedule();
    });
  }

  #look(): void {
    if (this.#closed) return;
    this.#again = true;
    this.#reading ??= this.#catchUp().finally(() => (this.#reading = undefined));
  }

  async #catchUp(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false;
      try {
        if (this.#doubtful) await this.#settle();
        const page = await this.#source.read(this.#known.revision + 1);
        // The server took over while the page was asked for: it may not continue what was handed out.
        if (this.#doubtful) this.#again = true;
        else if (page.position.revision - this.#known.revision > maxFeedLag)
          this.#publish(page.position, undefined);
        else {
          // Own writes may have been handed on while the page was read.
          const fresh = page.changes.filter((change) => change.kv.modRevision > this.#known.revision);
          const revision = Math.max(page.through, this.#known.revision);
          const { compactRevision } = page.position;
          if (revision > this.#known.revision || compactRevision > this.#known.compactRevision)
            this.#publish({ revision, compactRevision }, fresh);
          if (page.position.revision > this.#known.revision) this.#again = true;
        }
      } catch (error) {
        // The next poll tries again; readers see the failure of their own calls.
        this.#log("the log of PostgreSQL could not be read", error);
      }
    }
  }

  /** Looks whether the last change that was handed out is where it was. What cannot be shown counts as lost. */
  async #settle(): Promise<void> {
    const takeovers = this.#takeovers;
    const { position, changes } = await this.#source.read(this.#known.revision);
    const last = this.#last;
    const kept =
      last?.kv.modRevision === this.#known.revision &&
      changes.some(({ kv }) => isDeepStrictEqual(kv, last.kv));
    // Read from a server that took over in the meantime: asked again.
    if (takeovers !== this.#takeovers) return;
    this.#settled = takeovers;
    if (kept) return;
    this.#source.edges.log.error(
      "PostgreSQL may have lost acknowledged writes: make its replication synchronous",
      {
        known: this.#known.revision,
        found: position.revision,
      },
    );
    this.#known = position;
    this.#last = undefined;
    this.#source.lost(position);
  }

  async #listen(): Promise<void> {
    while (!this.#closed) {
      let client: pg.Client | undefined;
      try {
        client = await connect(this.#source.servers, { statement_timeout: 0, query_timeout: 0 });
        await this.#hear(client);
      } catch (error) {
        this.#log("PostgreSQL could not be listened to", error);
      }
      await client?.end().catch(() => {});
      if (!this.#closed) await this.#source.edges.clock.sleep(relistenMs);
    }
  }

  /** Listens until the connection is lost. */
  async #hear(client: pg.Client): Promise<void> {
    if (this.#closed) return;
    this.#client = client;
    const lost = new Promise<void>((resolve) => {
      client.on("error", () => resolve());
      client.on("end", () => resolve());
    });
    client.on("notification", ({ payload }) => {
      if (!(Number(payload) <= this.#known.revision)) this.#look();
    });
    await client.query(`LISTEN ${channel}`);
    // What was committed while nobody listened.
    this.#look();
    await lost;
  }

  #log(message: string, error: unknown): void {
    if (this.#closed) return;
    const coded = isCoded(error) ? error : postgresFault(error);
    this.#source.edges.log.warn(message, { code: coded.code, reason: messageOf(coded) });
  }
}
