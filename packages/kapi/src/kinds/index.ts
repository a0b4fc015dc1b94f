/**
 * The built-in kinds as resources.
 */
import type { ResourceDefinition } from "../resource.ts";
import { BuiltinResource } from "./builtin-resource.ts";
import { catalog } from "./catalog.ts";

export { releaseOldAddresses } from "./rules/service.ts";
export { allocateService } from "./rules/service-allocation.ts";

let made: readonly ResourceDefinition[] | undefined;

/** Every built-in resource that can be served, in the order of discovery within each group version. */
export function builtinResources(): readonly ResourceDefinition[] {
  return (made ??= catalog.map((entry) => new BuiltinResource(entry)));
}
