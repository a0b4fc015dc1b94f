/**
 * The files of a node that clients look at: what `List`, `Read`, `Copy` and `DiskUsage` work on.
 *
 * A small tree, made when somebody looks. Contents follow from the machine and its configuration; the tree of control
 * groups is that of an idle system.
 */
import { stringify } from "yaml";
import type { SimulatedNode } from "./node.ts";
import { memory } from "./grpc/machine-stats.ts";

/** A file or folder. */
export interface NodeFile {
  /** Absolute, without a slash at its end; the root is `/`. */
  readonly path: string;
  readonly isFolder: boolean;
  /** Permission bits. */
  readonly mode: number;
  /** Empty for folders. */
  readonly content: Uint8Array;
}

const groups = [
  "init",
  "system",
  "system/apid",
  "system/runtime",
  "podruntime",
  "podruntime/kubelet",
  "kubepods",
];

/** What every group of an idle system says. */
const groupFiles: Readonly<Record<string, string>> = {
  "cgroup.controllers": "cpuset cpu io memory pids\n",
  "cpu.pressure":
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
  "cpu.stat":
    "usage_usec 1000000\nuser_usec 600000\nsystem_usec 400000\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0\n",
  "io.pressure":
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
  "io.stat": "",
  "memory.pressure":
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
  "memory.stat": "anon 41943040\nfile 20971520\nkernel 4194304\n",
};

/** What every group but the root says besides. */
const limitFiles: Readonly<Record<string, string>> = {
  "cpu.max": "max 100000\n",
  "cpu.weight": "100\n",
  "memory.current": "67108864\n",
  "memory.high": "max\n",
  "memory.low": "0\n",
  "memory.max": "max\n",
  "memory.min": "0\n",
  "memory.peak": "75497472\n",
  "memory.swap.current": "0\n",
  "memory.swap.max": "max\n",
  "pids.current": "8\n",
  "pids.max": "max\n",
};

function groupTree(): [string, string][] {
  const at = (folder: string, files: Readonly<Record<string, string>>): [string, string][] =>
    Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]);
  const root = "/sys/fs/cgroup";
  return [
    ...at(root, groupFiles),
    ...groups.flatMap((group) => [
      ...at(`${root}/${group}`, groupFiles),
      ...at(`${root}/${group}`, limitFiles),
    ]),
  ];
}

function contents(node: SimulatedNode): [string, string][] {
  const { spec, hostname, record, bootId, journal, config } = node;
  const uptime = journal.uptimeSeconds.toFixed(2);
  const { meminfo } = memory(spec);
  return [
    ["/etc/hostname", `${hostname}\n`],
    ["/etc/hosts", `127.0.0.1 localhost\n${spec.address} ${hostname}\n`],
    ["/etc/machine-id", `${spec.uuid.replaceAll("-", "")}\n`],
    [
      "/etc/os-release",
      `NAME="Talos"\nID=talos\nVERSION_ID=${record.talosVersion}\nPRETTY_NAME="Talos (${record.talosVersion}, simulated)"\n`,
    ],
    ["/etc/resolv.conf", "nameserver 127.0.0.53\n"],
    ["/proc/cmdline", "talos.platform=metal\n"],
    ["/proc/loadavg", "0.05 0.05 0.05 1/120 1200\n"],
    ["/proc/meminfo", `MemTotal: ${meminfo?.memtotal ?? 0n} kB\nMemFree: ${meminfo?.memfree ?? 0n} kB\n`],
    ["/proc/sys/kernel/osrelease", "6.18.0-talos\n"],
    ["/proc/sys/kernel/random/boot_id", `${bootId}\n`],
    ["/proc/uptime", `${uptime} ${uptime}\n`],
    ["/proc/version", "Linux version 6.18.0-talos (simulated)\n"],
    ["/sys/class/dmi/id/product_uuid", `${spec.uuid}\n`],
    ["/sys/class/dmi/id/product_name", `${spec.productName}\n`],
    ...spec.links.map(({ name, mac }): [string, string] => [`/sys/class/net/${name}/address`, `${mac}\n`]),
    ...spec.disks.map(({ name }, index): [string, string] => [
      `/sys/dev/block/8:${index * 16}/uevent`,
      `MAJOR=8\nMINOR=${index * 16}\nDEVNAME=${name}\nDEVTYPE=disk\n`,
    ]),
    ["/usr/local/etc/containers/.keep", ""],
    ["/var/log/audit/kube/.keep", ""],
    ...groupTree(),
    ...(config === undefined ? [] : configured(node, config.text)),
  ];
}

function configured(node: SimulatedNode, text: string): [string, string][] {
  return [
    ["/system/state/config.yaml", text],
    ["/etc/kubernetes/kubelet.yaml", stringify({ kind: "KubeletConfiguration", staticPodPath: "" })],
    ...(node.hasEtcdData ? [["/var/lib/etcd/member/snap/db", ""] satisfies [string, string]] : []),
  ];
}

/** All files and folders, sorted by path. */
export function nodeFiles(node: SimulatedNode): NodeFile[] {
  const files = new Map<string, NodeFile>();
  const folder = (path: string): void => {
    if (files.has(path)) return;
    files.set(path, { path, isFolder: true, mode: 0o755, content: new Uint8Array() });
    if (path !== "/") folder(parentOf(path));
  };
  for (const [path, text] of contents(node)) {
    const isSecret = path.startsWith("/system/state/");
    files.set(path, { path, isFolder: false, mode: isSecret ? 0o600 : 0o644, content: Buffer.from(text) });
    folder(parentOf(path));
  }
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The path a caller means: absolute, without doubled slashes, `.` and `..`. */
export function cleanPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

/** How many folders lie between a path and one above it. */
export function depthBelow(path: string, root: string): number {
  const count = (text: string): number => text.split("/").filter((part) => part !== "").length;
  return count(path) - count(root);
}

/** Whether a path is another or lies in it. */
export function isWithin(path: string, root: string): boolean {
  return root === "/" || path === root || path.startsWith(`${root}/`);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
