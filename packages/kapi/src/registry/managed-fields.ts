/** Interim until strategic merge lands. */
import type { JsonObject } from "@kontinuum/std";
import { applyMergePatch } from "../patch/index.ts";

/** Interim: as a merge patch. */
export function applyStrategicMergePatch(_type: unknown, live: JsonObject, patch: JsonObject): JsonObject {
  return applyMergePatch(live, patch);
}
