/**
 * Unknown and duplicate fields: refused, warned about or ignored, as `fieldValidation` asks.
 */
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import { badRequest } from "../status/status.ts";
import type { FieldValidation } from "./options.ts";

/** Problems named in one answer at most. */
const maxProblems = 100;

/** Applies the rule to what was found. Fails with 400 under `Strict`. */
export function reportFields(
  context: RequestContext,
  resource: ResourceDefinition,
  validation: FieldValidation,
  unknown: readonly string[],
  duplicates: readonly string[],
): void {
  if (validation === "Ignore" || unknown.length + duplicates.length === 0) return;
  const repeated = duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`);
  const strange = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
  // Upstream finds both in one reading of a built-in kind; what a custom schema does not know is found afterwards.
  const problems = resource.origin === "custom" ? [...repeated, ...strange] : [...strange, ...repeated];
  problems.splice(maxProblems);
  if (validation === "Warn") {
    for (const problem of problems) context.warn(problem);
    return;
  }
  throw badRequest(
    `${resource.kind} in version ${JSON.stringify(resource.version)} cannot be handled as a ${resource.kind}: strict decoding error: ${problems.join(", ")}`,
  );
}

/** The same for the configuration of an apply, which upstream reads as YAML whatever it is. Fails with 400 under `Strict`. */
export function reportRepeated(
  context: RequestContext,
  validation: FieldValidation,
  repeated: () => readonly string[],
): void {
  if (validation === "Ignore") return;
  const problems = repeated().slice(0, maxProblems);
  if (problems.length === 0) return;
  if (validation === "Strict")
    throw badRequest(`error strict decoding YAML: yaml: unmarshal errors:\n  ${problems.join("\n  ")}`);
  for (const problem of problems) context.warn(problem);
}
