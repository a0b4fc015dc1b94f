/**
 * The key that seals secrets in the store: from a file, made on first use beside an embedded database.
 *
 * A store that several replicas share needs the same key on all of them, so there it is never made
 * silently. A mark in the store, sealed with the key, tells a wrong key at start and not at the first
 * secret.
 */
import { chmod, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { CodedError, ensureFolder, messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { z } from "zod";
import { Change } from "./change.ts";
import { Documents } from "./documents.ts";
import { keys } from "./keyspace.ts";
import { createSealer, sealKeyBytes, type Sealer } from "./sealer.ts";

const markSchema = z.object({ sealed: z.string() });

/** Where the key comes from. */
export interface KeySource {
  /** File with 32 bytes as 64 hex digits or base64; empty: beside the SQLite file, or in memory. */
  readonly file: string;
  /** The storage URL, which says whether a key may be made. */
  readonly storage: string;
}

/** Opens the sealer of a store. Fails with `invalid_argument` or, for a wrong key, `data_loss`. */
export async function openSealer(source: KeySource, store: Store, edges: Edges): Promise<Sealer> {
  const sealer = createSealer(await keyOf(source, edges), edges.random);
  await checkMark(sealer, store, edges);
  return sealer;
}

async function keyOf({ file, storage }: KeySource, edges: Edges): Promise<Uint8Array> {
  if (file !== "") return readKey(file);
  if (storage.startsWith("memory:")) return edges.random.bytes(sealKeyBytes);
  const sqlite = /^sqlite:\/\/([^?]+)/.exec(storage)?.[1];
  if (sqlite === undefined) {
    throw new CodedError(
      "invalid_argument",
      "KRYTON_ENCRYPTION_KEY_FILE is required for a shared store: make one with `openssl rand -hex 32`, the same on every replica",
    );
  }
  const beside = `${decodeURIComponent(sqlite)}.key`;
  await ensureFolder(dirname(beside), { setting: `encryption key ${beside}` });
  try {
    const fresh = Buffer.from(edges.random.bytes(sealKeyBytes)).toString("hex");
    await writeFile(beside, `${fresh}\n`, { mode: 0o600, flag: "wx" });
    await chmod(beside, 0o600);
    edges.log.info("encryption key was made", { file: beside });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) {
      throw new CodedError(
        "invalid_argument",
        `encryption key ${beside} cannot be written: ${messageOf(error)}`,
      );
    }
  }
  return readKey(beside);
}

async function readKey(file: string): Promise<Uint8Array> {
  let text: string;
  try {
    text = (await readFile(file, "utf8")).trim();
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `encryption key file ${file} cannot be read: ${messageOf(error)}`,
    );
  }
  const key = /^[0-9a-fA-F]{64}$/.test(text) ? Buffer.from(text, "hex") : Buffer.from(text, "base64");
  if (key.length !== sealKeyBytes) {
    throw new CodedError(
      "invalid_argument",
      `encryption key file ${file} must hold 32 bytes as hex or base64`,
    );
  }
  return key;
}

async function checkMark(sealer: Sealer, store: Store, edges: Edges): Promise<void> {
  const documents = new Documents(store, edges.log);
  const place = keys.sealCheck;
  const made = new Change().absent(place).put(place, { sealed: sealer.seal("kryton", place) });
  if ((await made.commit(store, edges)).succeeded) return;
  const mark = await documents.get(place, markSchema);
  if (!mark) throw new CodedError("data_loss", "the store's encryption mark is damaged");
  sealer.open(mark.value.sealed, place);
}
