/**
 * The calls of `machine.MachineService` about files.
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  ListRequest_Type as FileType,
  type ListRequest,
  type MachineService,
} from "../../gen/machine/machine_pb.ts";
import { notFound, unknownError } from "../call-error.ts";
import { cleanPath, depthBelow, isWithin, nodeFiles, type NodeFile } from "../node-files.ts";
import type { SimulatedNode } from "../node.ts";
import { tarArchive } from "../tar.ts";
import { callerOf } from "./call-context.ts";
import { readable } from "./preconditions.ts";

/** Go's bit for folders in a file's mode. */
const goFolder = 2 ** 31;
/** What a folder itself takes on its file system. */
const folderBytes = 4096;
/** Paths one call may ask the use of. */
const pathLimit = 100;

/** See the module's comment. */
export const fileCalls: Partial<ServiceImpl<typeof MachineService>> = {
  async *read({ path }, context) {
    const { node } = callerOf(context);
    const shown = path.slice(0, 200);
    const file = nodeFiles(node).find((candidate) => candidate.path === cleanPath(path));
    if (!file) throw notFound(`stat ${shown}: no such file or directory`);
    if (file.isFolder) throw unknownError("path must be a regular file");
    yield { bytes: file.content };
  },

  async *list(request, context) {
    const node = readable(context);
    const root = cleanPath(request.root);
    const isDeep = request.recurse && request.recursionDepth <= 0;
    const depth = isDeep ? Number.POSITIVE_INFINITY : request.recurse ? request.recursionDepth : 1;
    for (const file of below(node, root)) {
      const at = depthBelow(file.path, root);
      if (at > depth || !isWanted(file, request)) continue;
      yield {
        name: file.path,
        relativeName: file.path === root ? (file.isFolder ? "." : nameOf(file)) : relative(file.path, root),
        size: BigInt(file.isFolder ? folderBytes : file.content.length),
        mode: file.isFolder ? goFolder + file.mode : file.mode,
        modified: BigInt(Math.floor(node.bootTime / 1000)),
        isDir: file.isFolder,
      };
    }
  },

  async *diskUsage(request, context) {
    const node = readable(context);
    const limit = request.recursionDepth > 0 ? request.recursionDepth : Number.POSITIVE_INFINITY;
    for (const path of request.paths.slice(0, pathLimit)) {
      const root = cleanPath(path);
      const found = filesWithin(node, root);
      if (found.length === 0) {
        yield { name: root, relativeName: root, error: `lstat ${root}: no such file or directory` };
      }
      // Folders come after what they hold, as their sum is known only then.
      for (const file of found.toReversed()) {
        const size = file.isFolder ? sizeWithin(found, file.path) : file.content.length;
        const isHidden = depthBelow(file.path, root) >= limit && file.path !== root;
        if (isHidden || (!file.isFolder && !request.all)) continue;
        const { threshold } = request;
        if ((threshold > 0n && size < threshold) || (threshold < 0n && size > -threshold)) continue;
        yield { name: file.path, relativeName: relative(file.path, root) || ".", size: BigInt(size) };
      }
    }
  },

  async *copy({ rootPath }, context) {
    const { node } = callerOf(context);
    if (!rootPath.startsWith("/")) throw unknownError(`path is not absolute ${rootPath.slice(0, 200)}`);
    const root = cleanPath(rootPath);
    const modified = Math.floor(node.bootTime / 1000);
    // A folder itself is not in its archive, only what it holds.
    const found = below(node, root).filter((file) => !(file.isFolder && file.path === root));
    const archive = tarArchive(
      found.map((file) => ({
        name: file.path === root ? nameOf(file) : `${relative(file.path, root)}${file.isFolder ? "/" : ""}`,
        content: file.content,
        mode: file.mode,
        modified,
        isFolder: file.isFolder,
      })),
    );
    yield { bytes: await promisify(gzip)(archive) };
  },
};

function filesWithin(node: SimulatedNode, root: string): NodeFile[] {
  return nodeFiles(node).filter(({ path }) => isWithin(path, root));
}

/** A path and what is below it. */
function below(node: SimulatedNode, root: string): NodeFile[] {
  const found = filesWithin(node, root);
  if (found.length === 0) throw unknownError(`lstat ${root.slice(0, 200)}: no such file or directory`);
  return found;
}

function isWanted(file: NodeFile, { types }: ListRequest): boolean {
  return types.length === 0 || types.includes(file.isFolder ? FileType.DIRECTORY : FileType.REGULAR);
}

function sizeWithin(files: readonly NodeFile[], folder: string): number {
  return files
    .filter(({ path }) => isWithin(path, folder))
    .reduce((sum, { content, isFolder }) => sum + (isFolder ? folderBytes : content.length), 0);
}

function relative(path: string, root: string): string {
  return path.slice(root === "/" ? 1 : root.length + 1);
}

function nameOf({ path }: NodeFile): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
