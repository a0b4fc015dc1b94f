/**
 * Contract values as etcd messages and back. Nothing is decided here but what the wire leaves open:
 * revisions beyond what a double holds are refused, unknown enum numbers too.
 */
import { create } from "@bufbuild/protobuf";
import type {
  Compare,
  KeyValue,
  Op,
  OpResult,
  RangeRequest,
  RangeResult,
  StoreAlarm,
  StoreEvent,
  TxnRequest,
  TxnResult,
} from "../contract.ts";
import { fault } from "../faults.ts";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import {
  Event_EventType,
  EventSchema,
  KeyValueSchema,
  type Event as EventMessage,
  type KeyValue as PairMessage,
} from "../gen/etcd/mvccpb/kv_pb.ts";

/** A revision or count from the wire. Negative ones mean "none", as etcd treats them. */
export function toNumber(value: bigint): number {
  if (value <= 0n) return 0;
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw fault("future_revision", `revision ${value} is in the future`);
  return number;
}

/** Bytes of a message as a buffer over the same memory. */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A pair as a message. */
export function pairMessage(kv: KeyValue): PairMessage {
  return create(KeyValueSchema, {
    key: kv.key,
    value: kv.value,
    createRevision: BigInt(kv.createRevision),
    modRevision: BigInt(kv.modRevision),
    version: BigInt(kv.version),
    lease: kv.lease,
  });
}

/** A message as a pair. */
export function pairFrom(message: PairMessage): KeyValue {
  return {
    key: toBuffer(message.key),
    value: toBuffer(message.value),
    createRevision: Number(message.createRevision),
    modRevision: Number(message.modRevision),
    version: Number(message.version),
    lease: message.lease,
  };
}

/** An event as a message. */
export function eventMessage(event: StoreEvent): EventMessage {
  return create(EventSchema, {
    type: event.type === "put" ? Event_EventType.PUT : Event_EventType.DELETE,
    kv: pairMessage(event.kv),
    ...(event.prev ? { prevKv: pairMessage(event.prev) } : {}),
  });
}

/** A message as an event. */
export function eventFrom(message: EventMessage): StoreEvent {
  const kv = message.kv ? pairFrom(message.kv) : pairFrom(create(KeyValueSchema));
  return {
    type: message.type === Event_EventType.DELETE ? "delete" : "put",
    kv,
    ...(message.prevKv ? { prev: pairFrom(message.prevKv) } : {}),
  };
}

/** A header that says where the store stands. */
export function header(
  identity: { readonly clusterId: bigint; readonly memberId: bigint },
  revision: number,
) {
  return create(rpc.ResponseHeaderSchema, { ...identity, revision: BigInt(revision), raftTerm: 1n });
}

type SortBy = NonNullable<RangeRequest["sort"]>["by"];
const { NONE, ASCEND, DESCEND } = rpc.RangeRequest_SortOrder;
const { KEY, VERSION, CREATE, MOD, VALUE } = rpc.RangeRequest_SortTarget;
const sortTargets: Record<SortBy, rpc.RangeRequest_SortTarget> = {
  key: KEY,
  version: VERSION,
  create: CREATE,
  mod: MOD,
  value: VALUE,
};

function nameOf<K extends string, V>(table: Record<K, V>, value: V): K | undefined {
  for (const name in table) if (table[name] === value) return name;
  return undefined;
}

/** A read from the wire. */
export function rangeFrom(message: rpc.RangeRequest): RangeRequest {
  const by = nameOf(sortTargets, message.sortTarget);
  const { sortOrder } = message;
  if (!by || ![NONE, ASCEND, DESCEND].some((order) => order === sortOrder))
    throw fault("invalid_range", "unknown sort order or target");
  const sorted = sortOrder !== NONE || by !== "key";
  return {
    ...rangeKeys(message),
    revision: toNumber(message.revision),
    limit: toNumber(message.limit),
    keysOnly: message.keysOnly,
    countOnly: message.countOnly,
    ...(sorted ? { sort: { by, descending: sortOrder === DESCEND } } : {}),
    minModRevision: toNumber(message.minModRevision),
    maxModRevision: toNumber(message.maxModRevision),
    minCreateRevision: toNumber(message.minCreateRevision),
    maxCreateRevision: toNumber(message.maxCreateRevision),
  };
}

function rangeKeys(message: { key: Uint8Array; rangeEnd: Uint8Array }): { key: Buffer; end?: Buffer } {
  const key = toBuffer(message.key);
  return message.rangeEnd.length === 0 ? { key } : { key, end: toBuffer(message.rangeEnd) };
}

/** A read for the wire. */
export function rangeMessage(request: RangeRequest): rpc.RangeRequest {
  const { sort } = request;
  return create(rpc.RangeRequestSchema, {
    ...keysFor(request),
    revision: BigInt(request.revision ?? 0),
    limit: BigInt(request.limit ?? 0),
    keysOnly: request.keysOnly ?? false,
    countOnly: request.countOnly ?? false,
    sortOrder: sort ? (sort.descending === true ? DESCEND : ASCEND) : NONE,
    sortTarget: sortTargets[sort?.by ?? "key"],
    minModRevision: BigInt(request.minModRevision ?? 0),
    maxModRevision: BigInt(request.maxModRevision ?? 0),
    minCreateRevision: BigInt(request.minCreateRevision ?? 0),
    maxCreateRevision: BigInt(request.maxCreateRevision ?? 0),
  });
}

/** Key and range end for the wire. */
export function keysFor(range: { key: string | Uint8Array; end?: string | Uint8Array }): {
  key: Uint8Array;
  rangeEnd: Uint8Array;
} {
  const bytes = (value: string | Uint8Array): Uint8Array =>
    typeof value === "string" ? Buffer.from(value, "utf8") : value;
  return { key: bytes(range.key), rangeEnd: bytes(range.end ?? "") };
}

/** The answer to a read, without header. */
export function rangeResultMessage(result: RangeResult): {
  kvs: PairMessage[];
  count: bigint;
  more: boolean;
} {
  return { kvs: result.kvs.map(pairMessage), count: BigInt(result.count), more: result.more };
}

/** The answer to a read from the wire. */
export function rangeResultFrom(message: rpc.RangeResponse, revision: number): RangeResult {
  return { revision, kvs: message.kvs.map(pairFrom), count: Number(message.count), more: message.more };
}

/** Alarms as they are called on the wire. */
export const alarmNames: ReadonlyMap<rpc.AlarmType, StoreAlarm> = new Map([
  [rpc.AlarmType.NOSPACE, "no_space"],
  [rpc.AlarmType.CORRUPT, "corrupt"],
]);

type Relation = Compare["result"];
const relations: Record<Relation, rpc.Compare_CompareResult> = {
  equal: rpc.Compare_CompareResult.EQUAL,
  greater: rpc.Compare_CompareResult.GREATER,
  less: rpc.Compare_CompareResult.LESS,
  not_equal: rpc.Compare_CompareResult.NOT_EQUAL,
};

function compareFrom(message: rpc.Compare): Compare {
  const result = nameOf(relations, message.result);
  if (!result) throw fault("invalid_range", "unknown comparison");
  const base = { ...rangeKeys(message), result };
  const union = message.targetUnion;
  // A client leaves the operand out when it is zero; the target field says which one is meant.
  switch (message.target) {
    case rpc.Compare_CompareTarget.VERSION:
      return { ...base, target: "version", operand: union.case === "version" ? Number(union.value) : 0 };
    case rpc.Compare_CompareTarget.CREATE:
      return {
        ...base,
        target: "create",
        operand: union.case === "createRevision" ? Number(union.value) : 0,
      };
    case rpc.Compare_CompareTarget.MOD:
      return { ...base, target: "mod", operand: union.case === "modRevision" ? Number(union.value) : 0 };
    case rpc.Compare_CompareTarget.VALUE:
      return { ...base, target: "value", operand: union.case === "value" ? toBuffer(union.value) : "" };
    case rpc.Compare_CompareTarget.LEASE:
      return { ...base, target: "lease", operand: union.case === "lease" ? union.value : 0n };
    default:
      throw fault("invalid_range", "unknown comparison target");
  }
}

function compareMessage(compare: Compare): rpc.Compare {
  const base = { ...keysFor(compare), result: relations[compare.result] };
  switch (compare.target) {
    case "version":
      return create(rpc.CompareSchema, {
        ...base,
        target: rpc.Compare_CompareTarget.VERSION,
        targetUnion: { case: "version", value: BigInt(compare.operand) },
      });
    case "create":
      return create(rpc.CompareSchema, {
        ...base,
        target: rpc.Compare_CompareTarget.CREATE,
        targetUnion: { case: "createRevision", value: BigInt(compare.operand) },
      });
    case "mod":
      return create(rpc.CompareSchema, {
        ...base,
        target: rpc.Compare_CompareTarget.MOD,
        targetUnion: { case: "modRevision", value: BigInt(compare.operand) },
      });
    case "value":
      return create(rpc.CompareSchema, {
        ...base,
        target: rpc.Compare_CompareTarget.VALUE,
        targetUnion: { case: "value", value: Buffer.from(compare.operand) },
      });
    case "lease":
      return create(rpc.CompareSchema, {
        ...base,
        target: rpc.Compare_CompareTarget.LEASE,
        targetUnion: { case: "lease", value: compare.operand },
      });
  }
}

/** A put from the wire. */
export function putFrom(message: rpc.PutRequest): Op {
  return {
    type: "put",
    key: toBuffer(message.key),
    value: toBuffer(message.value),
    lease: message.lease,
    prevKv: message.prevKv,
    ignoreValue: message.ignoreValue,
    ignoreLease: message.ignoreLease,
  };
}

/** A delete from the wire. */
export function deleteFrom(message: rpc.DeleteRangeRequest): Op {
  return { type: "delete", ...rangeKeys(message), prevKv: message.prevKv };
}

function opFrom(message: rpc.RequestOp): Op {
  const { request } = message;
  switch (request.case) {
    case "requestRange":
      return { type: "range", ...rangeFrom(request.value) };
    case "requestPut":
      return putFrom(request.value);
    case "requestDeleteRange":
      return deleteFrom(request.value);
    case "requestTxn":
      return { type: "txn", ...txnFrom(request.value) };
    default:
      // etcd says the same of an operation that is none.
      throw fault("key_not_found", "an operation of the transaction is empty");
  }
}

/** A transaction from the wire. */
export function txnFrom(message: rpc.TxnRequest): TxnRequest {
  return {
    compare: message.compare.map(compareFrom),
    success: message.success.map(opFrom),
    failure: message.failure.map(opFrom),
  };
}

function opMessage(op: Op): rpc.RequestOp {
  switch (op.type) {
    case "range":
      return create(rpc.RequestOpSchema, { request: { case: "requestRange", value: rangeMessage(op) } });
    case "put":
      return create(rpc.RequestOpSchema, {
        request: {
          case: "requestPut",
          value: create(rpc.PutRequestSchema, {
            key: keysFor(op).key,
            value: typeof op.value === "string" ? Buffer.from(op.value, "utf8") : op.value,
            lease: op.lease ?? 0n,
            prevKv: op.prevKv ?? false,
            ignoreValue: op.ignoreValue ?? false,
            ignoreLease: op.ignoreLease ?? false,
          }),
        },
      });
    case "delete":
      return create(rpc.RequestOpSchema, {
        request: {
          case: "requestDeleteRange",
          value: create(rpc.DeleteRangeRequestSchema, { ...keysFor(op), prevKv: op.prevKv ?? false }),
        },
      });
    case "txn":
      return create(rpc.RequestOpSchema, { request: { case: "requestTxn", value: txnMessage(op) } });
  }
}

/** A transaction for the wire. */
export function txnMessage(request: TxnRequest): rpc.TxnRequest {
  return create(rpc.TxnRequestSchema, {
    compare: (request.compare ?? []).map(compareMessage),
    success: (request.success ?? []).map(opMessage),
    failure: (request.failure ?? []).map(opMessage),
  });
}

type Header = (revision: number) => rpc.ResponseHeader;

/**
 * The answer to a transaction. Inner answers carry a header of their own, as etcd's do: only a revision, which is the new one
 * from the first change on; that of a nested transaction is empty.
 */
export function txnResultMessage(result: TxnResult, head: Header): rpc.TxnResponse {
  const old = result.revision - (result.results.some(changes) ? 1 : 0);
  let revision = old;
  const message = (each: OpResult): rpc.ResponseOp => {
    if (changes(each) && each.type !== "txn") revision = result.revision;
    return each.type === "txn" ? nestedMessage(each.txn, message) : resultMessage(each, revision);
  };
  return create(rpc.TxnResponseSchema, {
    header: head(result.revision),
    succeeded: result.succeeded,
    responses: result.results.map(message),
  });
}

/** Whether something was changed. */
function changes(result: OpResult): boolean {
  if (result.type === "txn") return result.txn.results.some(changes);
  return result.type === "put" || (result.type === "delete" && result.deleted > 0);
}

function nestedMessage(result: TxnResult, message: (each: OpResult) => rpc.ResponseOp): rpc.ResponseOp {
  const value = create(rpc.TxnResponseSchema, {
    header: create(rpc.ResponseHeaderSchema),
    succeeded: result.succeeded,
    responses: result.results.map(message),
  });
  return create(rpc.ResponseOpSchema, { response: { case: "responseTxn", value } });
}

function resultMessage(result: Exclude<OpResult, { type: "txn" }>, revision: number): rpc.ResponseOp {
  const at = (rev: number): rpc.ResponseHeader => create(rpc.ResponseHeaderSchema, { revision: BigInt(rev) });
  switch (result.type) {
    case "range":
      return create(rpc.ResponseOpSchema, {
        response: {
          case: "responseRange",
          value: create(rpc.RangeResponseSchema, {
            header: at(result.range.revision),
            ...rangeResultMessage(result.range),
          }),
        },
      });
    case "put":
      return create(rpc.ResponseOpSchema, {
        response: {
          case: "responsePut",
          value: create(rpc.PutResponseSchema, {
            header: at(revision),
            ...(result.prev ? { prevKv: pairMessage(result.prev) } : {}),
          }),
        },
      });
    case "delete":
      return create(rpc.ResponseOpSchema, {
        response: {
          case: "responseDeleteRange",
          value: create(rpc.DeleteRangeResponseSchema, {
            header: at(revision),
            deleted: BigInt(result.deleted),
            prevKvs: result.prev.map(pairMessage),
          }),
        },
      });
  }
}

/** The answer to a transaction from the wire. */
export function txnResultFrom(message: rpc.TxnResponse, revision: number): TxnResult {
  return {
    succeeded: message.succeeded,
    revision,
    results: message.responses.map((each) => resultFrom(each, revision)),
  };
}

function resultFrom(message: rpc.ResponseOp, revision: number): OpResult {
  const { response } = message;
  switch (response.case) {
    case "responseRange":
      return {
        type: "range",
        range: rangeResultFrom(
          response.value,
          Number(response.value.header?.revision ?? BigInt(revision)) || revision,
        ),
      };
    case "responsePut":
      return { type: "put", ...(response.value.prevKv ? { prev: pairFrom(response.value.prevKv) } : {}) };
    case "responseDeleteRange":
      return {
        type: "delete",
        deleted: Number(response.value.deleted),
        prev: response.value.prevKvs.map(pairFrom),
      };
    case "responseTxn":
      return { type: "txn", txn: txnResultFrom(response.value, revision) };
    default:
      throw fault("lost", "the store answered a transaction with an empty result");
  }
}
