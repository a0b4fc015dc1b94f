/**
 * The calls of `machine.MachineService` about etcd. Here etcd is its membership: there is nothing to defragment, and no
 * alarm is ever raised.
 */
import { isCoded } from "@kontinuum/std";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { MachineService } from "../../gen/machine/machine_pb.ts";
import { invalidArgument, notFound, unimplemented, unknownError } from "../call-error.ts";
import { callerOf } from "./call-context.ts";
import { controlPlaneOnly, etcdCluster } from "./preconditions.ts";

/** See the module's comment. */
export const etcdCalls: Partial<ServiceImpl<typeof MachineService>> = {
  etcdMemberList(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "member list");
    const members = etcdCluster(node).etcdMembers.map(({ id, hostname, address }) => ({
      id: BigInt(`0x${id}`),
      hostname,
      peerUrls: [`https://${address}:2380`],
      clientUrls: [`https://${address}:2379`],
      isLearner: false,
    }));
    return { messages: [{ legacyMembers: members.map(({ hostname }) => hostname), members }] };
  },

  etcdStatus(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd status");
    const { etcdLeaderId } = etcdCluster(node);
    const status = {
      memberId: BigInt(`0x${node.record.etcdMemberId ?? "0"}`),
      leader: BigInt(`0x${etcdLeaderId ?? "0"}`),
      protocolVersion: etcdVersion,
      storageVersion: "3.6.0",
      raftTerm: 2n,
      dbSize: 1_048_576n,
      dbSizeInUse: 524_288n,
    };
    return { messages: [{ memberStatus: status }] };
  },

  async etcdRemoveMemberByID(request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd remove member");
    const cluster = etcdCluster(node);
    const id = request.memberId.toString(16).padStart(16, "0");
    if (!cluster.etcdMembers.some((member) => member.id === id))
      throw notFound("etcdserver: member not found");
    await cluster.removeEtcdMember(id);
    return { messages: [{}] };
  },

  async etcdLeaveCluster(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd leave");
    try {
      await etcdCluster(node).leaveEtcd(node.record.etcdMemberId ?? "");
    } catch (error) {
      throw isCoded(error) ? unknownError(`failed to leave cluster: ${error.message}`) : error;
    }
    return { messages: [{}] };
  },

  etcdForfeitLeadership(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd forfeit leadership");
    return { messages: [{ member: etcdCluster(node).forfeitLeadership(node.record.etcdMemberId ?? "") }] };
  },

  etcdAlarmList: (_request, context) => withoutAlarms(context, "etcd alarm list"),
  etcdAlarmDisarm: (_request, context) => withoutAlarms(context, "etcd alarm disarm"),

  etcdDefragment(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd defragmentation");
    etcdCluster(node);
    return { messages: [{}] };
  },

  etcdDowngradeValidate: ({ version }, context) => downgrade(context, "etcd downgrade validation", version),
  etcdDowngradeEnable: ({ version }, context) => downgrade(context, "etcd downgrade enable", version),
  etcdDowngradeCancel(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd downgrade cancellation");
    etcdCluster(node);
    throw unknownError("failed to cancel downgrade: etcdserver: no inflight downgrade");
  },

  /** The data is not etcd's here: a file of its own form cannot be made of it. */
  // oxlint-disable-next-line require-yield
  async *etcdSnapshot(_request, context) {
    const { node } = callerOf(context);
    controlPlaneOnly(node, "etcd snapshot");
    etcdCluster(node);
    throw unimplemented("a snapshot of etcd is not simulated");
  },
};

/** Release of etcd that nodes say they run. */
const etcdVersion = "3.6.0";

function withoutAlarms(context: HandlerContext, what: string) {
  const { node } = callerOf(context);
  controlPlaneOnly(node, what);
  etcdCluster(node);
  return { messages: [{ memberAlarms: [] }] };
}

function downgrade(context: HandlerContext, what: string, version: string) {
  const { node } = callerOf(context);
  controlPlaneOnly(node, what);
  if (version === "") throw invalidArgument("version is required for etcd downgrade");
  const [, major, minor] = /^(\d{1,4})\.(\d{1,4})$/.exec(version) ?? [];
  if (major === undefined) throw invalidArgument("version should be in MAJOR.MINOR format");
  if (Number(major) < 3 || (Number(major) === 3 && Number(minor) < 5))
    throw invalidArgument("etcd downgrade is only supported to 3.5 and later versions");
  etcdCluster(node);
  if (version !== "3.5")
    throw unknownError("failed to downgrade: etcdserver: invalid downgrade target version");
  return { messages: [{ clusterDowngrade: { clusterVersion: etcdVersion } }] };
}
