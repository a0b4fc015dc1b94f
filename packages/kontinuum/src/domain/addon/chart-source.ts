/**
 * Where a chart is taken from: the offline folder when it has the chart, else where its reference points.
 *
 * In the folder a chart is a folder or an archive named after the last part of the chart's name, or after
 * the release: `cilium/`, `cilium-1.20.1.tgz`, `gateway-api-crds/`.
 */
import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { CodedError } from "@kontinuum/std";
import type { ChartRef } from "./addon.resolve.ts";

/** Arguments that name a chart to helm, flags first, the positional last. */
export interface ChartSource {
  readonly flags: readonly string[];
  readonly chart: string;
  /** SHA-256 over a local chart's files; for a remote one, over its reference. */
  readonly digest: string;
}

/** Most files of a chart folder, and most bytes, that are read for its digest. */
const maxFiles = 10_000;
const maxBytes = 256 * 1024 * 1024;

/** Finds the chart of `release`. `folder` is empty when there is none. */
export async function chartSource(chart: ChartRef, release: string, folder: string): Promise<ChartSource> {
  const local = folder === "" ? undefined : await findLocal(chart, release, folder);
  if (local !== undefined) return { flags: [], chart: local, digest: await digestOf(local) };
  const flags = [
    ...(chart.repo === undefined ? [] : ["--repo", chart.repo]),
    ...(chart.version === undefined ? [] : ["--version", chart.version]),
  ];
  const digest = createHash("sha256")
    .update(JSON.stringify([...flags, chart.name]))
    .digest("hex");
  return { flags, chart: chart.name, digest };
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
