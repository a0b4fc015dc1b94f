/**
 * A whole server in memory for tests, asked from inside the process as somebody who may do everything.
 */
import { setTimeout as pause } from "node:timers/promises";
import { at, systemEdges } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import type { ApiServer, ServerOptions } from "./contract.ts";
import { parseJson, stringifyJson } from "./json/json.ts";
import { createServer } from "./server.ts";

/** What came back. */
export interface Reply {
  readonly status: number;
  readonly text: string;
  /** A value inside the parsed body. */
  at(...path: readonly (string | number)[]): unknown;
}

/** A running server. */
export interface ServerFixture {
  readonly server: ApiServer;
  readonly store: Store;
  /** A request; a body that is no string is sent as JSON, which `type` may call something else. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  /** Writes bytes past the server. */
  put(key: string, value: string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server over an empty store, into which `seed` may write first. */
export async function startServer(
  options: Partial<ServerOptions>,
  seed: Readonly<Record<string, string>> = {},
): Promise<ServerFixture> {
  const store = await openStore("memory://", systemEdges());
  const put = async (key: string, value: string): Promise<void> => {
    await store.txn({ success: [{ type: "put", key, value }] });
  };
  for (const [key, value] of Object.entries(seed)) await put(key, value);
  const server = createServer({ storage: store, auth: { authenticators: [], authorizers: [] }, ...options });
  await server.start();
  const transport = server.transport(server.loopback);
  return {
    server,
    store,
    put,
    async ask(method, path, body, headers = {}) {
      const response = await transport({
        method,
        path,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : stringifyJson(body) }),
      });
      const chunks: Uint8Array[] = [];
      for await (const chunk of response.body) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString("utf8");
      return {
        status: response.status,
        text,
        at: (...path) => at(text.startsWith("{") ? parseJson(text) : undefined, ...path),
      };
    },
    async stop() {
      await server.stop(1000);
      await store.close();
    },
  };
}

/** Polls until `check` holds; fails with `what` after two seconds. */
export async function eventually(what: string, check: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 200; round++) {
    if (await check()) return;
    await pause(10);
  }
  throw new Error(`waited in vain for ${what}`);
}
