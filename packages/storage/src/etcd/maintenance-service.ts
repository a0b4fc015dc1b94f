/**
 * etcd's Maintenance, Cluster and Auth services, as far as they mean something for a store of one
 * member: status, hashes, snapshot, and honest answers to the rest.
 */
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { CodedError } from "@kontinuum/std";
import type { Store } from "../contract.ts";
import { writeBackup } from "../operations/backup.ts";
import * as rpc from "../gen/etcd/etcdserverpb/rpc_pb.ts";
import { identity, requireOperator, type EtcdFace } from "./call.ts";
import { alarmNames, toNumber } from "./messages.ts";
import { toWire } from "./status-text.ts";

const { ACTIVATE, DEACTIVATE } = rpc.AlarmRequest_AlarmAction;
const { NONE } = rpc.AlarmType;

/** Version of etcd whose API is served, for clients that look at it. */
const servedVersion = "3.5.13";

/** Maintenance over a store. */
export function maintenanceService(face: EtcdFace): ServiceImpl<typeof rpc.Maintenance> {
  const { store, head } = face;
  return {
    status: (_request, context) =>
      face.call(context, async () => {
        const status = await store.status();
        const alarms = await raisedAlarms(store);
        return create(rpc.StatusResponseSchema, {
          header: head(status.revision),
          version: servedVersion,
          dbSize: BigInt(status.sizeBytes),
          dbSizeInUse: BigInt(status.sizeInUseBytes),
          leader: identity.memberId,
          raftIndex: BigInt(status.revision),
          raftAppliedIndex: BigInt(status.revision),
          raftTerm: 1n,
          errors: alarms.map(
            (alarm) =>
              `memberID:${identity.memberId} alarm:${alarm === rpc.AlarmType.NOSPACE ? "NOSPACE" : "CORRUPT"} `,
          ),
        });
      }),
    hash: (_request, context) =>
      face.operatorCall(context, async () => {
        const { hash, revision } = await store.hash();
        return create(rpc.HashResponseSchema, { header: head(revision), hash });
      }),
    hashKV: (request, context) =>
      face.operatorCall(context, async () => {
        const { hash, revision, compactRevision } = await store.hash(toNumber(request.revision));
        return create(rpc.HashKVResponseSchema, {
          header: head(revision),
          hash,
          compactRevision: BigInt(compactRevision),
          hashRevision: BigInt(revision),
        });
      }),
    defragment: (_request, context) =>
      face.operatorCall(context, async () => {
        await store.defragment?.();
        return create(rpc.DefragmentResponseSchema, { header: head(await store.revision()) });
      }),
    alarm: ({ action, alarm: wanted }, context) =>
      face.operatorCall(context, async () => {
        if (action === ACTIVATE)
          throw new CodedError("unsupported", "an alarm is raised by the store itself");
        const members = (await raisedAlarms(store))
          .filter((alarm) => wanted === alarm || wanted === NONE)
          .map((alarm) => create(rpc.AlarmMemberSchema, { memberID: identity.memberId, alarm }));
        if (action === DEACTIVATE)
          for (const { alarm } of members) {
            const name = alarmNames.get(alarm);
            if (name) await store.disarm?.(name);
          }
        return create(rpc.AlarmResponseSchema, { header: head(await store.revision()), alarms: members });
      }),
    async *snapshot(_request, context) {
      try {
        requireOperator(await face.access(context));
        // etcd's own file where etcd is below, else our backup: both end with a SHA-256 that etcdctl checks.
        const blobs =
          store.snapshot?.({ signal: context.signal }) ?? writeBackup(store, { signal: context.signal });
        for await (const blob of blobs) yield create(rpc.SnapshotResponseSchema, { header: head(0), blob });
      } catch (error) {
        throw toWire(error);
      }
    },
  };
}

async function raisedAlarms(store: Store): Promise<rpc.AlarmType[]> {
  const raised = (await store.alarms?.()) ?? [];
  return [...alarmNames].filter(([, name]) => raised.includes(name)).map(([type]) => type);
}

/** A cluster of one. */
export function clusterService(
  face: EtcdFace,
  clientUrls: readonly string[],
): ServiceImpl<typeof rpc.Cluster> {
  return {
    memberList: (_request, context) =>
      face.call(context, async () =>
        create(rpc.MemberListResponseSchema, {
          header: face.head(await face.store.revision()),
          members: [
            create(rpc.MemberSchema, {
              ID: identity.memberId,
              name: "kontinuum",
              clientURLs: [...clientUrls],
            }),
          ],
        }),
      ),
  };
}

/** Users and passwords are not kept here: callers are identified by whoever mounts the face. */
export function authService(): ServiceImpl<typeof rpc.Auth> {
  return {
    authenticate: () => {
      throw new ConnectError("etcdserver: authentication is not enabled", Code.FailedPrecondition);
    },
  };
}
