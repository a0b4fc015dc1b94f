/**
 * Disks of this host that a storage system could take, judged by what is on them.
 *
 * Nothing is known by name: a disk is blocked when something of it is mounted, used by something else, or on the same
 * disk as the running system. Where the disk of the system cannot be told (in a container, for example), every disk is
 * blocked: none is offered by guessing.
 */
import { execFile } from "node:child_process";
import { realpath, stat } from "node:fs/promises";
import { at, stringAt } from "@kontinuum/std";
import { z } from "zod";
import type { Environment } from "../config/values.ts";

const limitMs = 2_000;
const maxBytes = 1024 * 1024;
const maxDevices = 500;
const unknownSystem = "cannot be told apart from the system's disk on this host";

/** A disk or partition in answers. */
export const blockDeviceSchema = z
  .object({
    name: z.string(),
    path: z.string(),
    size: z.string().optional(),
    model: z.string().optional(),
    mountpoint: z.string().optional(),
    recommended: z.boolean().optional(),
    blocked: z.boolean().optional(),
    blockReason: z.string().optional(),
  })
  .meta({ id: "BlockDevice" });
/** See {@link blockDeviceSchema}. */
export type BlockDevice = z.infer<typeof blockDeviceSchema>;

/** The devices of this host; none where `lsblk` is missing or does not answer in time. */
export async function listBlockDevices(env: Environment): Promise<BlockDevice[]> {
  return judgeDevices(await lsblkOutput(env));
}

/**
 * Why a storage system must not be given the device at `path`. `undefined` when nothing speaks against it: it may well
 * be a device of another host.
 */
export async function whyNotDevice(path: string, env: Environment): Promise<string | undefined> {
  const real = await realpath(path).catch(() => path);
  const found = whyNotListed(await lsblkOutput(env), [path, real]);
  if (found !== "unlisted") return found;
  const here = await stat(real).catch(() => undefined);
  return here?.isBlockDevice() ? unknownSystem : undefined;
}

/** As {@link whyNotDevice}, for output of `lsblk -J`; `unlisted` when none of these paths is in it. */
export function whyNotListed(lsblk: string, paths: readonly string[]): string | undefined {
  const named = (device: unknown): boolean => paths.includes(stringAt(device, "path") ?? "");
  const find = (device: unknown): unknown => (named(device) ? device : first(children(device), find));
  const device = first(children(parse(lsblk), "blockdevices"), find);
  if (device === undefined) return "unlisted";
  const offered = judgeDevices(lsblk).find(({ path }) => path === stringAt(device, "path"));
  if (offered) return offered.blockReason;
  const parts = children(device).map((child) => stringAt(child, "name") ?? "");
  return parts.length > 0
    ? `divided into ${parts.slice(0, 3).join(", ")}`
    : "no disk or partition of its own";
}

function lsblkOutput(env: Environment): Promise<string> {
  const columns = "NAME,PATH,SIZE,MODEL,MOUNTPOINT,TYPE,FSTYPE,RO";
  return new Promise((resolve) => {
    execFile(
      "lsblk",
      ["-J", "-o", columns],
      { timeout: limitMs, maxBuffer: maxBytes, env: { PATH: env["PATH"], LC_ALL: "C" } },
      (error, stdout) => resolve(error ? "" : stdout),
    );
  });
}

/** The first thing that `find` makes of any of these. */
function first(devices: readonly unknown[], find: (device: unknown) => unknown): unknown {
  for (const device of devices) {
    const found = find(device);
    if (found !== undefined) return found;
  }
  return undefined;
}

function parse(lsblk: string): unknown {
  try {
    return JSON.parse(lsblk);
  } catch {
    return undefined;
  }
}

/** Devices out of `lsblk -J`: partitions and disks without any. Broken output gives none. */
export function judgeDevices(lsblk: string): BlockDevice[] {
  const disks = children(parse(lsblk), "blockdevices").filter((disk) => stringAt(disk, "type") === "disk");
  const systemKnown = disks.some((disk) => holdsSystem(disk));
  return disks
    .flatMap((disk) => {
      const parts = children(disk).filter((part) => stringAt(part, "type") === "part");
      const system = holdsSystem(disk);
      return (parts.length > 0 ? parts : [disk]).map((device) => judge(device, system, systemKnown));
    })
    .slice(0, maxDevices);
}

function judge(device: unknown, onSystemDisk: boolean, systemKnown: boolean): BlockDevice {
  const text = (name: string): string => (stringAt(device, name) ?? "").trim();
  const mountpoint = text("mountpoint");
  const holders = children(device).map((child) => stringAt(child, "name") ?? "");
  const signature = text("fstype");
  const reason =
    mountpoint !== ""
      ? `mounted at ${mountpoint}`
      : holders.length > 0
        ? `used by ${holders.slice(0, 3).join(", ")}`
        : onSystemDisk
          ? "on the disk the system runs from"
          : !systemKnown
            ? unknownSystem
            : usedSignatures.has(signature)
              ? `holds ${signature}`
              : at(device, "ro") === true
                ? "read-only"
                : /^0B?$/.test(text("size"))
                  ? "has no medium"
                  : undefined;
  return {
    name: text("name"),
    path: text("path"),
    ...optional("size", text("size")),
    ...optional("model", text("model")),
    ...optional("mountpoint", mountpoint),
    ...(reason === undefined
      ? signature === ""
        ? { recommended: true }
        : {}
      : { blocked: true, blockReason: reason }),
  };
}

/** Signatures of disks that belong to something although nothing of them is mounted now. */
const usedSignatures = new Set([
  "swap",
  "LVM2_member",
  "linux_raid_member",
  "crypto_LUKS",
  "zfs_member",
  "bcache",
]);
const systemMounts = /^\/(boot(\/.*)?|usr|var|etc|home)?$/;

function holdsSystem(device: unknown): boolean {
  const mountpoint = stringAt(device, "mountpoint") ?? "";
  if (systemMounts.test(mountpoint) || mountpoint === "[SWAP]") return true;
  return children(device).some((child) => holdsSystem(child));
}

function children(device: unknown, name = "children"): readonly unknown[] {
  const found = at(device, name);
  return Array.isArray(found) ? found : [];
}

function optional<K extends string>(name: K, value: string): Partial<Record<K, string>> {
  const result: Partial<Record<K, string>> = {};
  if (value !== "") result[name] = value;
  return result;
}
