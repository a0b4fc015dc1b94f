/**
 * Kill -9 rounds: recorded clients write, read and watch through the face while the process behind it (or the
 * database behind that) is killed and started again. At the end the whole history must be one that a single
 * store could have given: nothing acknowledged is lost, nothing is invented, watches are complete.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { seededRandom, systemEdges } from "@kontinuum/std";
import { connectEtcd, prefixRange, type StoreEvent } from "@kontinuum/storage";
import { checkHistory, History } from "@kontinuum/storage/history";
import { start, waitFor, type Running } from "../services/service.ts";
import { collect, recordedClient } from "./recorded-clients.ts";

/** What to run. */
export interface CrashPlan {
  /** URL of the store that the killed process opens. */
  readonly storeUrl: string;
  readonly rounds: number;
  readonly clients: number;
  readonly seed: number;
  /** Kills something else than the serving process in some rounds, and brings it back. */
  readonly outage?: (round: number) => Promise<void>;
  readonly progress?: (round: number) => void;
}

/** What came of it. */
export interface CrashResult {
  readonly rounds: number;
  readonly acknowledged: number;
  readonly unknown: number;
  readonly reads: number;
  readonly events: number;
  readonly violations: readonly string[];
}

const program = fileURLToPath(new URL("./crash-server.ts", import.meta.url));
/** Runs the rounds. */
export async function runCrashRounds(plan: CrashPlan): Promise<CrashResult> {
  // Most of a short life would be spent on compiling.
  const cache = await mkdtemp(join(tmpdir(), "crash-compiled-"));
  try {
    return await runRounds({ ...plan, env: { ...process.env, NODE_COMPILE_CACHE: cache } });
  } finally {
    await rm(cache, { recursive: true });
  }
}

async function runRounds(plan: CrashPlan & { readonly env: NodeJS.ProcessEnv }): Promise<CrashResult> {
  const random = seededRandom(plan.seed);
  const history = new History();
  const events: StoreEvent[] = [];
  let counter = 0;
  for (let round = 0; round < plan.rounds; round++) {
    const { server, port } = await boot(plan);
    const store = connectEtcd({ endpoints: [`127.0.0.1:${port}`] }, systemEdges());
    const stop = new AbortController();
    const watching = collect(store, events, stop.signal);
    const clients = Array.from({ length: plan.clients }, (_, id) =>
      recordedClient(store, history, id, random, stop.signal, () => `${round}.${counter++}`),
    );
    try {
      const before = history.finished.length;
      // Some rounds are cut in the first writes, some in the middle of many.
      const enough = 1 + random.integer(plan.clients * 12);
      await waitFor("clients to write", () => history.finished.length - before >= enough, 60_000);
      if (plan.outage && round % 2 === 1) {
        await plan.outage(round);
        // The process must find its way back without a restart.
        const again = history.finished.length + plan.clients;
        await waitFor("clients to write after the outage", () => history.finished.length >= again, 60_000);
      }
    } finally {
      await server.stop("SIGKILL");
      stop.abort();
      await store.close();
      await Promise.all([...clients, watching]);
    }
    plan.progress?.(round + 1);
  }
  await readTheEnd(plan, events);
  const finished = history.finished;
  return {
    rounds: plan.rounds,
    acknowledged: finished.filter((operation) => operation.kind === "write").length,
    unknown: history.open.size,
    reads: finished.filter((operation) => operation.kind === "read").length,
    events: events.length,
    violations: checkHistory(history, events, { contiguous: true }),
  };
}

type Bootable = { readonly storeUrl: string; readonly env: NodeJS.ProcessEnv };

async function boot({ storeUrl, env }: Bootable): Promise<{ server: Running; port: number }> {
  const server = start(process.execPath, ["--no-warnings", program, storeUrl], { env });
  const port = await waitFor(
    "the store to serve",
    () => {
      if (server.child.exitCode !== null) throw new Error(`the store did not start: ${server.output()}`);
      return Number(/serving (\d+)/.exec(server.output())?.[1] ?? 0) || undefined;
    },
    120_000,
  );
  return { server, port };
}

async function readTheEnd(plan: Bootable, events: StoreEvent[]): Promise<void> {
  const { server, port } = await boot(plan);
  const store = connectEtcd({ endpoints: [`127.0.0.1:${port}`] }, systemEdges());
  try {
    const stop = new AbortController();
    const newest = (await store.range(prefixRange("/crash/"))).kvs.reduce(
      (most, kv) => Math.max(most, kv.modRevision),
      0,
    );
    const watching = collect(store, events, stop.signal);
    await waitFor("the last events", () => (events.at(-1)?.kv.modRevision ?? 0) >= newest);
    stop.abort();
    await watching;
  } finally {
    await store.close();
    await server.stop();
  }
}
