/**
 * A whole machine API for tests: real HTTP on a port of its own, over a memory store unless one is given.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fetch, type Headers } from "undici";
import { systemClock, systemEdges, type Clock, type Edges, type Log } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage/client";
import { readConfig } from "./config/config.ts";
import { hashToken } from "./cli/generate-token.ts";
import { createKryton, type Kryton, type KrytonOptions } from "./server.ts";
import { createSealer, sealKeyBytes, type Sealer } from "./store/sealer.ts";
import type { Role } from "./model/principal.ts";

/** An answer of the API under test. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; `undefined` when it is not. */
  readonly json: Parsed;
}

/** A parsed body, for assertions that look where they like. */
export type Parsed = ReturnType<typeof JSON.parse>;

/** Options of a test server. */
export interface FixtureOptions extends Partial<Omit<KrytonOptions, "config">> {
  readonly env?: Readonly<Record<string, string>>;
  readonly log?: Log;
  /** API keys by token: turns on `apikey`. */
  readonly keys?: Readonly<Record<string, { role: Role; projects: string[]; name?: string }>>;
}

/** A running test server. */
export interface Fixture extends AsyncDisposable {
  readonly kryton: Kryton;
  readonly url: string;
  readonly store: Store;
  readonly edges: Edges;
  readonly sealer: Sealer;
  readonly directory: string;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  /** Creates a demo machine and returns it. */
  machine(name: string, more?: Record<string, unknown>, headers?: Record<string, string>): Promise<Parsed>;
  stop(): Promise<void>;
}

/** The smallest body that creates a machine. */
export function machineBody(name: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { name, image: "debian-13", compute: { cpu: 1, memoryMiB: 1024 }, disk: { sizeGiB: 20 }, ...more };
}

/** Text of a keys file. */
export function keysFile(keys: NonNullable<FixtureOptions["keys"]>): string {
  return JSON.stringify({
    keys: Object.entries(keys).map(([token, { role, projects, name }]) => ({
      name: name ?? token,
      sha256: hashToken(token),
      role,
      projects,
    })),
  });
}

/** Calls an API at `url`. */
export async function call(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const response = await fetch(`${url}${path}`, {
    method,
    redirect: "manual",
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  let json: Parsed;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json };
}

/** Starts servers somewhere else. */
export type Starter = (options: FixtureOptions) => Promise<Fixture>;

let elsewhere: Starter | undefined;

/** From now on {@link start} uses `starter` for every test that puts nothing of its own into the server. */
export function serveTestsWith(starter: Starter): void {
  elsewhere = starter;
}

/** Starts a server; dispose it at the end of the test. */
export async function start(options: FixtureOptions = {}): Promise<Fixture> {
  const { env: given, keys, ...own } = options;
  if (elsewhere && Object.keys(own).length === 0) {
    return elsewhere({ ...(given ? { env: given } : {}), ...(keys ? { keys } : {}) });
  }
  const directory = await mkdtemp(join(tmpdir(), "kryton-test-"));
  const edges = options.edges ?? systemEdges(options.log ? { log: options.log } : {});
  const env: Record<string, string> = { HOME: directory, KRYTON_ADDR: "127.0.0.1:0", ...options.env };
  if (options.keys) {
    env["KRYTON_AUTH_MODE"] = "apikey";
    env["KRYTON_API_KEYS_FILE"] = join(directory, "keys.json");
    await writeFile(env["KRYTON_API_KEYS_FILE"], keysFile(options.keys));
  }
  const store = options.store ?? (await openStore("memory://", edges));
  const sealer = options.sealer ?? createSealer(edges.random.bytes(sealKeyBytes), edges.random);
  const { env: _, keys: __, log: ___, ...rest } = options;
  const cleanUp = async (): Promise<void> => {
    if (!options.store) await store.close();
    await rm(directory, { recursive: true, force: true });
  };
  let kryton: Kryton;
  try {
    kryton = await createKryton({ ...rest, store, edges, sealer, config: readConfig(env) });
    await kryton.start();
  } catch (error) {
    await cleanUp();
    throw error;
  }
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await kryton.stop();
    await cleanUp();
  };
  return {
    kryton,
    url: kryton.url,
    store,
    edges,
    sealer,
    directory,
    call: (method, path, body, headers) => call(kryton.url, method, path, body, headers),
    machine: async (name, more, headers) => {
      const answer = await call(kryton.url, "POST", "/api/v1/machines", machineBody(name, more), headers);
      if (answer.status !== 201) throw new Error(`machine ${name} was not created: ${answer.text}`);
      return answer.json;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The machine's clock with pauses a hundred times shorter, so that what takes minutes does not. */
export const hurried: Clock = {
  ...systemClock,
  timer: (delayMs, callback) => systemClock.timer(delayMs / 100, callback),
  sleep: (delayMs, signal) => systemClock.sleep(delayMs / 100, signal),
  monotonic: () => systemClock.monotonic() * 100,
};

/** As {@link hurried} for sleeps only: timers, and with them leases, keep their time however busy the machine is. */
export const hurriedSleep: Clock = { ...systemClock, sleep: hurried.sleep };

/** The `Authorization` header of a token. */
export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

/** Waits until `check` answers something, looking again every few milliseconds. */
export async function until<T>(
  check: () => Promise<T | undefined> | T | undefined,
  limitMs = 30_000,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await check();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error("the awaited state did not come");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
