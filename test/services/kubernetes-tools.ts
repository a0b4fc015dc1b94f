/**
 * The real kubectl and helm, from the locked npm package.
 */
import { tool } from "../../scripts/tools.ts";
import type { Missing } from "./service.ts";

/** Path of kubectl 1.35, or what is missing. */
export const findKubectl = (): Promise<string | Missing> => found("kubectl");
/** Path of helm 4, or what is missing. */
export const findHelm = (): Promise<string | Missing> => found("helm");

async function found(name: "kubectl" | "helm"): Promise<string | Missing> {
  try {
    return await tool(name);
  } catch (error) {
    return { missing: error instanceof Error ? error.message : String(error) };
  }
}
