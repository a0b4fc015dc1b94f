/**
 * etcd's KV service: a thin translation, since the contract is etcd's own semantics.
 */
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Op, OpResult } from "../contract.ts";
import { fault } from "../faults.ts";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import { requireOperator, type EtcdFace } from "./call.ts";
import {
  deleteFrom,
  pairMessage,
  putFrom,
  rangeFrom,
  rangeResultMessage,
  toNumber,
  txnFrom,
  txnResultMessage,
} from "./messages.ts";
import { restrictedRange, restrictedTxn } from "./restricted.ts";

/** KV over a store. */
export function kvService(face: EtcdFace): ServiceImpl<typeof rpc.KV> {
  const { store, head } = face;
  const one = async <T extends OpResult["type"]>(
    access: Parameters<typeof restrictedTxn>[1],
    op: Op,
    type: T,
    signal: AbortSignal,
  ): Promise<{ revision: number; result: Extract<OpResult, { type: T }> }> => {
    const { revision, results } = await restrictedTxn(store, access, { success: [op] }, { signal });
    const result = results[0];
    if (result?.type !== type) throw fault("lost", "the store answered another operation than was asked for");
    return { revision, result: result as Extract<OpResult, { type: T }> };
  };
  return {
    range: (request, context) =>
      face.call(context, async (access) => {
        const result = await restrictedRange(store, access, rangeFrom(request), { signal: context.signal });
        return create(rpc.RangeResponseSchema, {
          header: head(result.revision),
          ...rangeResultMessage(result),
        });
      }),
    put: (request, context) =>
      face.call(context, async (access) => {
        const { revision, result } = await one(access, putFrom(request), "put", context.signal);
        return create(rpc.PutResponseSchema, {
          header: head(revision),
          ...(result.prev ? { prevKv: pairMessage(result.prev) } : {}),
        });
      }),
    deleteRange: (request, context) =>
      face.call(context, async (access) => {
        const { revision, result } = await one(access, deleteFrom(request), "delete", context.signal);
        return create(rpc.DeleteRangeResponseSchema, {
          header: head(revision),
          deleted: BigInt(result.deleted),
          prevKvs: result.prev.map(pairMessage),
        });
      }),
    txn: (request, context) =>
      face.call(context, async (access) => {
        const result = await restrictedTxn(store, access, txnFrom(request), { signal: context.signal });
        return txnResultMessage(result, head);
      }),
    compact: (request, context) =>
      face.call(context, async (access) => {
        requireOperator(access);
        await store.compact(toNumber(request.revision), { signal: context.signal });
        return create(rpc.CompactionResponseSchema, { header: head(await store.revision()) });
      }),
  };
}
