/**
 * The envelope of an encrypted value: what it looks like in the store, and AES-256-GCM around it.
 *
 * Layout: magic (5 bytes: 0, "kenc"), version 1, length of the key id, key id, 12 bytes nonce, ciphertext,
 * 16 bytes tag. The key of the pair is authenticated too, so a value cannot be moved to another key.
 * The magic starts with a zero byte: no JSON, protobuf or text value of ours does.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { CodedError, type Random } from "@kontinuum/std";
import type { KeyValue } from "../contract.ts";
import { fault } from "../faults.ts";

const magic = Buffer.from([0, 0x6b, 0x65, 0x6e, 0x63, 1]);
const nonceBytes = 12;
const tagBytes = 16;

/** One encryption key. */
export interface EncryptionKey {
  /** Names the key in every envelope; not secret. At most 255 bytes. */
  readonly id: string;
  /** 32 bytes. */
  readonly secret: Buffer;
}

/** Whether a stored value is an envelope. */
export function isEnvelope(value: Buffer): boolean {
  return value.length > magic.length && value.subarray(0, magic.length).equals(magic);
}

/** The id of the key that an envelope needs. */
export function keyIdOf(value: Buffer): string {
  const length = value[magic.length] ?? 0;
  return value.subarray(magic.length + 1, magic.length + 1 + length).toString("utf8");
}

/** Ids of all keys that pairs need. */
export function keyIdsOf(kvs: readonly KeyValue[]): Set<string> {
  return new Set(kvs.filter((kv) => isEnvelope(kv.value)).map((kv) => keyIdOf(kv.value)));
}

/** Puts a value into an envelope. */
export function seal(key: EncryptionKey, pairKey: Buffer, value: Buffer, random: Random): Buffer {
  const id = Buffer.from(key.id, "utf8");
  const nonce = Buffer.from(random.bytes(nonceBytes));
  const head = Buffer.concat([magic, Buffer.from([id.length]), id]);
  const cipher = createCipheriv("aes-256-gcm", key.secret, nonce);
  cipher.setAAD(Buffer.concat([head, pairKey]));
  const body = Buffer.concat([cipher.update(value), cipher.final()]);
  return Buffer.concat([head, nonce, body, cipher.getAuthTag()]);
}

/** Takes a value out of its envelope. Fails with `failed_precondition` for an unknown key, `data_loss` for a changed value. */
export function unseal(keys: ReadonlyMap<string, EncryptionKey>, pairKey: Buffer, value: Buffer): Buffer {
  const id = keyIdOf(value);
  const key = keys.get(id);
  if (!key)
    throw new CodedError(
      "failed_precondition",
      `the value of ${pairKey.toString("utf8")} needs encryption key ${JSON.stringify(id)}, which is not configured: add it to the key file`,
    );
  const start = magic.length + 1 + Buffer.byteLength(id);
  const nonce = value.subarray(start, start + nonceBytes);
  const body = value.subarray(start + nonceBytes, value.length - tagBytes);
  try {
    const decipher = createDecipheriv("aes-256-gcm", key.secret, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.concat([value.subarray(0, start), pairKey]));
    decipher.setAuthTag(value.subarray(value.length - tagBytes));
    return Buffer.concat([decipher.update(body), decipher.final()]);
  } catch (cause) {
    throw fault(
      "corrupt",
      `the value of ${pairKey.toString("utf8")} cannot be decrypted with key ${JSON.stringify(id)}: it is another key of that name, or the value was changed`,
      { cause },
    );
  }
}
