/**
 * The kubeconfig as the node sends it: a gzipped tar with exactly one file.
 *
 * Talos cuts the tar stream right after the file's bytes, without padding and without an end mark,
 * so a tar library fails on it; one 512-byte header read by hand is enough. Sizes are bounded before
 * anything is unpacked.
 */
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { TalosError } from "./talos-error.ts";

/** Largest archive taken from a node, in bytes. */
export const archiveBytesMax = 1024 * 1024;
/** Largest unpacked archive, in bytes. */
const unpackedBytesMax = 1024 * 1024;
/** POSIX tar: size of a header and of a block. */
const tarBlock = 512;

/** The bytes of the one file `kubeconfig` in the archive. Fails with reason `protocol`. */
export async function unpackKubeconfig(archive: Uint8Array): Promise<Uint8Array> {
  let tar: Buffer;
  try {
    tar = await promisify(gunzip)(archive, { maxOutputLength: unpackedBytesMax });
  } catch (cause) {
    throw new TalosError("protocol", "the node's kubeconfig archive is not readable gzip of at most 1 MiB", {
      cause,
    });
  }
  return fileOf(tar);
}

function fileOf(tar: Buffer): Uint8Array {
  if (tar.length < tarBlock) throw new TalosError("protocol", "the node's kubeconfig archive holds no file");
  const name = textOf(tar.subarray(0, 100));
  const type = tar[156];
  const regular = type === 0x30 || type === 0;
  const size = octalOf(textOf(tar.subarray(124, 136)));
  if (name !== "kubeconfig" || !regular || size === undefined || !headerIsSound(tar)) {
    throw new TalosError(
      "protocol",
      "the node's kubeconfig archive does not begin with the file `kubeconfig`",
    );
  }
  const end = tarBlock + size;
  if (end > tar.length) throw new TalosError("protocol", "the node's kubeconfig is cut short");
  // What follows may only be zeros: the padding and end mark that Talos leaves out.
  if (tar.subarray(end).some((byte) => byte !== 0)) {
    throw new TalosError("protocol", "the node's kubeconfig archive holds more than one file");
  }
  return tar.subarray(tarBlock, end);
}

/** POSIX tar: the header's byte sum with its own field (148–155) read as spaces. */
function headerIsSound(tar: Buffer): boolean {
  let sum = 0;
  for (let i = 0; i < tarBlock; i++) sum += i >= 148 && i < 156 ? 0x20 : (tar[i] ?? 0);
  return octalOf(textOf(tar.subarray(148, 156))) === sum;
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.subarray(0, end < 0 ? field.length : end).toString("latin1");
}

function octalOf(text: string): number | undefined {
  const digits = text.trim();
  return /^[0-7]{1,11}$/.test(digits) ? Number.parseInt(digits, 8) : undefined;
}
