/**
 * `make test-crash`: 1,000 kill -9 rounds on SQLite, 100 on PostgreSQL (process and database killed). Prints one
 * line each for docs/trust.md. `CRASH_ROUNDS=sqlite,postgres` changes the numbers, `CRASH_SEED` the seed.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findPostgres, startPostgres } from "../services/postgres.ts";
import { runCrashRounds, type CrashResult } from "./crash-rounds.ts";

const [sqliteRounds = 1_000, postgresRounds = 100] = (process.env["CRASH_ROUNDS"] ?? "")
  .split(",")
  .filter(Boolean)
  .map(Number);
const seed = Number(process.env["CRASH_SEED"] ?? 1);
const progress = (round: number): void => {
  if (round % 50 === 0) process.stderr.write(`${round} rounds\n`);
};

let failed = false;
function report(what: string, result: CrashResult): void {
  const { rounds, acknowledged, unknown, reads, events, violations } = result;
  process.stdout.write(
    `${what}: ${rounds} rounds, seed ${seed}: ${acknowledged} writes acknowledged, ${unknown} unanswered, ${reads} reads, ${events} events watched, ${violations.length} violations\n`,
  );
  for (const violation of violations) process.stdout.write(`  ${violation}\n`);
  failed ||= violations.length > 0;
}

if (sqliteRounds > 0) {
  const folder = await mkdtemp(join(tmpdir(), "crash-"));
  try {
    report(
      "SQLite, process killed",
      await runCrashRounds({
        storeUrl: `sqlite://${folder}/store.db`,
        rounds: sqliteRounds,
        clients: 8,
        seed,
        progress,
      }),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

const program = await findPostgres();
if (postgresRounds > 0 && typeof program !== "string")
  process.stdout.write(`PostgreSQL left out: ${program.missing}\n`);
else if (postgresRounds > 0) {
  const postgres = await startPostgres();
  try {
    const outage = async (): Promise<void> => {
      await postgres.kill();
      await postgres.restart();
    };
    report(
      "PostgreSQL, process and database killed",
      await runCrashRounds({
        storeUrl: postgres.url,
        rounds: postgresRounds,
        clients: 8,
        seed,
        outage,
        progress,
      }),
    );
  } finally {
    await postgres.stop();
  }
}
process.exit(failed ? 1 : 0);
