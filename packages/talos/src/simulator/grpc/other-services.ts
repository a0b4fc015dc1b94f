/**
 * The small services: disks, time, trustd.
 */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { parseVersionContract } from "../../config/version-contract.ts";
import { isCoded } from "@kontinuum/std";
import type { SecurityService } from "../../gen/securityapi/security_pb.ts";
import { Disk_DiskType as DiskType, type StorageService } from "../../gen/storage/storage_pb.ts";
import type { TimeService } from "../../gen/time/time_pb.ts";
import { signServerRequest } from "../../pki/certificates.ts";
import {
  failedPrecondition,
  invalidArgument,
  notFound,
  permissionDenied,
  unavailable,
  unimplemented,
} from "../call-error.ts";
import { prettySize } from "../resource-descriptions.ts";
import type { DiskSpec } from "../machine-spec.ts";
import { roles } from "../role.ts";
import { callerOf } from "./call-context.ts";

/** `storage.StorageService`. */
export const storageService: ServiceImpl<typeof StorageService> = {
  disks(_request, context) {
    const { node } = callerOf(context);
    const { systemDisk } = node.view();
    const disks = node.spec.disks.map((disk) => ({
      size: BigInt(disk.sizeBytes),
      model: disk.model,
      deviceName: `/dev/${disk.name}`,
      name: prettySize(disk.sizeBytes),
      serial: disk.serial,
      wwid: `sim.${disk.serial}`,
      type: diskType(disk),
      systemDisk: disk.name === systemDisk,
      subsystem: "/sys/class/block",
      readonly: disk.readonly ?? false,
    }));
    return { messages: [{ disks }] };
  },

  blockDeviceWipe({ devices }, context) {
    const { node, roles: own } = callerOf(context);
    if (node.config && !own.includes(roles.admin)) throw permissionDenied("not authorized");
    for (const { device } of devices) {
      const disk = node.spec.disks.find(({ name }) => name === device);
      if (!disk) throw notFound(`blockdevice ${JSON.stringify(device)} not found`);
      if (disk.readonly === true || disk.cdrom === true) {
        throw failedPrecondition(`blockdevice ${JSON.stringify(device)} is read-only`);
      }
      if (disk.name === node.view().systemDisk) {
        throw failedPrecondition(`blockdevice ${JSON.stringify(device)} is in use by volumes of the system`);
      }
    }
    return { messages: [{}] };
  },
};

function diskType(disk: DiskSpec): DiskType {
  if (disk.cdrom === true) return DiskType.CD;
  if (disk.transport === "nvme") return DiskType.NVME;
  if (disk.transport === "mmc") return DiskType.SD;
  if (disk.rotational === true) return DiskType.HDD;
  return disk.transport === "" ? DiskType.UNKNOWN : DiskType.SSD;
}

/** `time.TimeService`. */
export const timeService: ServiceImpl<typeof TimeService> = {
  time: (_request, context) => time(context, "time.cloudflare.com"),
  timeCheck: ({ server }, context) => time(context, server),
};

function time(context: HandlerContext, server: string) {
  const { node } = callerOf(context);
  if (!node.config && parseVersionContract(node.record.talosVersion).minor < 13) {
    throw unimplemented("API is not implemented in maintenance mode");
  }
  const local = node.edges.clock.now();
  const remote = local - (node.faults.clockSkewMs ?? 0);
  return { messages: [{ server, localtime: timestampFromMs(local), remotetime: timestampFromMs(remote) }] };
}

/** `securityapi.SecurityService` (trustd): a worker's server certificate, for the machine token. */
export const securityService: ServiceImpl<typeof SecurityService> = {
  async certificate({ csr }, context) {
    const { node } = callerOf(context);
    if (!node.config) throw unavailable("trustd is not running");
    const { osCa, facts } = node.config;
    if (facts.machineToken === "" || context.requestHeader.get("token") !== facts.machineToken) {
      throw new ConnectError("invalid token", Code.Unauthenticated);
    }
    try {
      const crt = await signServerRequest({
        ca: osCa,
        csr: Buffer.from(csr).toString("utf8"),
        edges: node.edges,
      });
      return { ca: Buffer.from(osCa.crt), crt: Buffer.from(crt) };
    } catch (error) {
      throw isCoded(error, "invalid_argument") ? invalidArgument(error.message) : error;
    }
  },
};
