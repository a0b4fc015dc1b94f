/**
 * Documents of volumes and file systems: the system's own (STATE, EPHEMERAL, IMAGECACHE) and those a
 * user adds. Sizes are texts such as `10GiB`; disks are chosen by CEL expressions.
 */
import { plain, named, type DocumentKind } from "./document-kind.ts";
import { bool, byteSize, duration, int, list, object, since, text, uint, words } from "./shape.ts";

const selector = object({ match: text });
const provisioning = object({ diskSelector: selector, grow: bool, minSize: byteSize, maxSize: byteSize });
const encryption = object({
  provider: words("luks2"),
  keys: list(
    object({
      slot: int,
      static: object({ passphrase: text }),
      nodeID: object({}),
      kms: object({ endpoint: text }),
      tpm: object({ options: since(12, object({ pcrs: list(int) })), checkSecurebootStatusOnEnroll: bool }),
      lockToState: since(12, bool),
    }),
  ),
  cipher: text,
  keySize: uint,
  blockSize: uint,
  options: list(text),
  allowDiscards: since(14, bool),
});
const trim = since(14, object({ enabled: bool, interval: duration }));
const scrub = trim;
const xfs = object({ minAllocationGroupSize: byteSize });

/** The kinds, by name. */
export const blockKinds: Readonly<Record<string, DocumentKind>> = {
  VolumeConfig: named(11, {
    provisioning,
    filesystem: since(14, object({ xfs })),
    encryption,
    mount: since(12, object({ secure: bool, disableAccessTime: bool })),
    trim,
    scrub,
  }),
  UserVolumeConfig: named(11, {
    volumeType: words("directory", "disk", "partition"),
    provisioning,
    filesystem: object({
      type: words("ext4", "xfs", "btrfs"),
      projectQuotaSupport: bool,
      xfs: since(14, xfs),
    }),
    encryption,
    mount: since(12, object({ disableAccessTime: bool, secure: bool })),
    trim,
    scrub,
  }),
  RawVolumeConfig: named(11, { provisioning, encryption }),
  ExistingVolumeConfig: named(11, {
    discovery: object({ volumeSelector: selector }),
    mount: object({ readOnly: bool, disableAccessTime: bool, secure: bool }),
    trim,
    scrub,
  }),
  ExternalVolumeConfig: named(13, {
    filesystemType: words("virtiofs"),
    mount: object({ readOnly: bool, disableAccessTime: bool, secure: bool, virtiofs: object({ tag: text }) }),
  }),
  SwapVolumeConfig: named(11, { provisioning, encryption }),
  ZswapConfig: plain(11, { maxPoolPercent: uint, shrinkerEnabled: bool }),
  FilesystemTrimConfig: plain(14, { interval: duration }),
  FilesystemScrubConfig: plain(14, { interval: duration }),
  LVMVolumeGroupConfig: named(14, { provisioning: object({ volumeSelector: selector }) }),
  LVMLogicalVolumeConfig: named(14, {
    type: words("linear", "raid0", "raid1", "raid10"),
    mirrors: uint,
    stripes: uint,
    provisioning: object({ volumeGroup: text, minSize: byteSize, maxSize: byteSize }),
  }),
  RAIDArrayConfig: named(14, {
    level: words("raid1"),
    metadata: words("1.0", "1.2"),
    provisioning: object({ volumeSelector: selector }),
  }),
};
