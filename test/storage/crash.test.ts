/**
 * The short form of `make test-crash`: every acknowledged write survives kill -9 of the process, and of the
 * database.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findPostgres, startPostgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";
import { runCrashRounds } from "./crash-rounds.ts";

test("SQLite: ten kill -9 rounds", { timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "crash-"));
  try {
    const result = await runCrashRounds({
      storeUrl: `sqlite://${folder}/store.db`,
      rounds: 10,
      clients: 8,
      seed: 1,
    });
    assert.deepEqual(result.violations, []);
    assert.ok(result.acknowledged > 50 && result.events >= result.acknowledged, JSON.stringify(result));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test(
  "PostgreSQL: six rounds, killing the database in every second one",
  { timeout: 180_000, skip: skipUnless(await findPostgres()) },
  async () => {
    const postgres = await startPostgres();
    try {
      const result = await runCrashRounds({
        storeUrl: postgres.url,
        rounds: 6,
        clients: 8,
        seed: 2,
        outage: async () => {
          await postgres.kill();
          await postgres.restart();
        },
      });
      assert.deepEqual(result.violations, []);
      assert.ok(result.acknowledged > 20, JSON.stringify(result));
    } finally {
      await postgres.stop();
    }
  },
);
