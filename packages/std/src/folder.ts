/**
 * Folders that a program makes for itself: state, keys, records.
 *
 * The nearest ancestor that exists is looked at first, then what is missing is made one level at a time. Node's own
 * recursive `mkdir` never ends where the system answers "no such file" for an entry of a folder that exists
 * (Linux, `/proc`). A failure is one line that names the setting, the folder and the remedy.
 */
import { access, constants, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { CodedError } from "./errors.ts";

/** Most levels that are looked at or made. */
const maxLevels = 256;

/** How a folder is made. */
export interface FolderOptions {
  /** What the folder is for or which setting named it; begins the message of a failure. */
  readonly setting: string;
  /** Permissions of levels that are made. Default 0o700: nobody else looks into it. */
  readonly mode?: number;
}

/**
 * Makes `folder` with its missing ancestors; one that exists is left as it is. Fails with `invalid_argument` when it
 * cannot be made, is no folder, or may not be written.
 */
export async function ensureFolder(folder: string, { setting, mode = 0o700 }: FolderOptions): Promise<void> {
  const full = path.resolve(folder);
  const refuse = (problem: string, cause?: unknown): CodedError =>
    new CodedError("invalid_argument", `${setting}: ${problem}; name a folder that can be written`, {
      cause,
    });
  const missing: string[] = [];
  let place = full;
  while (!(await isFolder(place, refuse))) {
    missing.push(place);
    place = path.dirname(place);
    if (missing.length > maxLevels) throw refuse(`${full} is more than ${maxLevels} folders deep`);
  }
  try {
    await access(place, constants.W_OK | constants.X_OK);
  } catch (error) {
    const needed = place === full ? "" : `, so ${full} cannot be made`;
    throw refuse(`the folder ${place} may not be written${needed} (${codeOf(error)})`, error);
  }
  for (const next of missing.reverse()) {
    try {
      await mkdir(next, { mode });
    } catch (error) {
      // Somebody else may have made it in the meantime.
      if (codeOf(error) === "EEXIST" && (await isFolder(next, refuse))) continue;
      throw refuse(`the folder ${next} cannot be made (${codeOf(error)})`, error);
    }
  }
}

/** False when nothing is there; refuses what is there and is no folder. */
async function isFolder(
  place: string,
  refuse: (problem: string, cause?: unknown) => CodedError,
): Promise<boolean> {
  let found: Awaited<ReturnType<typeof stat>>;
  try {
    found = await stat(place);
  } catch (error) {
    // ENOTDIR: an ancestor is a file, which the walk meets next.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return false;
    throw refuse(`the folder ${place} cannot be looked at (${codeOf(error)})`, error);
  }
  if (!found.isDirectory()) throw refuse(`${place} is not a folder`);
  return true;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown";
}
