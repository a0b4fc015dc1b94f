import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeDevices, whyNotListed } from "./devices.ts";

interface Disk {
  readonly name: string;
  readonly type?: string;
  readonly mountpoint?: string;
  readonly fstype?: string;
  readonly size?: string;
  readonly ro?: boolean;
  readonly children?: readonly Disk[];
}

/** What `lsblk -J` prints for these disks. */
function lsblk(...disks: readonly Disk[]): string {
  const row = ({ children, ...disk }: Disk): object => ({
    type: "disk",
    size: "200G",
    model: null,
    mountpoint: null,
    fstype: null,
    ro: false,
    path: `/dev/${disk.name}`,
    ...disk,
    ...(children ? { children: children.map((child) => row({ type: "part", ...child })) } : {}),
  });
  return JSON.stringify({ blockdevices: disks.map(row) });
}

const system: Disk = {
  name: "nvme0n1",
  children: [
    { name: "nvme0n1p1", mountpoint: "/boot/efi", fstype: "vfat" },
    { name: "nvme0n1p2", children: [{ name: "vg-root", type: "lvm", mountpoint: "/" }] },
    { name: "nvme0n1p3" },
  ],
};

function verdicts(...disks: readonly Disk[]): Record<string, string> {
  return Object.fromEntries(
    judgeDevices(lsblk(...disks)).map(({ name, recommended, blockReason }) => [
      name,
      blockReason ?? (recommended ? "recommended" : "possible"),
    ]),
  );
}

test("nothing of the system's disk is offered, not even its free partition", () => {
  assert.deepEqual(verdicts(system, { name: "sdb" }), {
    nvme0n1p1: "mounted at /boot/efi",
    nvme0n1p2: "used by vg-root",
    nvme0n1p3: "on the disk the system runs from",
    sdb: "recommended",
  });
  assert.equal(verdicts({ name: "vda", mountpoint: "/" })["vda"], "mounted at /");
  assert.equal(
    verdicts(system, { name: "sdc", children: [{ name: "sdc1" }, { name: "sdc2", mountpoint: "[SWAP]" }] })[
      "sdc1"
    ],
    "on the disk the system runs from",
  );
});

test("what belongs to something is blocked, what has an old file system is possible, what is empty recommended", () => {
  const found = verdicts(
    system,
    { name: "sda", mountpoint: "/srv/data" },
    { name: "sdb", fstype: "LVM2_member" },
    { name: "sdc", ro: true },
    { name: "sdd", size: "0B" },
    { name: "sde", fstype: "ext4" },
    { name: "sdf" },
    { name: "sr0", type: "rom" },
    { name: "loop0", type: "loop" },
  );
  assert.deepEqual(
    ["sda", "sdb", "sdc", "sdd", "sde", "sdf", "sr0", "loop0"].map((name) => found[name]),
    [
      "mounted at /srv/data",
      "holds LVM2_member",
      "read-only",
      "has no medium",
      "possible",
      "recommended",
      undefined,
      undefined,
    ],
  );
});

test("where the system's disk cannot be told, as in a container, nothing is offered", () => {
  for (const reason of Object.values(
    verdicts({ name: "sda", children: [{ name: "sda1" }] }, { name: "sdb" }),
  ))
    assert.equal(reason, "cannot be told apart from the system's disk on this host");
  for (const broken of ["", "{", "[]", '{"blockdevices":7}', '{"blockdevices":[null,{"type":"disk"}]}'])
    assert.ok(judgeDevices(broken).every(({ blocked }) => blocked));
});

test("a device that is named is refused whatever part of a used disk it is", () => {
  const table = lsblk(
    system,
    { name: "sdb" },
    { name: "sdc", children: [{ name: "sdc1" }] },
    { name: "sr0", type: "rom" },
  );
  const why = (name: string): string | undefined => whyNotListed(table, [`/dev/${name}`]);
  assert.equal(why("sdb"), undefined);
  assert.equal(why("sdc1"), undefined);
  assert.equal(why("nvme0n1"), "divided into nvme0n1p1, nvme0n1p2, nvme0n1p3");
  assert.equal(why("nvme0n1p3"), "on the disk the system runs from");
  assert.equal(why("vg-root"), "no disk or partition of its own");
  assert.equal(why("sdc"), "divided into sdc1");
  assert.equal(why("sr0"), "no disk or partition of its own");
  assert.equal(why("sdz"), "unlisted");
  assert.equal(whyNotListed("", ["/dev/sda"]), "unlisted");
  assert.equal(whyNotListed(table, ["/dev/disk/by-id/x", "/dev/nvme0n1"])?.slice(0, 7), "divided");
});
