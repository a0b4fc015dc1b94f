/**
 * The images machines can be made from: the built-in ones, or a file that replaces them.
 */
import { readFile } from "node:fs/promises";
import { CodedError, messageOf } from "@kontinuum/std";
import { z } from "zod";
import type { CatalogImage } from "../model/image.ts";
import type { ProviderName } from "../model/machine.ts";
import { builtInImages } from "./built-in.ts";

/** Greatest size of a catalog file, bytes. */
const maxCatalogBytes = 4 * 1024 * 1024;

const entrySchema = z.object({
  id: z.string().regex(/^[A-Za-z0-9_.:/-]{1,128}$/),
  name: z.string().min(1),
  version: z.string().default(""),
  family: z.string().default(""),
  description: z.string().default(""),
  os: z.enum(["windows", "linux"]).default("windows"),
  architecture: z.literal("amd64").default("amd64"),
  firmware: z.enum(["efi", "bios"]).default("efi"),
  defaultUser: z.string().optional(),
  sourceUrl: z.string().optional(),
  providers: z.array(z.string()).default([]),
  minCpu: z.int().min(0).default(0),
  minMemoryMiB: z.int().min(0).default(0),
  defaultDiskGiB: z.int().min(0).default(0),
  dockurVersion: z.string().optional(),
  tags: z.array(z.string()).optional(),
});

const fileSchema = z.object({ images: z.array(entrySchema).min(1) });

/** Images by id. */
export class Catalog {
  readonly images: readonly CatalogImage[];
  readonly #byId: ReadonlyMap<string, CatalogImage>;

  constructor(images: readonly CatalogImage[]) {
    this.images = images;
    this.#byId = new Map(images.map((image) => [image.id, image]));
  }

  /** The image of this id, or `undefined`. */
  get(id: string): CatalogImage | undefined {
    return this.#byId.get(id);
  }
}

/** Whether `provider` can make machines from `image`. */
export function supports(image: CatalogImage, provider: ProviderName): boolean {
  return provider === "demo" || (image.providers ?? []).includes(provider);
}

/** The built-in catalog, with `extra` images that the embedding program brings. */
export function builtInCatalog(extra: readonly CatalogImage[] = []): Catalog {
  return new Catalog([...builtInImages, ...extra]);
}

/** Reads a catalog file. Any violation is an `invalid_argument` that names the file and the entry. */
export async function loadCatalog(path: string): Promise<Catalog> {
  const fail = (problem: string): CodedError =>
    new CodedError("invalid_argument", `image catalog ${path}: ${problem}`);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw fail(messageOf(error));
  }
  if (text.length > maxCatalogBytes) throw fail(`must be at most ${maxCatalogBytes} bytes`);
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    throw fail("is not JSON");
  }
  const parsed = fileSchema.safeParse(raw);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw fail(`${issue?.path.join(".") ?? ""}: ${issue?.message ?? "is not a catalog"}`);
  }
  const seen = new Set<string>();
  const images = parsed.data.images.map((entry): CatalogImage => {
    if (seen.has(entry.id)) throw fail(`image id ${entry.id} occurs twice`);
    seen.add(entry.id);
    if (entry.providers.length > 0) return entry;
    return {
      ...entry,
      providers: [
        "kubevirt",
        ...(entry.os === "linux" ? ["libvirt"] : []),
        ...(entry.dockurVersion ? ["dockur"] : []),
      ],
    };
  });
  return new Catalog(images);
}
