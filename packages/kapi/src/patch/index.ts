/**
 * Patches: JSON patch, merge patch, strategic merge patch and server-side apply with managed fields.
 */
export { applyJsonPatch, maxPatchOperations } from "./json-patch.ts";
export { applyMergePatch } from "./merge-patch.ts";
