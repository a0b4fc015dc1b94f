/**
 * A first key for a new installation: a keys file with one administrator, and the token beside it.
 *
 * Nothing that exists is replaced unless rotation is asked for; files are private before anything is in them.
 */
import { chmod, mkdir, open, rename, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CodedError, type Random } from "@kontinuum/std";
import type { Environment } from "../config/values.ts";
import { flag } from "../config/values.ts";
import { generateToken, hashToken } from "./generate-token.ts";

/** Where the files are, and whether they were made now. */
export interface MadeKeys {
  readonly keysFile: string;
  readonly tokenFile: string;
  readonly made: boolean;
}

/**
 * Makes both files unless both exist. `KRYTON_KEYS_DIR` (default `~/.kryton`), `KRYTON_API_KEYS_FILE`, `KRYTON_TOKEN_FILE`
 * and `KRYTON_KEY_NAME` (default `lab-admin`) say where and who; `KRYTON_ROTATE_KEYS=true` replaces them.
 * Fails with `failed_precondition` when only one exists: replacing it would lock somebody out.
 */
export async function makeKeys(env: Environment, random: Random): Promise<MadeKeys> {
  const directory = env["KRYTON_KEYS_DIR"] || join(env["HOME"] || homedir(), ".kryton");
  const keysFile = env["KRYTON_API_KEYS_FILE"] || join(directory, "keys.json");
  const tokenFile = env["KRYTON_TOKEN_FILE"] || join(directory, "lab.token");
  const rotate = flag(env, "KRYTON_ROTATE_KEYS", false);
  const existing = await Promise.all([keysFile, tokenFile].map(exists));
  if (!rotate && existing.every(Boolean)) return { keysFile, tokenFile, made: false };
  if (!rotate && existing.some(Boolean)) {
    throw new CodedError(
      "failed_precondition",
      `only one of ${keysFile} and ${tokenFile} exists: remove it, or set KRYTON_ROTATE_KEYS=true to replace both`,
    );
  }
  const token = generateToken(random);
  const entry = {
    name: env["KRYTON_KEY_NAME"] || "lab-admin",
    sha256: hashToken(token),
    role: "admin",
    projects: ["*"],
  };
  await writePrivate(tokenFile, `${token}\n`);
  await writePrivate(keysFile, `${JSON.stringify({ keys: [entry] }, null, 2)}\n`);
  return { keysFile, tokenFile, made: true };
}

async function exists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined)) !== undefined;
}

/** Writes a file that only its owner may read, in a folder that only its owner may enter when it is made here. */
async function writePrivate(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.new`;
  const handle = await open(temporary, "w", 0o600);
  try {
    await chmod(temporary, 0o600);
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
}
