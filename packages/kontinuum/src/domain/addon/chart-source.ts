/**
 * Charts of the offline folder: what is there is never fetched.
 *
 * In the folder a chart is a folder or an archive named after the last part of the chart's name, or after
 * the release: `cilium/`, `cilium-1.20.1.tgz`, `gateway-api-crds/`.
 */
import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { CodedError } from "@kontinuum/std";
import type { ChartRef } from "./addon.resolve.ts";

/** A chart on this machine. */
export interface ChartSource {
  /** Folder or archive. */
  readonly chart: string;
  /** SHA-256 over its files. */
  readonly digest: string;
}

/** Most files of a chart folder, and most bytes, that are read for its digest. */
const maxFiles = 10_000;
const maxBytes = 256 * 1024 * 1024;

/** The chart of `release` in `folder` (empty: there is none), or `undefined`. */
export async function localChart(
  chart: ChartRef,
  release: string,
  folder: string,
): Promise<ChartSource | undefined> {
  const local = folder === "" ? undefined : await findLocal(chart, release, folder);
  return local === undefined ? undefined : { chart: local, digest: await digestOf(local) };
}

/** Digest of an archive, or of the names and contents of all files below a folder. */
async function digestOf(root: string): Promise<string> {
  const hash = createHash("sha256");
  const entries = (await stat(root)).isDirectory()
    ? await readdir(root, { recursive: true, withFileTypes: true })
    : [];
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  if (files.length > maxFiles)
    throw new CodedError("payload_too_large", `the chart ${root} has more than ${maxFiles} files`);
  let size = 0;
  for (const file of entries.length === 0 ? [root] : files.sort()) {
    const bytes = await readFile(file);
    size += bytes.byteLength;
    if (size > maxBytes)
      throw new CodedError("payload_too_large", `the chart ${root} is larger than ${maxBytes} bytes`);
    hash.update(`${path.relative(root, file)}\0${bytes.byteLength}\0`).update(bytes);
  }
  return hash.digest("hex");
}

async function findLocal(
  { name, version }: ChartRef,
  release: string,
  folder: string,
): Promise<string | undefined> {
  const base = name.split("/").at(-1)?.split(":")[0] ?? name;
  const names = [...(version === undefined ? [] : [`${base}-${version}.tgz`]), `${base}.tgz`, base, release];
  const root = await realpath(folder).catch(() => undefined);
  if (root === undefined) return undefined;
  for (const candidate of names) {
    const found = await realpath(path.join(root, candidate)).catch(() => undefined);
    // A link that leads out of the folder is not part of it.
    if (found !== undefined && found.startsWith(`${root}${path.sep}`)) return found;
  }
  return undefined;
}
