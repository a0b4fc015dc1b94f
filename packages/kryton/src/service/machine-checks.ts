/**
 * Whether a request for a machine can be met, before anything is recorded.
 *
 * The order is the contract's: image in the catalog, image supports the provider, initialization only
 * with Linux, the image's minimums, readiness, then what the provider itself refuses.
 */
import { invalidRequest, KrytonError } from "../model/errors.ts";
import type { CatalogImage, Image } from "../model/image.ts";
import { initializationProblems } from "../model/initialization.ts";
import type { MachineSpec, ProviderName } from "../model/machine.ts";
import { supports } from "../catalog/catalog.ts";

/** Rules of a spec that its schema cannot say. */
export function specProblems(spec: MachineSpec): string[] {
  return spec.initialization ? initializationProblems(spec.initialization) : [];
}

/** The catalog entry of a spec; throws `INVALID_REQUEST` when spec and image do not fit. */
export function checkImage(
  spec: MachineSpec,
  entry: CatalogImage | undefined,
  provider: ProviderName,
): CatalogImage {
  if (!entry) {
    throw new KrytonError("INVALID_REQUEST", `image ${spec.image} is not in the catalog`, {
      hint: "List the images of this host with GET /api/v1/images.",
    });
  }
  if (!supports(entry, provider)) {
    throw new KrytonError("INVALID_REQUEST", `image ${entry.id} cannot be used with provider ${provider}`, {
      hint: `It supports ${(entry.providers ?? []).join(", ")}.`,
    });
  }
  if (spec.initialization && entry.os !== "linux") {
    throw invalidRequest(`initialization is only for Linux images, and ${entry.id} is not one`);
  }
  checkMinimums(spec, entry);
  return entry;
}

/** Throws `INVALID_REQUEST` when a size is below what the image needs. */
export function checkMinimums(spec: Pick<MachineSpec, "compute">, entry: CatalogImage): void {
  const problems: string[] = [];
  if (spec.compute.cpu < entry.minCpu) {
    problems.push(`compute.cpu must be at least ${entry.minCpu} for image ${entry.id}`);
  }
  if (spec.compute.memoryMiB < entry.minMemoryMiB) {
    problems.push(`compute.memoryMiB must be at least ${entry.minMemoryMiB} for image ${entry.id}`);
  }
  if (problems.length > 0) throw invalidRequest(problems);
}

/** Throws `IMAGE_NOT_READY` unless machines can be made from the image here and now. */
export function checkReady(image: Image): void {
  if (image.ready) return;
  throw new KrytonError("IMAGE_NOT_READY", `image ${image.id} is not ready on this host`, {
    hint: "Fetch or publish it first, then look at GET /api/v1/images.",
  });
}
