/**
 * The servers of one URL. A URL may name several (`postgres://user@one:5432,two:5432/database`): a primary and the standbys
 * that may take its place. Connections go to the one that is the primary; when it is lost, the next one is tried.
 */
import { CodedError } from "@kontinuum/std";
import type pg from "pg";

/** Servers that a URL may name. */
const maxServers = 16;

/** The servers of one store, and the one that is used. */
export class Servers {
  readonly #urls: readonly string[];
  readonly #listeners: (() => void)[] = [];
  #at = 0;
  #timeline: string | undefined;

  /** Fails with `invalid_argument`, naming what the URL lacks. */
  constructor(url: string) {
    this.#urls = split(url);
    for (const each of this.#urls) check(each);
  }

  /** URL of the server that is used now. */
  get current(): string {
    return this.#urls[this.#at] ?? "";
  }

  /** The server at `url` is of no use: the next one is, unless somebody has moved on already. */
  lost(url: string): void {
    if (url === this.current) this.#at = (this.#at + 1) % this.#urls.length;
  }

  /** Calls `listener` when another server has taken over, before anything is read from it. */
  onTakeover(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Refuses a standby, and notices that another server has taken over. Comes first on each new connection. */
  async checkPrimary(client: Pick<pg.ClientBase, "query">): Promise<void> {
    const timeline = await timelineOf(client);
    if (timeline === undefined) {
      // Where no other server may be the primary, PostgreSQL's own refusal of the first write says it better.
      if (this.#urls.length > 1) throw new Error("this server is a standby");
      return;
    }
    const before = this.#timeline;
    this.#timeline = timeline;
    if (before !== undefined && before !== timeline) for (const listener of this.#listeners) listener();
  }
}

/**
 * The history that a primary writes: another one after a standby took its place. Transaction ids mean something only within
 * one. `undefined` for a standby. (PostgreSQL's documentation, "Timelines": the first eight digits of a log file's name.)
 */
export async function timelineOf(client: Pick<pg.ClientBase, "query">): Promise<string | undefined> {
  const { rows } = await client.query<unknown[]>({
    text: "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END",
    rowMode: "array",
  });
  const timeline = rows[0]?.[0];
  return typeof timeline === "string" ? timeline : undefined;
}

/** One URL for each server: they share user, database and parameters. */
function split(url: string): string[] {
  const [, before = "", hosts = "", after = ""] =
    /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(url) ?? [];
  const names = hosts.split(",");
  if (names.length === 1) return [url];
  if (names.length > maxServers || names.includes(""))
    throw new CodedError(
      "invalid_argument",
      `the PostgreSQL storage URL names several servers, but not as host:port,host:port (at most ${maxServers})`,
    );
  return names.map((name) => `${before}${name}${after}`);
}

function check(url: string): void {
  if (!URL.canParse(url)) throw new CodedError("invalid_argument", "the PostgreSQL storage URL is not a URL");
  const { hostname, pathname, searchParams } = new URL(url);
  if (hostname === "" && !searchParams.has("host"))
    throw new CodedError(
      "invalid_argument",
      "the PostgreSQL storage URL names no host: postgres://user@host/database",
    );
  if (pathname.length <= 1)
    throw new CodedError(
      "invalid_argument",
      "the PostgreSQL storage URL names no database: postgres://user@host/database",
    );
}
