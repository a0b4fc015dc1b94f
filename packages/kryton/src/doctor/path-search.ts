/**
 * Finding a program the way a shell would, without starting one.
 */
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import type { Environment } from "../config/values.ts";

/** The full path of an executable, or `undefined` when there is none. */
export async function findOnPath(name: string, env: Environment): Promise<string | undefined> {
  const candidates = isAbsolute(name)
    ? [name]
    : (env["PATH"] ?? "")
        .split(delimiter)
        .filter(Boolean)
        .map((directory) => join(directory, name));
  for (const candidate of candidates) {
    try {
      await access(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Not here; the next place may have it.
    }
  }
  return undefined;
}
