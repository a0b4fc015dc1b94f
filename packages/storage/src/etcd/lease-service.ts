/**
 * etcd's Lease service.
 */
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { CodedError, isCoded } from "@kontinuum/std";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import type { EtcdFace } from "./call.ts";
import { inOrder } from "./in-order.ts";
import { toWire } from "./status-text.ts";

/** Keep-alives of one stream that are under way at once. */
const maxRenewals = 256;

/** Leases over a store. */
export function leaseService(face: EtcdFace): ServiceImpl<typeof rpc.Lease> {
  const { store, head } = face;
  const here = async () => head(await store.revision());
  return {
    leaseGrant: (request, context) =>
      face.call(context, async (access) => {
        await access.checkLease?.("grant", request.ID);
        const id = request.ID === 0n ? (access.chooseLease?.() ?? 0n) : request.ID;
        const lease = await store.leaseGrant(Number(request.TTL), id);
        return create(rpc.LeaseGrantResponseSchema, {
          header: await here(),
          ID: lease.id,
          TTL: BigInt(lease.grantedTtl),
        });
      }),
    leaseRevoke: (request, context) =>
      face.call(context, async (access) => {
        await access.checkLease?.("revoke", request.ID);
        const { revision } = await store.leaseRevoke(request.ID);
        return create(rpc.LeaseRevokeResponseSchema, { header: head(revision) });
      }),
    async *leaseKeepAlive(requests, context) {
      let ended: (() => void) | undefined;
      try {
        const access = await face.access(context);
        ended = access.streamOpened?.();
        // Clients renew all their leases on one stream: one after the other, each would wait for a flush of its own.
        yield* inOrder(untilRevoked(requests, access.signal), maxRenewals, async ({ ID }) => {
          await access.checkLease?.("use", ID);
          let ttl = 0;
          try {
            ttl = (await store.leaseKeepAlive(ID)).grantedTtl;
          } catch (error) {
            // The stream goes on: a time to live of 0 says that the lease is over.
            if (!isCoded(error, "not_found")) throw error;
          }
          return create(rpc.LeaseKeepAliveResponseSchema, { header: await here(), ID, TTL: BigInt(ttl) });
        });
      } catch (error) {
        throw toWire(error);
      } finally {
        ended?.();
      }
    },
    leaseTimeToLive: (request, context) =>
      face.call(context, async (access) => {
        await access.checkLease?.("use", request.ID);
        const lease = await store.leaseTimeToLive(request.ID, request.keys);
        return create(rpc.LeaseTimeToLiveResponseSchema, {
          header: await here(),
          ID: request.ID,
          TTL: BigInt(lease.ttl),
          grantedTTL: BigInt(lease.grantedTtl),
          keys: [...lease.keys],
        });
      }),
    leaseLeases: (_request, context) =>
      face.call(context, async (access) => {
        await access.checkLease?.("list", 0n);
        const leases = (await store.leases()).map((ID) => create(rpc.LeaseStatusSchema, { ID }));
        return create(rpc.LeaseLeasesResponseSchema, { header: await here(), leases });
      }),
  };
}

/** Passes requests on until the caller's identity is revoked, and then fails at once. */
async function* untilRevoked<T>(
  requests: AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, undefined> {
  if (!signal) {
    yield* requests;
    return;
  }
  const iterator = requests[Symbol.asyncIterator]();
  const revoked = (): CodedError => new CodedError("unauthenticated", "the identity was revoked");
  // One promise for each step: a race with one that lasts as long as the stream would grow with every request.
  let fail: ((error: CodedError) => void) | undefined;
  const abort = (): void => fail?.(revoked());
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      if (signal.aborted) throw revoked();
      const step = await new Promise<IteratorResult<T>>((resolve, reject) => {
        fail = reject;
        iterator.next().then(resolve, reject);
      });
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
