/**
 * Encryption keys from a file: one key a line, `id:base64`, 32 bytes each; the first one encrypts, all
 * decrypt. A line `id:kms:base64` holds a key that a key management service has wrapped.
 *
 * Rotation: put a new line on top, have every process read the file again, rewrite, take the old line
 * out. No process is stopped for it.
 */
import { closeSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { CodedError, messageOf, type Random } from "@kontinuum/std";
import type { EncryptionKey } from "./envelope.ts";

/** Length of a key. */
const encryptionKeyBytes = 32;

/** The keys in use. */
export interface EncryptionKeys {
  /** Encrypts what is written. */
  readonly active: EncryptionKey;
  /** All keys that may decrypt, the active one among them. */
  readonly all: ReadonlyMap<string, EncryptionKey>;
}

/** Unwraps keys that a key management service wrapped. */
export interface KmsPlugin {
  unwrap(wrapped: Buffer): Promise<Buffer>;
}

/** A set of keys that can be exchanged while stores use it. */
export class KeyRing implements EncryptionKeys {
  #keys: readonly EncryptionKey[];
  #all: ReadonlyMap<string, EncryptionKey>;

  /** The first key encrypts. Fails with `invalid_argument` for no key, a wrong length, or an id twice. */
  constructor(keys: readonly EncryptionKey[]) {
    this.#keys = keys;
    this.#all = index(keys);
  }

  get active(): EncryptionKey {
    const [first] = this.#keys;
    if (!first) throw new CodedError("invalid_argument", "the key file holds no key");
    return first;
  }

  get all(): ReadonlyMap<string, EncryptionKey> {
    return this.#all;
  }

  /** Exchanges the keys; stores use the new ones from the next operation on. */
  replace(keys: readonly EncryptionKey[]): void {
    this.#all = index(keys);
    this.#keys = keys;
  }
}

function index(keys: readonly EncryptionKey[]): ReadonlyMap<string, EncryptionKey> {
  if (keys.length === 0) throw new CodedError("invalid_argument", "the key file holds no key");
  const all = new Map<string, EncryptionKey>();
  for (const key of keys) {
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(key.id))
      throw new CodedError(
        "invalid_argument",
        "the id of an encryption key is 1 to 64 letters, digits, dots, dashes or underscores",
      );
    if (key.secret.length !== encryptionKeyBytes)
      throw new CodedError(
        "invalid_argument",
        `encryption key ${key.id} is not ${encryptionKeyBytes} bytes long`,
      );
    if (all.has(key.id)) throw new CodedError("invalid_argument", `encryption key ${key.id} is there twice`);
    all.set(key.id, key);
  }
  return all;
}

/**
 * Reads a key file. Fails with `failed_precondition` when others may read it, and with `invalid_argument` when it is missing or
 * cannot be read, or a line is not understood; never says what a line holds.
 */
export async function readKeyFile(path: string, kms?: KmsPlugin): Promise<KeyRing> {
  let text: string;
  try {
    if ((statSync(path).mode & 0o077) !== 0)
      throw new CodedError("failed_precondition", `${path} can be read by others: chmod 600 ${path}`);
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof CodedError) throw cause;
    throw new CodedError(
      "invalid_argument",
      `the encryption key file ${path} cannot be read: check its path and permissions (${messageOf(cause)})`,
      { cause },
    );
  }
  const keys: EncryptionKey[] = [];
  for (const [number, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const match = /^([^:]+):(kms:)?([A-Za-z0-9+/]+=*)$/.exec(line.trim());
    if (!match)
      throw new CodedError(
        "invalid_argument",
        `${path} line ${number + 1} is not id:base64: generate it with \`openssl rand -base64 32\``,
      );
    const [, id = "", wrapped, body = ""] = match;
    const bytes = Buffer.from(body, "base64");
    if (wrapped !== undefined && !kms)
      throw new CodedError(
        "failed_precondition",
        `encryption key ${id} is wrapped: configure the key management service`,
      );
    keys.push({ id, secret: wrapped !== undefined && kms ? await kms.unwrap(bytes) : bytes });
  }
  return new KeyRing(keys);
}

/** Makes a key file with one new key, 0600, flushed to disk before it returns. Fails with `already_exists`. */
export function createKeyFile(path: string, random: Random): void {
  const id = `k${Buffer.from(random.bytes(4)).toString("hex")}`;
  let file: number;
  try {
    file = openSync(path, "wx", 0o600);
  } catch (cause) {
    throw new CodedError(
      "already_exists",
      `the encryption key file ${path} exists or its folder cannot be written`,
      { cause },
    );
  }
  try {
    writeSync(file, `${id}:${Buffer.from(random.bytes(encryptionKeyBytes)).toString("base64")}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
