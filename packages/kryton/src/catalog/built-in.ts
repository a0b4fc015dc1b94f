/**
 * The built-in images: twelve Windows editions and eleven Linux cloud images.
 *
 * The sources are starting points published by each distribution, not pinned releases; a digest is
 * always given by the operator who fetches one (`kryton-image fetch`).
 */
import type { CatalogImage } from "../model/image.ts";

type WindowsRow = readonly [
  id: string,
  name: string,
  version: string,
  kind: "server" | "desktop",
  cpu: number,
  memoryMiB: number,
  diskGiB: number,
  dockurVersion: string,
  trait: string | undefined,
];

const windowsRows: readonly WindowsRow[] = [
  ["windows-server-2025", "Windows Server 2025", "2025", "server", 2, 4096, 80, "2025", "enterprise"],
  ["windows-server-2022", "Windows Server 2022", "2022", "server", 2, 4096, 80, "2022", "lts"],
  ["windows-server-2019", "Windows Server 2019", "2019", "server", 2, 4096, 80, "2019", "legacy"],
  ["windows-server-2016", "Windows Server 2016", "2016", "server", 2, 4096, 80, "2016", "legacy"],
  ["windows-11-enterprise", "Windows 11 Enterprise", "24H2", "desktop", 4, 8192, 96, "11e", "developer"],
  ["windows-11-pro", "Windows 11 Pro", "24H2", "desktop", 4, 8192, 80, "11", undefined],
  ["windows-11-ltsc", "Windows 11 LTSC", "LTSC", "desktop", 4, 8192, 64, "11l", "ltsc"],
  ["windows-10-enterprise", "Windows 10 Enterprise", "22H2", "desktop", 2, 4096, 64, "10e", "legacy"],
  ["windows-10-pro", "Windows 10 Pro", "22H2", "desktop", 2, 4096, 64, "10", "legacy"],
  ["windows-10-ltsc", "Windows 10 LTSC", "LTSC", "desktop", 2, 4096, 64, "10l", "ltsc"],
  ["windows-tiny11", "Tiny11", "tiny11", "desktop", 2, 4096, 48, "tiny11", "compact"],
  ["windows-tiny11-core", "Tiny11 Core", "core11", "desktop", 2, 2048, 32, "core11", "compact"],
];

type LinuxRow = readonly [
  id: string,
  name: string,
  version: string,
  family: string,
  user: string,
  source: string,
];

const linuxRows: readonly LinuxRow[] = [
  [
    "ubuntu-26.04",
    "Ubuntu 26.04 LTS",
    "26.04",
    "ubuntu",
    "ubuntu",
    "https://cloud-images.ubuntu.com/resolute/current/resolute-server-cloudimg-amd64.img",
  ],
  [
    "ubuntu-24.04",
    "Ubuntu 24.04 LTS",
    "24.04",
    "ubuntu",
    "ubuntu",
    "https://cloud-images.ubuntu.com/noble/current/noble-server-cloudimg-amd64.img",
  ],
  [
    "ubuntu-22.04",
    "Ubuntu 22.04 LTS",
    "22.04",
    "ubuntu",
    "ubuntu",
    "https://cloud-images.ubuntu.com/jammy/current/jammy-server-cloudimg-amd64.img",
  ],
  [
    "debian-13",
    "Debian 13",
    "13",
    "debian",
    "debian",
    "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2",
  ],
  [
    "debian-12",
    "Debian 12",
    "12",
    "debian",
    "debian",
    "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2",
  ],
  [
    "rocky-10",
    "Rocky Linux 10",
    "10",
    "rocky",
    "rocky",
    "https://download.rockylinux.org/pub/rocky/10/images/x86_64/Rocky-10-GenericCloud-Base.latest.x86_64.qcow2",
  ],
  [
    "rocky-9",
    "Rocky Linux 9",
    "9",
    "rocky",
    "rocky",
    "https://download.rockylinux.org/pub/rocky/9/images/x86_64/Rocky-9-GenericCloud-Base.latest.x86_64.qcow2",
  ],
  [
    "almalinux-10",
    "AlmaLinux 10",
    "10",
    "almalinux",
    "almalinux",
    "https://repo.almalinux.org/almalinux/10/cloud/x86_64/images/AlmaLinux-10-GenericCloud-latest.x86_64.qcow2",
  ],
  [
    "almalinux-9",
    "AlmaLinux 9",
    "9",
    "almalinux",
    "almalinux",
    "https://repo.almalinux.org/almalinux/9/cloud/x86_64/images/AlmaLinux-9-GenericCloud-latest.x86_64.qcow2",
  ],
  [
    "centos-stream-10",
    "CentOS Stream 10",
    "10",
    "centos",
    "cloud-user",
    "https://cloud.centos.org/centos/10-stream/x86_64/images/CentOS-Stream-GenericCloud-10-latest.x86_64.qcow2",
  ],
  [
    "fedora-44",
    "Fedora 44",
    "44",
    "fedora",
    "fedora",
    "https://download.fedoraproject.org/pub/fedora/linux/releases/44/Cloud/x86_64/images/Fedora-Cloud-Base-Generic-44-1.7.x86_64.qcow2",
  ],
];

const windows = windowsRows.map(
  ([id, name, version, kind, minCpu, minMemoryMiB, defaultDiskGiB, dockurVersion, trait]): CatalogImage => ({
    id,
    name,
    version,
    family: `windows-${kind}`,
    description: `${name}, installed by dockur or from a golden image of your own.`,
    os: "windows",
    architecture: "amd64",
    firmware: "efi",
    providers: ["kubevirt", "dockur"],
    minCpu,
    minMemoryMiB,
    defaultDiskGiB,
    dockurVersion,
    tags: [kind, ...(trait ? [trait] : []), "dockur"],
  }),
);

const linux = linuxRows.map(([id, name, version, family, defaultUser, sourceUrl]): CatalogImage => ({
  id,
  name,
  version,
  family,
  description: `${name} cloud image, configured by cloud-init.`,
  os: "linux",
  architecture: "amd64",
  firmware: "bios",
  defaultUser,
  sourceUrl,
  providers: ["libvirt", "kubevirt"],
  minCpu: 1,
  minMemoryMiB: 1024,
  defaultDiskGiB: 20,
  tags: ["linux", "cloud-init"],
}));

/** Every built-in image. */
export const builtInImages: readonly CatalogImage[] = [...windows, ...linux];
