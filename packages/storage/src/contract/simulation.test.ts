/**
 * Concurrent clients on a seeded schedule: their history, through group commits, restarts and crashes, must be
 * one that a single store could have given, and a watch from the beginning must show all of it.
 */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isCoded, seededRandom, SimulatedClock, systemEdges, type Random } from "@kontinuum/std";
import { scratchRoot } from "./scratch.ts";
import { prefixRange, type Store, type StoreEvent } from "../contract.ts";
import { openStore } from "../open.ts";
import { checkHistory, History } from "./history.ts";

const clients = 6;
const operationsEach = 25;

/** A store until it is killed; nobody receives an answer of it after that. */
interface Life {
  readonly store: Store;
  over: boolean;
}

/** A client that does its part on whatever store is the present one. */
async function client(current: () => Life, history: History, random: Random, id: number): Promise<void> {
  for (let i = 0; i < operationsEach; i++) {
    const life = current();
    const { store } = life;
    const key = `/sim/${random.integer(3)}`;
    const kind = random.integer(3) === 0 ? "read" : "write";
    const started = history.begin(kind === "read" ? { kind, key } : { kind, key, value: `${id}.${i}` });
    try {
      if (kind === "read") {
        const { revision, kvs } = await store.range({ key });
        if (!life.over) history.end(started, revision, kvs[0]?.value.toString());
        else history.nothing(started);
      } else {
        const { revision } = await store.txn({ success: [{ type: "put", key, value: started.value ?? "" }] });
        // An answer that came after the crash was never received: what became of the write is unknown.
        if (!life.over) history.end(started, revision);
      }
    } catch (error) {
      assert.ok(isCoded(error), String(error));
      if (kind === "read") history.nothing(started);
    }
    for (let turns = random.integer(4); turns > 0; turns--)
      await new Promise((resolve) => setImmediate(resolve));
  }
}

async function everything(store: Store): Promise<StoreEvent[]> {
  const events: StoreEvent[] = [];
  const watch = store.watch({ ...prefixRange("/sim/"), startRevision: 1 });
  watch.progress();
  for await (const batch of watch) {
    if (batch.events.length === 0) break;
    events.push(...batch.events);
  }
  return events;
}

const retention = { intervalMs: 0 };

async function simulate(seed: number, disk: boolean): Promise<void> {
  const random = seededRandom(seed);
  const edges = systemEdges({ clock: new SimulatedClock(), random: seededRandom(seed + 1) });
  const folder = mkdtempSync(join(scratchRoot, "simulation-"));
  let generation = 0;
  const path = (): string => join(folder, `${generation}.db`);
  const open = (): Promise<Store> =>
    openStore(disk ? `sqlite://${path()}` : "memory://", edges, { retention });
  const begin = async (): Promise<Life> => ({ store: await open(), over: false });
  let life = await begin();
  const history = new History();
  const working = Array.from({ length: clients }, (_, id) => client(() => life, history, random, id));
  let done = false;
  void Promise.all(working).then(() => (done = true));
  const old: Store[] = [];
  while (disk && !done && generation < 6) {
    for (let turns = random.integer(12); turns > 0; turns--)
      await new Promise((resolve) => setImmediate(resolve));
    // The files at this very moment are what a kill would leave; whoever waits for an answer gets none.
    const files = [path(), `${path()}-wal`].filter((file) => existsSync(file));
    generation++;
    life.over = true;
    for (const file of files) copyFileSync(file, file.endsWith("-wal") ? `${path()}-wal` : path());
    old.push(life.store);
    life = await begin();
  }
  await Promise.all(working);
  const violations = checkHistory(history, await everything(life.store), { contiguous: true });
  assert.deepEqual(violations, [], `seed ${seed}`);
  await Promise.all([...old, life.store].map((each) => each.close()));
  rmSync(folder, { recursive: true });
}

const first = Number(process.env["STORAGE_SEED"] ?? 1);
const seeds = (count: number): number[] =>
  Array.from({ length: Number(process.env["STORAGE_RUNS"] ?? count) }, (_, i) => first + i);

test("memory", async () => {
  for (const seed of seeds(30)) await simulate(seed, false);
});

test("SQLite, crashing", async () => {
  for (const seed of seeds(8)) await simulate(seed, true);
});
