/**
 * Runs every program of a folder, one after the other, each in its own process: benchmarks, soaks, crash runs.
 */
import { glob } from "node:fs/promises";
import path from "node:path";
import { root, runCommand } from "./command.ts";

/**
 * Runs the programs under `folder` whose path contains one of `areas` (all when empty). A program ends with
 * `.bench.ts`, `.soak.ts` or `.crash.ts`. Resolves with the process exit code: 0 when all ended well, 2 when an
 * area names nothing.
 */
export async function runPrograms(folder: string, ending: string, areas: readonly string[]): Promise<number> {
  const found: string[] = [];
  for await (const file of glob(`${folder}/**/*${ending}`, { cwd: root })) found.push(file);
  found.sort();
  const chosen = found.filter((file) => areas.length === 0 || areas.some((area) => file.includes(area)));
  if (chosen.length === 0) {
    console.error(
      `nothing matches ${areas.join(", ") || "anything"} in ${folder}/: there is ${found.join(", ") || "nothing yet"}`,
    );
    return 2;
  }
  const failed: string[] = [];
  for (const file of chosen) {
    console.log(`\n# ${path.basename(file, ending)}  (node ${file})`);
    if ((await runCommand("node", [file])) !== 0) failed.push(file);
  }
  for (const file of failed) console.error(`failed: ${file}`);
  return failed.length === 0 ? 0 : 1;
}
