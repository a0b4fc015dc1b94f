/**
 * The fields of a pod that it may hand to its own containers (Kubernetes documentation, "Downward API").
 */
import { invalid } from "../../schema/field-error.ts";
import type { Errors } from "./checks.ts";

const everywhere: ReadonlySet<string> = new Set(["metadata.name", "metadata.namespace", "metadata.uid"]);
/** Only in files: a variable cannot hold a whole map. */
const inFiles: ReadonlySet<string> = new Set(["metadata.labels", "metadata.annotations"]);
/** Only in variables: files would not follow a change. */
const inVariables: ReadonlySet<string> = new Set([
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
]);
const oneKey = /^metadata\.(labels|annotations)\['[^']+'\]$/;

/** Checks a field path; `file` tells where its value goes. */
export function checkFieldPath(fieldPath: string, file: boolean, path: string, errors: Errors): void {
  if (fieldPath === "" || everywhere.has(fieldPath) || oneKey.test(fieldPath)) return;
  if ((file ? inFiles : inVariables).has(fieldPath)) return;
  errors.push(
    invalid(path, fieldPath, `error converting fieldPath: field label not supported: ${fieldPath}`),
  );
}
