/**
 * Putting another Talos release on a node.
 *
 * From Talos 1.13 on the node pulls the image, runs the installer while the caller waits, and reboots when told.
 * Earlier releases do all of it after one call that returns at once; so does a newer one for a staged upgrade, which
 * the newer calls do not know.
 */
import type { CallOptions as WireOptions, Client } from "@connectrpc/connect";
import { ContainerDriver, ContainerdNamespace } from "../gen/common/common_pb.ts";
import type { ImageService } from "../gen/machine/image_pb.ts";
import type { LifecycleService } from "../gen/machine/lifecycle_pb.ts";
import type { MachineService } from "../gen/machine/machine_pb.ts";
import { onlyReply, type CallOptions, type Caller } from "./call.ts";
import { isTalosError, TalosError } from "./talos-error.ts";

/** What to install. */
export interface UpgradeRequest {
  /** An installer image whose tag is the release. */
  readonly image: string;
  /** Install at the next boot only. Default false. */
  readonly stage?: boolean;
  /** Do not look whether etcd survives it. Default false. */
  readonly force?: boolean;
  /** Keep the data of EPHEMERAL (before Talos 1.8). Default true. */
  readonly preserve?: boolean;
}

/** What came of it: the node is on its way to the new release. */
export interface UpgradeResult {
  /** What the node said last. */
  readonly ack: string;
  /** Under which its events are told. */
  readonly actorId: string;
}

/** The services an upgrade talks to. */
export interface UpgradeServices {
  readonly machine: Client<typeof MachineService>;
  readonly images: Client<typeof ImageService>;
  readonly lifecycle: Client<typeof LifecycleService>;
  readonly caller: Caller;
}

/** Characters of what an installer says that are kept. */
const messageMax = 500;

/** Where the system keeps its own images. */
const containerd = { driver: ContainerDriver.CONTAINERD, namespace: ContainerdNamespace.NS_SYSTEM } as const;

/** Upgrades a node. A failed installation is `refused`; everything else fails as calls do. */
export async function upgradeNode(
  services: UpgradeServices,
  request: UpgradeRequest,
  options: CallOptions,
): Promise<UpgradeResult> {
  if (request.stage === true) return upgradeByOneCall(services, request, options);
  try {
    const image = await pull(services, request.image, options);
    const ack = await install(services, image, options);
    return { ack, actorId: await reboot(services, options) };
  } catch (error) {
    if (isTalosError(error, "unsupported")) return upgradeByOneCall(services, request, options);
    throw error;
  }
}

/** Returns the image's full name. */
async function pull(
  { images, caller }: UpgradeServices,
  imageRef: string,
  options: CallOptions,
): Promise<string> {
  let name = imageRef;
  const replies = caller.stream("Pull", options, (wire: WireOptions) =>
    images.pull({ containerd, imageRef }, wire),
  );
  for await (const { response } of replies) if (response.case === "name") name = response.value;
  return name;
}

/** Returns what the installer said last. */
async function install(
  { lifecycle, caller }: UpgradeServices,
  imageName: string,
  options: CallOptions,
): Promise<string> {
  let last = "";
  let exitCode: number | undefined;
  const request = { containerd, source: { imageName } };
  for await (const { progress } of caller.stream("Upgrade", options, (wire) =>
    lifecycle.upgrade(request, wire),
  )) {
    if (progress?.response.case === "message") last = progress.response.value.slice(0, messageMax);
    else if (progress?.response.case === "exitCode") exitCode = progress.response.value;
  }
  if (exitCode === undefined)
    throw new TalosError("protocol", "Upgrade: the installer did not say how it ended");
  if (exitCode !== 0) throw new TalosError("refused", `Upgrade: the installer failed: ${last}`);
  return last;
}

async function reboot({ machine, caller }: UpgradeServices, options: CallOptions): Promise<string> {
  const { messages } = await caller.unary("Reboot", options, (wire) => machine.reboot({}, wire));
  return onlyReply("Reboot", messages).actorId;
}

async function upgradeByOneCall(
  { machine, caller }: UpgradeServices,
  { image, stage = false, force = false, preserve = true }: UpgradeRequest,
  options: CallOptions,
): Promise<UpgradeResult> {
  const request = { image, stage, force, preserve };
  const { messages } = await caller.unary("Upgrade", options, (wire) => machine.upgrade(request, wire));
  const { ack, actorId } = onlyReply("Upgrade", messages);
  return { ack, actorId };
}
