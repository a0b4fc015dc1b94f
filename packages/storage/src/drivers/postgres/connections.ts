/**
 * The connections of one store: a small pool for reads, one for the writer, one that listens.
 *
 * Every statement has a time limit, and a transaction that its client forgot is ended by the server, so
 * that a paused process cannot hold the others up for long.
 */
import pg from "pg";
import type { Servers } from "./servers.ts";

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
 * planned anew for a call, nothing is compiled, and statistics that lag behind cannot lead to reading a whole table. Whatever
 * the database's defaults are, a commit is flushed before it is acknowledged (any setting but `off` does that and stays), and
 * a transaction that waited for the lock sees what was written meanwhile.
 */
export const sessionSettings = `SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
  SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off;
  SET default_transaction_isolation = 'read committed';
  SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`;

/** The pool for reads, of the server that is used at the time. */
export function readPool(servers: Servers): pg.Pool {
  const pool = new pg.Pool({
    Client: clientOf(servers),
    connectionTimeoutMillis: connectTimeoutMs,
    max: readConnections,
    idleTimeoutMillis: 60_000,
  });
  // A connection that breaks while idle is replaced by the pool; who uses one sees the error itself.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/**
 * What the pool connects with: the server is checked and set up as a part of connecting, so that the time limit of connecting
 * holds for it. (The pool's own hook for that waits without end when the connection breaks inside it.)
 */
function clientOf(servers: Servers): new () => pg.Client {
  return class extends pg.Client {
    constructor() {
      super(clientOptions(servers.current));
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<pg.Client> | void {
      if (!callback) return this.#connect();
      void this.#connectFor(callback);
    }

    async #connectFor(callback: (error: Error) => void): Promise<void> {
      try {
        await this.#connect();
      } catch (error) {
        return callback(error instanceof Error ? error : new Error(String(error)));
      }
      // Without an error the pool's callback takes nothing; its type does not say so.
      Reflect.apply(callback, undefined, []);
    }

    async #connect(): Promise<pg.Client> {
      await super.connect();
      try {
        await servers.checkPrimary(this);
        await this.query(sessionSettings);
        return this;
      } catch (error) {
        void this.end().catch(() => {});
        throw error;
      }
    }
  };
}

/** A connection of its own to the primary. A server that is none, or not there, is given up for the next one. */
export async function connect(servers: Servers, options: pg.ClientConfig = {}): Promise<pg.Client> {
  const url = servers.current;
  const client = new pg.Client({ ...clientOptions(url), ...options });
  client.on("error", () => {});
  try {
    await client.connect();
    await servers.checkPrimary(client);
    return client;
  } catch (error) {
    servers.lost(url);
    // Not waited for: a connection that broke may never say that it has ended.
    void client.end().catch(() => {});
    throw error;
  }
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
