/**
 * Reading a backup: bytes to records, and the proof that a file is whole.
 *
 * Nothing is handed on from a file before {@link verifyBackup} has read it to its end: a cut, empty or
 * changed file is refused before anything is touched.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { createReadStream } from "node:fs";
import { fromBinary } from "@bufbuild/protobuf";
import { isCoded } from "@kontinuum/std";
import type { KeyValue } from "../contract.ts";
import { pairFrom } from "../etcd/messages.ts";
import { fault } from "../faults.ts";
import {
  BackupRecordSchema,
  type BackupHeader,
  type BackupRecord,
} from "../gen/kontinuum/storage/v1/backup_pb.ts";
import { backupBlockBytes, backupFormatVersion, backupMagic } from "./backup.ts";

/** Largest record accepted: etcd's request limit and room for what surrounds it. */
const maxRecordBytes = 16 * 1024 * 1024;
const checksumBytes = 32;

/** Where a backup comes from: a file, or chunks that can be had twice. */
export type BackupSource = string | (() => AsyncIterable<Uint8Array>);

/** What a backup says about itself. */
export interface BackupSummary {
  /** State after this revision. */
  readonly revision: number;
  /** Driver it was taken from. */
  readonly driver: string;
  /** Milliseconds since the Unix epoch. */
  readonly takenAt: number;
  readonly pairs: number;
  readonly leases: number;
  readonly bytes: number;
  /** Hexadecimal SHA-256. */
  readonly sha256: string;
  /** Ids of the encryption keys that it needs. */
  readonly encryptionKeys: readonly string[];
}

/** Reads a backup to its end and checks everything. Fails with `data_loss` and says what is wrong. */
export async function verifyBackup(source: BackupSource): Promise<BackupSummary> {
  const hash = createHash("sha256");
  let bytes = 0;
  let tail: Buffer = Buffer.alloc(0);
  let header: BackupHeader | undefined;
  let footer: { pairs: number; leases: number } | undefined;
  let pairs = 0;
  let leases = 0;
  let lastKey: Buffer | undefined;
  const parser = new RecordParser();
  for await (const chunk of chunks(source)) {
    bytes += chunk.length;
    const joined = Buffer.concat([tail, chunk]);
    const body = joined.subarray(0, Math.max(0, joined.length - checksumBytes));
    tail = joined.subarray(body.length);
    hash.update(body);
    for (const { record } of parser.push(body)) {
      if (footer) throw damaged("records follow its end");
      if (record.case === "header") header = checkHeader(header, record.value);
      else if (!header) throw damaged("it does not begin with a header");
      if (record.case === "lease") leases++;
      if (record.case === "footer")
        footer = { pairs: Number(record.value.pairs), leases: Number(record.value.leases) };
      if (record.case === "pair") {
        const { key } = pairFrom(record.value);
        if (lastKey && lastKey.compare(key) >= 0) throw damaged("its keys are not in order");
        lastKey = key;
        pairs++;
      }
    }
  }
  if (bytes === 0) throw damaged("it is empty");
  if (bytes % backupBlockBytes !== checksumBytes) throw damaged("it was cut off");
  const sum = hash.digest();
  if (!timingSafeEqual(sum, tail)) throw damaged("its checksum does not match: it was changed or cut off");
  if (!header || !footer) throw damaged("it has no end record");
  if (footer.pairs !== pairs || footer.leases !== leases)
    throw damaged("it holds fewer records than it says");
  return {
    revision: Number(header.revision),
    driver: header.driver,
    takenAt: Number(header.takenAt),
    pairs,
    leases,
    bytes,
    sha256: sum.toString("hex"),
    encryptionKeys: header.encryptionKeys,
  };
}

/** Records of a backup that was verified. */
export async function* backupRecords(source: BackupSource): AsyncGenerator<BackupRecord, void, undefined> {
  const parser = new RecordParser();
  let tail: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks(source)) {
    const joined = Buffer.concat([tail, chunk]);
    const body = joined.subarray(0, Math.max(0, joined.length - checksumBytes));
    tail = joined.subarray(body.length);
    yield* parser.push(body);
  }
}

/** Pairs of a backup in groups. */
export async function* backupPairs(
  source: BackupSource,
  groupSize: number,
): AsyncGenerator<KeyValue[], void, undefined> {
  let group: KeyValue[] = [];
  for await (const { record } of backupRecords(source)) {
    if (record.case !== "pair") continue;
    group.push(pairFrom(record.value));
    if (group.length < groupSize) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

function checkHeader(seen: BackupHeader | undefined, header: BackupHeader): BackupHeader {
  if (seen) throw damaged("it has two headers");
  if (header.magic !== backupMagic) throw damaged("it is not a backup of a store");
  if (header.formatVersion > backupFormatVersion)
    throw damaged(`it has format version ${header.formatVersion}, this program knows ${backupFormatVersion}`);
  return header;
}

async function* chunks(source: BackupSource): AsyncGenerator<Uint8Array, void, undefined> {
  if (typeof source === "function") {
    yield* source();
    return;
  }
  try {
    for await (const chunk of createReadStream(source, { highWaterMark: 256 * 1024 })) yield chunk;
  } catch (cause) {
    if (isCoded(cause)) throw cause;
    throw fault("corrupt", `the backup ${source} cannot be read`, { cause });
  }
}

/** Size-delimited records out of chunks cut anywhere. Zero bytes between records are padding. */
class RecordParser {
  #rest: Buffer = Buffer.alloc(0);

  *push(chunk: Uint8Array): Generator<BackupRecord, void, undefined> {
    const buffer = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    for (;;) {
      const size = varint(buffer, at);
      if (!size) break;
      if (size.value > maxRecordBytes) throw damaged("a record is larger than any can be");
      const start = at + size.bytes;
      if (start + size.value > buffer.length) break;
      at = start + size.value;
      if (size.value === 0) continue;
      let record: BackupRecord;
      try {
        record = fromBinary(BackupRecordSchema, buffer.subarray(start, at));
      } catch (cause) {
        throw fault("corrupt", "the backup is damaged: a record cannot be decoded", { cause });
      }
      yield record;
    }
    this.#rest = buffer.subarray(at);
  }
}

function varint(buffer: Buffer, at: number): { value: number; bytes: number } | undefined {
  let value = 0;
  for (let bytes = 0; bytes < 5; bytes++) {
    const byte = buffer[at + bytes];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * bytes);
    if (byte < 0x80) return { value, bytes: bytes + 1 };
  }
  throw damaged("a length is longer than any can be");
}

function damaged(what: string): Error {
  return fault("corrupt", `the backup is damaged or not a backup: ${what}`);
}
