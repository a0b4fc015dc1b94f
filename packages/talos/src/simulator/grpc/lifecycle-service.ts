/**
 * `machine.LifecycleService` (from Talos 1.13): the installer runs while the caller watches, and whoever called reboots
 * the node afterwards.
 */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { LifecycleService } from "../../gen/machine/lifecycle_pb.ts";
import { alreadyExists, failedPrecondition, invalidArgument } from "../call-error.ts";
import type { SimulatedNode } from "../node.ts";
import { callerOf } from "./call-context.ts";
import { unknownBefore } from "./preconditions.ts";
import { imageVersion } from "./sequence-calls.ts";

/** Nodes whose installer runs. */
const busy = new WeakSet<SimulatedNode>();

type Progress = {
  readonly response: { case: "message"; value: string } | { case: "exitCode"; value: number };
};

function nodeOf(context: HandlerContext): SimulatedNode {
  const { node } = callerOf(context);
  unknownBefore(node, 13, "machine.LifecycleService");
  if (busy.has(node)) throw failedPrecondition("another installation/upgrade is already in progress");
  return node;
}

/** See the module's comment. */
export const lifecycleService: ServiceImpl<typeof LifecycleService> = {
  async *install({ source, destination }, context) {
    const node = nodeOf(context);
    if (node.record.installed) throw alreadyExists("machine is already installed");
    const image = source?.imageName ?? "";
    if (image === "") throw invalidArgument("installer image name is required");
    const disk = destination?.disk ?? "";
    if (disk === "") throw invalidArgument("destination disk is required");
    if (!node.spec.disks.some(({ name }) => `/dev/${name}` === disk))
      throw invalidArgument(`invalid disk path: lstat ${disk.slice(0, 200)}: no such file or directory`);
    for await (const progress of runInstaller(node, image, disk)) yield { progress };
  },

  async *upgrade({ source }, context) {
    const node = nodeOf(context);
    if (!node.record.installed) throw failedPrecondition("machine is not installed");
    const image = source?.imageName ?? "";
    if (image === "") throw invalidArgument("installer image name is required");
    const disk = `/dev/${node.view().systemDisk ?? ""}`;
    for await (const progress of runInstaller(node, image, disk)) yield { progress };
  },
};

/** What the installer prints; it fails with exit code 1 when there is no release in the image. */
async function* runInstaller(node: SimulatedNode, image: string, disk: string): AsyncGenerator<Progress> {
  busy.add(node);
  try {
    yield { response: { case: "message", value: `running Talos installer from ${image.slice(0, 200)}` } };
    const version = imageVersion(image);
    if (version === undefined || node.faults.diskFailure === true) {
      const reason =
        version === undefined ? "the image's tag is no Talos release" : `${disk}: input/output error`;
      yield { response: { case: "message", value: `error: ${reason}` } };
      yield { response: { case: "exitCode", value: 1 } };
      return;
    }
    await node.writeSystem(version);
    yield { response: { case: "message", value: `installation of ${version} to ${disk} complete` } };
    yield { response: { case: "exitCode", value: 0 } };
  } finally {
    busy.delete(node);
  }
}
