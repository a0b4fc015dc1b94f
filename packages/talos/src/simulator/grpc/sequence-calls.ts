/**
 * The calls of `machine.MachineService` that start a sequence: reset, reboot, shutdown, upgrade, rollback.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import {
  ResetRequest_WipeMode as WipeMode,
  type MachineService,
  type ResetRequest,
} from "../../gen/machine/machine_pb.ts";
import { failedPrecondition, unknownError } from "../call-error.ts";
import type { WipePlan } from "../node-ending.ts";
import type { SimulatedNode } from "../node.ts";
import type { SequenceName } from "../sequence.ts";
import { callerOf } from "./call-context.ts";

/** See the module's comment. */
export const sequenceCalls: Partial<ServiceImpl<typeof MachineService>> = {
  reset(request, context) {
    const { node } = callerOf(context);
    const plan = wipePlan(request, node);
    return { messages: [{ actorId: actOn(node, (actorId) => node.reset(plan, actorId)) }] };
  },

  reboot(_request, context) {
    const { node } = callerOf(context);
    return { messages: [{ actorId: actOn(node, (actorId) => node.reboot(actorId)) }] };
  },

  shutdown(_request, context) {
    const { node } = callerOf(context);
    return { messages: [{ actorId: actOn(node, (actorId) => node.shutDown(actorId)) }] };
  },

  upgrade(request, context) {
    const { node } = callerOf(context);
    if (!node.record.installed) throw failedPrecondition("Talos is not installed");
    const tag = imageVersion(request.image);
    if (tag === undefined) {
      const shown = JSON.stringify(request.image.slice(0, 200));
      throw unknownError(`error validating installer image ${shown}: it has no Talos version as its tag`);
    }
    const isChecked = node.config?.role === "controlplane" && !request.force && !request.preserve;
    if (isChecked && node.cluster?.etcdMembers.length === 2 && node.hasEtcdData) {
      throw unknownError(
        "error validating etcd for upgrade: a cluster of two members would lose its quorum during the upgrade",
      );
    }
    const actorId = actOn(node, (id) => node.upgrade(tag, id));
    return { messages: [{ ack: "Upgrade request received", actorId }] };
  },

  rollback(_request, context) {
    const { node } = callerOf(context);
    if (!node.record.installed) throw failedPrecondition("system disk not found");
    if (node.record.previousVersion === undefined)
      throw unknownError('cannot rollback to "", label does not exist');
    actOn(node, () => node.rollBack());
    return { messages: [{}] };
  },
};

/** The Talos release that is the tag of an installer image. */
export function imageVersion(image: string): string | undefined {
  return /^[^\s@]+:(v1\.\d{1,3}\.\d{1,3}(?:-[0-9A-Za-z.-]+)?)(?:@sha256:[0-9a-f]{64})?$/.exec(image)?.[1];
}

/** Sequences during which Talos drops a request, although it says yes. */
const exclusive: readonly SequenceName[] = ["install", "reboot", "upgrade", "reset"];

/** Does it, unless it is dropped; returns the id under which its events are told. */
function actOn(node: SimulatedNode, act: (actorId: string) => void): string {
  const actorId = node.edges.random.uuid();
  if (node.sequence === undefined || !exclusive.includes(node.sequence)) act(actorId);
  return actorId;
}

function wipePlan(request: ResetRequest, node: SimulatedNode): WipePlan {
  const { mode, systemPartitionsToWipe, userDisksToWipe } = request;
  if (mode === WipeMode.SYSTEM_DISK && userDisksToWipe.length > 0) {
    throw unknownError(
      "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter",
    );
  }
  if (mode === WipeMode.USER_DISKS && systemPartitionsToWipe.length > 0) {
    throw unknownError(
      "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter",
    );
  }
  for (const path of userDisksToWipe) {
    const disk = node.spec.disks.find(({ name }) => `/dev/${name}` === path);
    const shown = path.slice(0, 200);
    if (!disk) throw unknownError(`reset user disk failed: device ${shown} wasn't found`);
    if (disk.readonly === true) throw unknownError(`reset user disk failed: device ${shown} is readonly`);
    if (node.view().systemDisk === disk.name)
      throw unknownError(`reset user disk failed: device ${shown} is the system disk`);
  }
  for (const { label } of systemPartitionsToWipe) {
    if (!["STATE", "EPHEMERAL", "META", "BOOT", "EFI"].includes(label)) {
      throw unknownError(
        `failed to get volume status with label ${JSON.stringify(label)}: resource doesn't exist`,
      );
    }
  }
  const labels = systemPartitionsToWipe.filter(({ wipe }) => wipe).map(({ label }) => label);
  const isPartial = systemPartitionsToWipe.length > 0 || mode === WipeMode.USER_DISKS;
  return { graceful: request.graceful, reboot: request.reboot, partitions: isPartial ? labels : undefined };
}
