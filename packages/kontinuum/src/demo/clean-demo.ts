/**
 * Removing what a demo left behind, unless it still runs: its machines and zones would be pulled from under it.
 */
import { rm, stat } from "node:fs/promises";
import { isCoded } from "@kontinuum/std";
import { lockFolder } from "./demo-lock.ts";

/** Removes `dir`. Resolves with the exit code: 0, also when there is nothing; 5 while a demo runs in it. */
export async function cleanDemo(dir: string, write: (text: string) => unknown): Promise<number> {
  const present = await stat(dir).catch(() => undefined);
  if (!present?.isDirectory()) return 0;
  try {
    await lockFolder(dir);
  } catch (error) {
    if (!isCoded(error)) throw error;
    write(`demo: ${error.message}\n`);
    return error.meaning.exit;
  }
  await rm(dir, { recursive: true, force: true });
  return 0;
}
