/**
 * A hash over the live contents at a revision, the same on every driver: CRC-32 over each pair in key
 * order with its revisions, version and lease, lengths included so that no two contents run together.
 */
import { crc32 } from "node:zlib";
import { prefixRange, type KeyValue, type Revision, type Store } from "../contract.ts";
import { pagesOf } from "./paging.ts";

/** Hashes the pairs of `store` at `revision`, 0 for the newest. */
export async function hashPairs(
  store: Pick<Store, "range">,
  revision: Revision,
  compactRevision: () => Revision,
): Promise<{ hash: number; revision: Revision; compactRevision: Revision }> {
  let hash = 0;
  let at = revision;
  for await (const page of pagesOf(store, prefixRange(""), revision)) {
    at = page.revision;
    for (const kv of page.kvs) hash = hashPair(hash, kv);
  }
  return { hash, revision: at, compactRevision: compactRevision() };
}

function hashPair(hash: number, kv: KeyValue): number {
  const head = Buffer.alloc(40);
  head.writeUInt32BE(kv.key.length, 0);
  head.writeUInt32BE(kv.value.length, 4);
  head.writeBigInt64BE(BigInt(kv.createRevision), 8);
  head.writeBigInt64BE(BigInt(kv.modRevision), 16);
  head.writeBigInt64BE(BigInt(kv.version), 24);
  head.writeBigInt64BE(BigInt.asIntN(64, kv.lease), 32);
  return crc32(kv.value, crc32(kv.key, crc32(head, hash)));
}
