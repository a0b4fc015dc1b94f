/**
 * The quick gate (`make check`): every step is independent and says how to mend what it finds.
 *
 * `node scripts/check.ts [step…]` runs all steps, or the named ones.
 */
import { checkDependencies } from "./check-dependencies.ts";
import { checkGenerated } from "./check-generated.ts";
import { checkHouse } from "./check-house.ts";
import { runCommand } from "./command.ts";
import { runTests } from "./test.ts";

const command =
  (program: string, ...args: string[]) =>
  async (): Promise<boolean> =>
    (await runCommand(program, args)) === 0;

const steps: Readonly<Record<string, () => Promise<boolean>>> = {
  format: command("oxfmt", "--check"),
  lint: command("oxlint", "--deny-warnings"),
  types: async () =>
    (await command("tsc", "-p", ".")()) && (await command("tsc", "-p", "packages/web/client")()),
  house: checkHouse,
  dependencies: checkDependencies,
  generated: checkGenerated,
  dead: command("knip"),
  unit: () => runTests("quick"),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(steps, name));
if (unknown.length > 0) {
  console.error(`unknown step ${unknown.join(", ")}: use ${Object.keys(steps).join(", ")}`);
  process.exit(2);
}

const failed: string[] = [];
for (const [name, step] of Object.entries(steps)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const started = performance.now();
  const ok = await step();
  console.log(
    `${ok ? "ok  " : "FAIL"} ${name.padEnd(13)} ${((performance.now() - started) / 1000).toFixed(1)} s`,
  );
  if (!ok) failed.push(name);
}
if (failed.length > 0) {
  console.error(`check failed: ${failed.join(", ")}`);
  process.exit(1);
}
