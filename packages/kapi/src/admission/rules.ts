/**
 * Which requests a webhook or policy is about: rules, selectors (admissionregistration.k8s.io/v1 RuleWithOperations).
 */
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { labelSelectorOf } from "../registry/label-selector.ts";
import type { ResourceDefinition } from "../resource.ts";
import type { AdmissionRequest } from "./admission.ts";

function list(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

const has = (values: readonly string[], value: string): boolean =>
  values.includes("*") || values.includes(value);

function matchesResource(patterns: readonly string[], plural: string, subresource: string): boolean {
  return patterns.some((pattern) => {
    const [resource = "", sub = ""] = pattern.split("/");
    if (pattern === "*/*") return true;
    return (
      (resource === "*" || resource === plural) &&
      (sub === subresource || (sub === "*" && subresource !== ""))
    );
  });
}

/** Whether one rule names an operation on a resource in exactly this version. */
export function ruleMatches(
  rule: unknown,
  operation: string,
  resource: ResourceDefinition,
  subresource: string,
  name: string = "",
): boolean {
  if (!isObject(rule)) return false;
  const scope = stringAt(rule, "scope") ?? "*";
  // A namespace counts as cluster-scoped, as it is.
  if (scope !== "*" && (scope === "Namespaced") !== resource.namespaced) return false;
  const names = list(rule["resourceNames"]);
  return (
    has(list(rule["operations"]), operation) &&
    has(list(rule["apiGroups"]), resource.group) &&
    has(list(rule["apiVersions"]), resource.version) &&
    matchesResource(list(rule["resources"]), resource.plural, subresource) &&
    (names.length === 0 || names.includes(name))
  );
}

/** Labels of the namespace a request is in; `undefined` for cluster-scoped objects that are no namespace. */
export async function namespaceLabels(
  request: AdmissionRequest,
  read: (name: string) => Promise<JsonObject | undefined>,
): Promise<Readonly<Record<string, string>> | undefined> {
  const { resource, namespace, object, oldObject } = request;
  if (resource.group === "" && resource.plural === "namespaces") return labelsOf(object ?? oldObject);
  if (!resource.namespaced) return undefined;
  return labelsOf(await read(namespace));
}

/** Labels of an object. */
export function labelsOf(object: JsonObject | undefined): Readonly<Record<string, string>> {
  const labels = at(object, "metadata", "labels");
  const out: Record<string, string> = {};
  if (isObject(labels))
    for (const [key, value] of Object.entries(labels)) if (typeof value === "string") out[key] = value;
  return out;
}

/** Whether a selector (absent selects all) matches the old or the new object. */
export function objectSelected(selector: unknown, request: AdmissionRequest): boolean {
  if (!isObject(selector) || Object.keys(selector).length === 0) return true;
  const parsed = labelSelectorOf(selector);
  return [request.object, request.oldObject].some(
    (object) => object !== undefined && parsed.matches(labelsOf(object)),
  );
}

/** Whether a namespace selector (absent selects all) matches. */
export function namespaceSelected(
  selector: unknown,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  if (!isObject(selector) || Object.keys(selector).length === 0 || labels === undefined) return true;
  return labelSelectorOf(selector).matches(labels);
}

/** The objects admission is configured with are never judged by it: a bad configuration must stay removable. */
export function isAdmissionConfiguration(resource: ResourceDefinition): boolean {
  return resource.group === "admissionregistration.k8s.io";
}
