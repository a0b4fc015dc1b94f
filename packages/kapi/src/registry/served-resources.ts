/**
 * Which built-in kinds are served.
 */
import { CodedError } from "@kontinuum/std";
import type { ResourceDefinition } from "../resource.ts";
import { qualified } from "../status/status.ts";

/** The built-in resources an embedder asked for by `<plural>` or `<plural>.<group>`; all without a list. */
export function servedResources(
  builtin: readonly ResourceDefinition[],
  kinds: readonly string[] | undefined,
): readonly ResourceDefinition[] {
  if (!kinds) return builtin;
  const asked = new Set(kinds);
  for (const kind of kinds) {
    if (!builtin.some((resource) => qualified(resource) === kind)) {
      throw new CodedError(
        "invalid_argument",
        `there is no built-in kind ${JSON.stringify(kind)}: write <plural> or <plural>.<group>`,
      );
    }
  }
  return builtin.filter((resource) => asked.has(qualified(resource)));
}
