/**
 * Runs the tests and says what was left out.
 *
 * `node scripts/test.ts` runs everything this machine can run; `quick` only the tests beside the code;
 * further arguments are paths or globs of test files. A skipped test must carry a reason: without one the
 * run fails. `REQUIRE_SERVICES=1` turns a missing service into a failure (test/services/service.ts).
 */
import { glob } from "node:fs/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { root } from "./command.ts";
import path from "node:path";

/** Tests beside the code: no services, many files, so they share two processes' time. */
const unitTests = ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts"];
/** Tests that cross packages and use real services. */
const serviceTests = ["test/**/*.test.ts"];

/** Unit tests share two cores. */
const unitConcurrency = 2;
/** Each of these starts databases, browsers or whole hubs of its own: side by side they would miss each other's deadlines. */
const serviceConcurrency = 1;

interface Outcome {
  passed: number;
  failed: number;
  skipped: Map<string, string[]>;
  withoutReason: string[];
  known: string[];
}

async function find(patterns: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const pattern of patterns) {
    for await (const file of glob(pattern, { cwd: root, exclude: ["**/node_modules/**"] }))
      files.push(path.join(root, file));
  }
  return files.sort();
}

async function runFiles(files: readonly string[], outcome: Outcome, concurrency: number): Promise<void> {
  if (files.length === 0) return;
  const stream = run({
    files: [...files],
    concurrency,
    isolation: "process",
    timeout: 300_000,
    execArgv: ["--no-warnings=ExperimentalWarning"],
  });
  stream.on("test:pass", (data) => {
    if (data.skip !== undefined) {
      if (typeof data.skip === "string" && data.skip !== "") {
        outcome.skipped.set(data.skip, [...(outcome.skipped.get(data.skip) ?? []), data.name]);
      } else outcome.withoutReason.push(data.name);
    } else if (data.details.type !== "suite") outcome.passed++;
  });
  stream.on("test:fail", (data) => {
    // A fault that is known and written down: it is run and shown, and does not hide what is new.
    if (typeof data.todo === "string" && data.todo !== "") outcome.known.push(`${data.name}: ${data.todo}`);
    else if (data.details.type !== "suite") outcome.failed++;
  });
  const text = stream.compose(new spec());
  for await (const chunk of text) process.stdout.write(String(chunk));
}

/** Runs the quick tests or all; `true` when nothing failed. */
export async function runTests(which: "quick" | "all", patterns: readonly string[] = []): Promise<boolean> {
  const started = performance.now();
  const outcome: Outcome = { passed: 0, failed: 0, skipped: new Map(), withoutReason: [], known: [] };
  if (patterns.length > 0) await runFiles(await find(patterns), outcome, 1);
  else {
    await runFiles(await find(unitTests), outcome, unitConcurrency);
    if (which === "all") await runFiles(await find(serviceTests), outcome, serviceConcurrency);
  }
  if (outcome.skipped.size > 0) {
    console.log("\nLeft out on this machine:");
    for (const [reason, names] of outcome.skipped)
      console.log(
        `  ${reason}: ${names.length} (${names.slice(0, 3).join(", ")}${names.length > 3 ? ", …" : ""})`,
      );
  }
  for (const fault of outcome.known) console.log(`known fault: ${fault}`);
  for (const name of outcome.withoutReason) console.error(`skipped without a reason: ${name}`);
  const skipped = [...outcome.skipped.values()].reduce((sum, names) => sum + names.length, 0);
  console.log(`\nin ${((performance.now() - started) / 1000).toFixed(0)} s`);
  console.log(
    `${outcome.passed} passed, ${outcome.failed + outcome.withoutReason.length} failed, ${skipped} skipped`,
  );
  return outcome.failed === 0 && outcome.withoutReason.length === 0 && outcome.passed > 0;
}

if (import.meta.main) {
  const [first, ...rest] = process.argv.slice(2);
  const quick = first === "quick";
  const patterns = first === undefined || quick ? rest : [first, ...rest];
  process.exit((await runTests(quick ? "quick" : "all", patterns)) ? 0 : 1);
}
