/**
 * Committed generated files must be what their generators make today.
 *
 * Every workspace package that has a `generate` script is generated into place and compared with the
 * committed state by content; a difference fails the check and is left in the tree to look at.
 */
import { createHash } from "node:crypto";
import { glob, readFile } from "node:fs/promises";
import path from "node:path";
import { root, runCommand } from "./command.ts";

/** Folders and files that generators write. */
const generatedFiles = [
  "packages/*/src/gen/**/*",
  "packages/*/src/**/gen/**/*",
  "packages/*/src/**/vendor/**/*",
  "packages/*/openapi/**/*",
];

/** Runs all generators and compares. */
export async function checkGenerated(): Promise<boolean> {
  const before = await digests();
  let ok = true;
  for await (const manifest of glob("packages/*/package.json", { cwd: root })) {
    const parsed: unknown = JSON.parse(await readFile(path.join(root, manifest), "utf8"));
    const scripts =
      typeof parsed === "object" && parsed !== null && "scripts" in parsed ? parsed.scripts : undefined;
    if (typeof scripts !== "object" || scripts === null || !("generate" in scripts)) continue;
    const code = await runCommand("npm", ["run", "--silent", "generate", "-w", path.dirname(manifest)]);
    if (code !== 0) {
      console.error(`${manifest}: the generate script failed`);
      ok = false;
    }
  }
  const after = await digests();
  for (const file of new Set([...before.keys(), ...after.keys()])) {
    if (before.get(file) !== after.get(file)) {
      console.error(`${file}: differs from what its generator makes: commit the new file`);
      ok = false;
    }
  }
  return ok;
}

async function digests(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const pattern of generatedFiles) {
    for await (const entry of glob(pattern, { cwd: root, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = path.join(entry.parentPath, entry.name);
      found.set(
        path.relative(root, file),
        createHash("sha256")
          .update(await readFile(file))
          .digest("hex"),
      );
    }
  }
  return found;
}
