/**
 * Loaded before tests of the API (`node --test --import`): they then speak to three krytond on PostgreSQL behind a
 * round-robin proxy, one of which is killed again and again, instead of to a server in their own process.
 *
 * `KRYTON_TEST_POSTGRES` names a PostgreSQL; each server of a test gets a database of its own. Tests that
 * put something of their own into the server (a clock, a provider, a store) keep it in their process.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemEdges, systemRandom } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import pg from "pg";
import {
  call,
  keysFile,
  machineBody,
  serveTestsWith,
  type Fixture,
  type FixtureOptions,
} from "../../packages/kryton/src/kryton.fixture.ts";
import { createSealer } from "../../packages/kryton/src/store/sealer.ts";
import { Site } from "./site.ts";

/** Requests between two kills. */
const killEvery = 6;

async function freshDatabase(server: string): Promise<string> {
  const name = `t${systemRandom.uuid().replaceAll("-", "")}`;
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

async function startSite(server: string, options: FixtureOptions): Promise<Fixture> {
  const directory = await mkdtemp(join(tmpdir(), "kryton-behind-"));
  const storage = await freshDatabase(server);
  const key = systemRandom.bytes(32);
  const keyFile = join(directory, "sealing-key");
  await writeFile(keyFile, Buffer.from(key).toString("hex"), { mode: 0o600 });
  const env: Record<string, string> = {
    HOME: directory,
    ...options.env,
    KRYTON_STORAGE: storage,
    KRYTON_ENCRYPTION_KEY_FILE: keyFile,
  };
  if (options.keys) {
    env["KRYTON_AUTH_MODE"] = "apikey";
    env["KRYTON_API_KEYS_FILE"] = join(directory, "keys.json");
    await writeFile(env["KRYTON_API_KEYS_FILE"], keysFile(options.keys));
  }
  const site = await Site.open(env, true);
  const edges = systemEdges();
  const store = await openStore(storage, edges);
  let killing: Promise<void> | undefined;
  site.onRequest = () => {
    if (killing || site.requests % killEvery !== 0) return;
    killing = site.killOne(site.kills).finally(() => (killing = undefined));
  };
  const stop = async (): Promise<void> => {
    await killing;
    console.log(`replicas killed: ${site.kills}`);
    await site[Symbol.asyncDispose]();
    await store.close();
    await rm(directory, { recursive: true, force: true });
  };
  return {
    get kryton(): never {
      throw new Error("this server runs in other processes: the test must use its API");
    },
    url: site.url,
    store,
    edges,
    sealer: createSealer(key, edges.random),
    directory,
    call: (method, path, body, headers) => call(site.url, method, path, body, headers),
    machine: async (name, more, headers) => {
      const answer = await call(site.url, "POST", "/api/v1/machines", machineBody(name, more), headers);
      if (answer.status !== 201) throw new Error(`machine ${name} was not created: ${answer.text}`);
      return answer.json;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

const server = process.env["KRYTON_TEST_POSTGRES"];
if (server) serveTestsWith((options) => startSite(server, options));
