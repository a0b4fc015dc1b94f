/**
 * The connections of one store: a small pool for reads, one for the writer, one that listens.
 *
 * Every statement has a time limit, and a transaction that its client forgot is ended by the server, so
 * that a paused process cannot hold the others up for long.
 */
import { CodedError } from "@kontinuum/std";
import pg from "pg";

/** Longest time of one statement, milliseconds. */
const statementTimeoutMs = 10_000;
/** Longest pause inside a transaction before the server ends it, milliseconds. */
const idleInTransactionMs = 5_000;
/** Longest time to connect, milliseconds. */
const connectTimeoutMs = 5_000;
/** Connections that read at the same time. */
const readConnections = 4;

/** A row as an array of columns. */
export type Row = readonly unknown[];

/** Options that every connection has. */
export function clientOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "kontinuum-storage",
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    // Above the server's limit: it only speaks when the server does not answer at all.
    query_timeout: statementTimeoutMs + 5_000,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    keepAlive: true,
  };
}

/**
 * Settings of a connection that runs the driver's statements. Each of them has one good plan, through its index: nothing is
 * planned anew for a call, nothing is compiled, and statistics that lag behind cannot lead to reading a whole table.
 */
export const planSettings = `SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
  SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off`;

/** The pool for reads. */
export function readPool(url: string): pg.Pool {
  const pool = new pg.Pool({
    ...clientOptions(url),
    max: readConnections,
    idleTimeoutMillis: 60_000,
    onConnect: async (client) => {
      await client.query(planSettings);
    },
  });
  // A connection that breaks while idle is replaced by the pool; who uses one sees the error itself.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/** Runs a prepared statement; rows are arrays. */
export async function query(
  client: Pick<pg.ClientBase, "query">,
  name: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const result = await client.query<unknown[]>({ name, text, values, rowMode: "array" });
  return result.rows;
}

/** A URL without what is secret in it, for messages. Fails with `invalid_argument` when it is none. */
export function checkUrl(url: string): void {
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
