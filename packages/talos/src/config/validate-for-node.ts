/**
 * What only the node itself can check: that there is a disk to install on, and that the Kubernetes
 * images lie in the range its Talos release supports.
 */
import { matchesGlob, selectsDisk } from "./expression.ts";
import { textOf, type MachineConfigFacts } from "./machine-config-facts.ts";
import type { DiskSelector } from "./machine-config-options.ts";
import { kubernetesRange, parseVersionContract } from "./version-contract.ts";

/** What the checks look at of a disk. */
export interface CandidateDisk {
  readonly name: string;
  readonly devicePath: string;
  readonly sizeBytes: number;
  readonly model: string;
  readonly serial: string;
  readonly modalias?: string;
  readonly uuid: string;
  readonly wwid: string;
  readonly transport: string;
  readonly rotational: boolean;
  readonly readonly: boolean;
  readonly cdrom: boolean;
  readonly busPath: string;
}

/** Errors a node of this release with these disks reports. `installed`: it needs no disk. */
export function validateForNode(
  facts: MachineConfigFacts,
  node: {
    readonly talosVersion: string;
    readonly disks: readonly CandidateDisk[];
    readonly installed?: boolean;
  },
): string[] {
  const errors: string[] = [];
  if (facts.install?.diskSelector && !node.installed && !installDisk(facts, node.disks)) {
    errors.push("machine.install.diskSelector matches no disk");
  }
  const range = kubernetesRange(parseVersionContract(node.talosVersion));
  const { kubelet, apiServer, controllerManager, scheduler } = facts.images;
  const images = facts.controlPlane
    ? {
        kubelet,
        "kube-apiserver": apiServer,
        "kube-controller-manager": controllerManager,
        "kube-scheduler": scheduler,
      }
    : { kubelet };
  for (const [name, image] of Object.entries(images)) {
    if (image === "") continue;
    const match = /:v1\.(\d{1,3})\.\d{1,3}(?:-[0-9A-Za-z.-]+)?(?:@sha256:[0-9a-f]{64})?$/.exec(image);
    if (!match) errors.push(`the tag of the ${name} image is not a Kubernetes version`);
    else if (range && (Number(match[1]) < range[0] || Number(match[1]) > range[1])) {
      errors.push(
        `Kubernetes 1.${match[1]} of the ${name} image is not supported by Talos ${node.talosVersion}: 1.${range[0]} to 1.${range[1]} are`,
      );
    }
  }
  return errors;
}

/** The disk Talos would be installed on: the named one, or the first in order that matches. */
export function installDisk<D extends CandidateDisk>(
  { install }: Pick<MachineConfigFacts, "install">,
  disks: readonly D[],
): D | undefined {
  if (!install) return undefined;
  if (install.diskSelector) {
    const { diskSelector } = install;
    return disks.find((disk) => matchesSelector(disk, diskSelector));
  }
  const { disk, diskExpression } = install;
  if (disk !== undefined) return disks.find(({ devicePath }) => devicePath === disk);
  if (diskExpression !== undefined) return disks.find((candidate) => selectsDisk(diskExpression, candidate));
  return disks.find(isInstallable);
}

function isInstallable(disk: CandidateDisk): boolean {
  return disk.transport !== "" && !disk.readonly && !disk.cdrom;
}

function matchesSelector(disk: CandidateDisk, selector: DiskSelector): boolean {
  const fields: readonly [string | undefined, string][] = [
    [selector.model, disk.model],
    [selector.serial, disk.serial],
    [selector.modalias, disk.modalias ?? ""],
    [selector.uuid, disk.uuid],
    [selector.wwid, disk.wwid],
    [selector.busPath, disk.busPath],
  ];
  return (
    isInstallable(disk) &&
    fields.every(([pattern, value]) => pattern === undefined || matchesGlob(value, pattern)) &&
    matchesSize(disk.sizeBytes, textOf(selector.size)) &&
    matchesType(disk, selector.type)
  );
}

const units: Readonly<Record<string, number>> = { "": 0, k: 1, m: 2, g: 3, t: 4, p: 5, e: 6 };

function matchesSize(size: number, condition: string): boolean {
  if (condition === "") return true;
  const match = /^\s*(>=|<=|>|<|==)?\s*(\d+(?:\.\d+)?)\s*([kmgtpe]?)(i?)b?\s*$/i.exec(condition);
  if (!match) return false;
  const [, operator = "==", number = "0", unit = "", binary = ""] = match;
  const wanted = Number(number) * (binary ? 1024 : 1000) ** (units[unit.toLowerCase()] ?? 0);
  switch (operator) {
    case ">=":
      return size >= wanted;
    case "<=":
      return size <= wanted;
    case ">":
      return size > wanted;
    case "<":
      return size < wanted;
    default:
      return size === wanted;
  }
}

function matchesType(disk: CandidateDisk, type: DiskSelector["type"]): boolean {
  switch (type) {
    case undefined:
      return true;
    case "nvme":
      return disk.transport === "nvme";
    case "sd":
      return disk.transport === "mmc";
    case "hdd":
      return disk.rotational;
    case "ssd":
      return !disk.rotational && disk.transport !== "nvme" && disk.transport !== "mmc";
  }
}
