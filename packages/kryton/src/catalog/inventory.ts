/**
 * Which images can be used here and now: the catalog, with the availability of each entry.
 *
 * One source of truth for the list, the readiness check of a creation and the doctor. What counts as
 * stored is told by sources: the provider's own (verified artifacts, published data sources) and
 * golden builds.
 */
import type { CatalogImage, Image } from "../model/image.ts";
import type { ProviderName } from "../model/machine.ts";
import { supports, type Catalog } from "./catalog.ts";

/** Facts about a stored image, from a source that knows. */
export type StoredImage = Pick<
  Image,
  "storageSource" | "storageNamespace" | "storagePath" | "certified" | "validationScore" | "passportBuildId"
>;

/** Tells which images are stored. */
export interface ImageSource {
  /** What is stored under this entry, or `undefined`. */
  stored(image: CatalogImage): Promise<StoredImage | undefined>;
}

/** What an inventory is made from. */
export interface InventoryOptions {
  readonly catalog: Catalog;
  readonly provider: ProviderName;
  /** Asked in order; the first that knows the image answers. */
  readonly sources: readonly ImageSource[];
}

/** See the module comment. */
export class ImageInventory {
  readonly catalog: Catalog;
  readonly #provider: ProviderName;
  readonly #sources: readonly ImageSource[];

  constructor({ catalog, provider, sources }: InventoryOptions) {
    this.catalog = catalog;
    this.#provider = provider;
    this.#sources = sources;
  }

  /** Every image by display name, with its availability. */
  async list(): Promise<Image[]> {
    const images = await Promise.all(this.catalog.images.map((entry) => this.available(entry)));
    return images.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  /** The entry with its availability: the first rule that applies. */
  async available(entry: CatalogImage): Promise<Image> {
    if (!supports(entry, this.#provider)) return { ...entry, availability: "catalog", ready: false };
    for (const source of this.#sources) {
      const stored = await source.stored(entry);
      if (stored) return { ...entry, ...stored, availability: "stored", ready: true };
    }
    if (this.#provider === "dockur" && entry.dockurVersion) {
      return { ...entry, availability: "on-demand", storageSource: "dockur", ready: true };
    }
    if (this.#provider === "demo") {
      return { ...entry, availability: "on-demand", storageSource: "demo", ready: true };
    }
    return { ...entry, availability: "catalog", ready: false };
  }
}
