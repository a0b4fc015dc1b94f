/**
 * Patches: JSON patch, merge patch, strategic merge patch and server-side apply with managed fields.
 */
export type { ApplyConflict } from "./apply-conflict.ts";
export { applyJsonPatch } from "./json-patch.ts";
export { applyMergePatch } from "./merge-patch.ts";
export { applyStrategicMergePatch } from "./strategic-merge.ts";
export type { OtherVersions } from "./object-versions.ts";
export {
  serverSideApply,
  updateManagedFields,
  type ApplyOutcome,
  type ApplyRequest,
  type ManagedWrite,
} from "./server-side-apply.ts";
