/**
 * For tests: the official test data under `third_party/talos`.
 */
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../../third_party/talos/", import.meta.url));

/** The text of an official file. */
export function official(path: string): string {
  return readFileSync(root + path, "utf8");
}

/** Paths of all official files under a folder, sorted. */
export function officialFiles(folder: string): string[] {
  return readdirSync(root + folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(root.length))
    .sort();
}
