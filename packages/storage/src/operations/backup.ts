/**
 * Taking a backup: the state after one revision as a stream of bytes, while the store serves.
 *
 * The format is described in `proto/kontinuum/storage/v1/backup.proto`; it knows nothing of drivers.
 * The length is a multiple of 512 plus 32 bytes of SHA-256, which is how etcd's own tools recognise a
 * complete snapshot.
 */
import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { systemClock, type Clock } from "@kontinuum/std";
import { prefixRange, type LeaseInfo, type Revision, type Store } from "../contract.ts";
import { storedForm } from "../encryption/encrypted-store.ts";
import { keyIdsOf } from "../encryption/envelope.ts";
import { pagesOf } from "../engine/paging.ts";
import { pairMessage } from "../etcd/messages.ts";
import {
  BackupFooterSchema,
  BackupHeaderSchema,
  BackupLeaseSchema,
  BackupRecordSchema,
  type BackupRecord,
} from "../gen/kontinuum/storage/v1/backup_pb.ts";

/** First field of every backup. */
export const backupMagic = "kontinuum store backup";
/** Version of the format that is written. */
export const backupFormatVersion = 1;
/** What the length before the checksum is a multiple of. */
export const backupBlockBytes = 512;
/** Bytes gathered before a chunk is handed on. */
const chunkBytes = 64 * 1024;

const everything = prefixRange("");

/** Options of {@link writeBackup}. */
export interface BackupOptions {
  /** State after this revision, within retention. Default: the newest. */
  readonly revision?: Revision;
  readonly signal?: AbortSignal;
  /** For the time in the header. */
  readonly clock?: Clock;
}

/**
 * The backup as chunks of bytes. Fails with `gone` when the revision is or becomes compacted (then
 * raise retention or take it again), `invalid_argument` for a future one.
 */
export async function* writeBackup(
  served: Store,
  options: BackupOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  // Sealed values stay sealed: a backup is as secret as the store itself.
  const store = storedForm(served);
  const { signal, clock = systemClock } = options;
  const call = signal ? { signal } : {};
  const first = await store.range({ key: "\0", end: "\0", limit: 1, revision: options.revision ?? 0 }, call);
  const revision = options.revision ?? first.revision;
  const { driver } = await store.status();
  const leases = await leasesOf(store);
  const encoder = new RecordEncoder();

  const keyIds = new Set<string>();
  for await (const { kvs } of pagesOf(store, everything, revision, call))
    for (const id of keyIdsOf(kvs)) keyIds.add(id);
  encoder.add(
    create(BackupRecordSchema, {
      record: {
        case: "header",
        value: create(BackupHeaderSchema, {
          magic: backupMagic,
          formatVersion: backupFormatVersion,
          revision: BigInt(revision),
          driver,
          takenAt: BigInt(clock.now()),
          encryptionKeys: [...keyIds].sort(),
        }),
      },
    }),
  );
  // Leases first: restoring a pair needs its lease to exist.
  for (const { id, grantedTtl, ttl } of leases)
    encoder.add(
      create(BackupRecordSchema, {
        record: {
          case: "lease",
          value: create(BackupLeaseSchema, { id, ttl: BigInt(grantedTtl), remaining: BigInt(ttl) }),
        },
      }),
    );
  let pairs = 0n;
  for await (const { kvs } of pagesOf(store, everything, revision, call)) {
    for (const kv of kvs) {
      pairs++;
      encoder.add(create(BackupRecordSchema, { record: { case: "pair", value: pairMessage(kv) } }));
      if (encoder.waiting >= chunkBytes) yield encoder.take();
    }
  }
  encoder.add(
    create(BackupRecordSchema, {
      record: { case: "footer", value: create(BackupFooterSchema, { pairs, leases: BigInt(leases.length) }) },
    }),
  );
  yield encoder.finish();
}

async function leasesOf(store: Store): Promise<LeaseInfo[]> {
  const found: LeaseInfo[] = [];
  for (const id of await store.leases()) {
    const lease = await store.leaseTimeToLive(id);
    if (lease.ttl > 0) found.push(lease);
  }
  return found;
}

/** Records to bytes, with the running checksum. */
class RecordEncoder {
  readonly #hash = createHash("sha256");
  #chunks: Uint8Array[] = [];
  #length = 0;
  waiting = 0;

  add(record: BackupRecord): void {
    const body = toBinary(BackupRecordSchema, record);
    this.#push(new BinaryWriter().uint32(body.length).finish());
    this.#push(body);
  }

  take(): Uint8Array {
    const chunk = Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.waiting = 0;
    return chunk;
  }

  finish(): Uint8Array {
    this.#push(Buffer.alloc((backupBlockBytes - (this.#length % backupBlockBytes)) % backupBlockBytes));
    return Buffer.concat([this.take(), this.#hash.digest()]);
  }

  #push(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#chunks.push(bytes);
    this.#length += bytes.length;
    this.waiting += bytes.length;
  }
}
