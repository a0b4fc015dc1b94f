/**
 * The hash that ties pods to one state of a template.
 */
import { createHash } from "node:crypto";
import type { PodTemplate } from "@kontinuum/controller";
import { isObject, nameAlphabet } from "@kontinuum/std";

/** Ten characters that Kubernetes would use in a name; equal for equal templates, whatever the order of keys. */
export function templateHash(template: PodTemplate): string {
  const digest = createHash("sha256").update(canonical(template)).digest();
  return [...digest.subarray(0, 10)].map((byte) => nameAlphabet[byte % nameAlphabet.length]).join("");
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${fields.join(",")}}`;
}
