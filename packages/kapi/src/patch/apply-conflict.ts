/**
 * Conflicts of an apply, worded as the API server words them.
 */
import { difference, isEmptySet, pathsOf, type FieldSet } from "./field-set.ts";
import { printPath } from "./fields-v1.ts";
import type { ManagedEntry } from "./managed-fields.ts";
import type { Conflicts } from "./ownership.ts";

/** The message and `details.causes` of a 409 answer with reason `Conflict`. */
export interface ApplyConflict {
  readonly message: string;
  readonly causes: readonly {
    readonly reason: "FieldManagerConflict";
    readonly message: string;
    readonly field: string;
  }[];
}

/** An owner for people: `"m"`, `"m" with subresource "scale"`, `"m" using apps/v1`. */
function printOwner({ manager, operation, apiVersion, subresource }: ManagedEntry): string {
  const name =
    JSON.stringify(manager) + (subresource === "" ? "" : ` with subresource ${JSON.stringify(subresource)}`);
  if (operation === "Apply") return name;
  return `${name} using ${apiVersion}`;
}

/** The report of all conflicts outside `allowed`, or `undefined` when none is left. Owners are sorted. */
export function conflictReport(conflicts: Conflicts, allowed: FieldSet): ApplyConflict | undefined {
  const owners = [...conflicts]
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, { entry, fields }]) => ({ owner: printOwner(entry), fields: difference(fields, allowed) }))
    .filter(({ fields }) => !isEmptySet(fields))
    .map(({ owner, fields }) => ({ owner, paths: [...pathsOf(fields)].map(printPath) }));
  const causes = owners.flatMap(({ owner, paths }) =>
    paths.map((field) => ({
      reason: "FieldManagerConflict" as const,
      message: `conflict with ${owner}`,
      field,
    })),
  );
  const [first] = causes;
  if (!first) return undefined;
  if (causes.length === 1)
    return { message: `Apply failed with 1 conflict: ${first.message}: ${first.field}`, causes };
  const lines = owners.flatMap(({ owner, paths }) => [
    `conflicts with ${owner}:`,
    ...paths.map((path) => `- ${path}`),
  ]);
  return { message: `Apply failed with ${causes.length} conflicts: ${lines.join("\n")}`, causes };
}
