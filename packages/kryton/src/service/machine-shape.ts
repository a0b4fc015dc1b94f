/**
 * The shape of machines in answers and in records.
 */
import type { Machine, MachineSpec } from "../model/machine.ts";
import type { MachineRecord } from "../operations/record.ts";

/** A machine as callers see it. */
export function present(record: MachineRecord): Machine {
  return record.operation ? { ...record.machine, operation: record.operation } : record.machine;
}

/** Drops optional fields that are empty, as the original's serializer did. `network` always stays. */
export function withoutEmpty(spec: MachineSpec): MachineSpec {
  const { ttlMinutes, labels, dockur, initialization, ...rest } = spec;
  const { storageClass, volumeMode, sizeGiB } = rest.disk;
  return {
    name: rest.name,
    image: rest.image,
    ...(initialization
      ? {
          initialization: {
            ...(initialization.username ? { username: initialization.username } : {}),
            ...(initialization.sshAuthorizedKeys?.length
              ? { sshAuthorizedKeys: initialization.sshAuthorizedKeys }
              : {}),
          },
        }
      : {}),
    compute: rest.compute,
    disk: { sizeGiB, ...(storageClass ? { storageClass } : {}), ...(volumeMode ? { volumeMode } : {}) },
    network: rest.network.networkId ? { networkId: rest.network.networkId } : {},
    ...(ttlMinutes ? { ttlMinutes } : {}),
    ...(labels && Object.keys(labels).length > 0 ? { labels } : {}),
    ...(dockur
      ? { dockur: Object.fromEntries(Object.entries(dockur).filter(([, value]) => !isEmpty(value))) }
      : {}),
  };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
}
