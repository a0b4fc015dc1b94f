/**
 * The disks of a machine as the checks of a configuration look at them.
 */
import { installDisk, type CandidateDisk } from "../config/validate-for-node.ts";
import type { MachineSpec } from "./machine-spec.ts";
import type { NodeConfig } from "./node-config.ts";

/** The machine's disks, in the order the node lists them (by name). */
export function candidateDisks(spec: MachineSpec): CandidateDisk[] {
  return [...spec.disks]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((disk) => ({
      name: disk.name,
      devicePath: `/dev/${disk.name}`,
      sizeBytes: disk.sizeBytes,
      model: disk.model,
      serial: disk.serial,
      uuid: "",
      wwid: `sim.${disk.serial}`,
      transport: disk.transport,
      rotational: disk.rotational ?? false,
      readonly: disk.readonly ?? false,
      cdrom: disk.cdrom ?? false,
      busPath: "",
    }));
}

/** Kernel name of the disk an installed machine runs from: the one its configuration chose, else the first fit. */
export function systemDiskOf(spec: MachineSpec, config: NodeConfig | undefined): string | undefined {
  const disks = candidateDisks(spec);
  const chosen = config && installDisk(config.facts, disks);
  return (chosen ?? disks.find(({ transport }) => transport !== ""))?.name;
}
