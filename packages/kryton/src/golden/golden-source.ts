/**
 * Golden images as a source of the inventory: finished builds whose disk is there.
 *
 * Looked up at most every two seconds, so that lists and creations may ask as often as they like. A disk without a record counts too,
 * by the version in its file name, which has to be the catalog's exactly: `windows-tiny11-golden.qcow2` is no Windows 11.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@kontinuum/std";
import type { ImageSource, StoredImage } from "../catalog/inventory.ts";
import type { CatalogImage } from "../model/image.ts";
import type { GoldenBuild } from "./build.ts";
import type { GoldenBuilds } from "./builds.ts";

const freshMs = 2_000;

interface Found {
  readonly byImage: ReadonlyMap<string, StoredImage>;
  readonly byVersion: ReadonlyMap<string, StoredImage>;
}

/** See the module comment. */
export class GoldenSource implements ImageSource {
  readonly #builds: GoldenBuilds;
  readonly #clock: Clock;
  readonly #out: string;
  #last: { readonly at: number; readonly found: Promise<Found> } | undefined;

  /** `projectRoot`: its folder `out` is looked at; empty: none. */
  constructor(builds: GoldenBuilds, projectRoot: string, clock: Clock) {
    this.#builds = builds;
    this.#clock = clock;
    this.#out = projectRoot === "" ? "" : join(projectRoot, "out");
  }

  async stored({ id, dockurVersion }: CatalogImage): Promise<StoredImage | undefined> {
    const now = this.#clock.monotonic();
    if (!this.#last || now - this.#last.at >= freshMs) this.#last = { at: now, found: this.#look() };
    const { byImage, byVersion } = await this.#last.found;
    return byImage.get(id) ?? (dockurVersion === undefined ? undefined : byVersion.get(dockurVersion));
  }

  async #look(): Promise<Found> {
    const byImage = new Map<string, StoredImage>();
    for (const build of await this.#builds.list()) {
      const { outputPath } = build;
      if (build.state !== "ready" || outputPath === undefined || byImage.has(build.imageId)) continue;
      if (await isFile(outputPath)) byImage.set(build.imageId, storedBy(build, outputPath));
    }
    const byVersion = new Map<string, StoredImage>();
    for (const name of this.#out === "" ? [] : await readdir(this.#out).catch(() => [])) {
      const version = /^windows-([A-Za-z0-9.]+)-golden\.qcow2$/.exec(name)?.[1];
      if (version !== undefined)
        byVersion.set(version, { storageSource: "golden", storagePath: join(this.#out, name) });
    }
    return { byImage, byVersion };
  }
}

function storedBy(build: GoldenBuild, storagePath: string): StoredImage {
  const { certified, validationScore, passportPath, id } = build;
  return {
    storageSource: "golden",
    storagePath,
    ...(certified === undefined ? {} : { certified }),
    ...(validationScore === undefined ? {} : { validationScore }),
    ...(passportPath === undefined ? {} : { passportBuildId: id }),
  };
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}
