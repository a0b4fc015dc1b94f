/**
 * Rules of roles: reading them, matching a request, and asking whether one set of rules covers another
 * (rbac.authorization.k8s.io/v1).
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { AccessAttributes } from "../contract.ts";

/** One rule of a role. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** Rules of a role object; what can't be read grants nothing. */
export function rulesOf(role: JsonObject): readonly PolicyRule[] {
  const rules = role["rules"];
  if (!Array.isArray(rules)) return [];
  return rules.filter(isObject).map((rule) => ({
    verbs: strings(rule["verbs"]),
    apiGroups: strings(rule["apiGroups"]),
    resources: strings(rule["resources"]),
    resourceNames: strings(rule["resourceNames"]),
    nonResourceURLs: strings(rule["nonResourceURLs"]),
  }));
}

const has = (list: readonly string[], value: string): boolean => list.includes("*") || list.includes(value);

function hasResource(resources: readonly string[], resource: string, subresource: string): boolean {
  if (resources.includes("*")) return true;
  const full = subresource === "" ? resource : `${resource}/${subresource}`;
  return resources.includes(full) || (subresource !== "" && resources.includes(`*/${subresource}`));
}

/** Whether a path is named exactly or by a pattern that ends in `*`. */
export function pathMatches(patterns: readonly string[], path: string): boolean {
  return patterns.some(
    (pattern) =>
      pattern === "*" || pattern === path || (pattern.endsWith("*") && path.startsWith(pattern.slice(0, -1))),
  );
}

/** Whether a rule allows a request. */
export function ruleAllows(rule: PolicyRule, { verb, resource, path }: AccessAttributes): boolean {
  if (!has(rule.verbs, verb)) return false;
  if (!resource) return path !== undefined && pathMatches(rule.nonResourceURLs, path);
  if (!has(rule.apiGroups, resource.group)) return false;
  if (!hasResource(rule.resources, resource.resource, resource.subresource ?? "")) return false;
  return (
    rule.resourceNames.length === 0 ||
    (resource.name !== undefined && rule.resourceNames.includes(resource.name))
  );
}

/** Single permissions a set of rules is taken apart into, at most. */
const maxPermissions = 50_000;

/** Takes a rule apart into rules of one verb, group, resource and name each. */
function* permissionsOf(rule: PolicyRule): Generator<PolicyRule> {
  for (const verb of rule.verbs) {
    for (const url of rule.nonResourceURLs) {
      yield { verbs: [verb], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: [url] };
    }
    for (const group of rule.apiGroups) {
      for (const resource of rule.resources) {
        const names = rule.resourceNames.length > 0 ? rule.resourceNames.map((name) => [name]) : [[]];
        for (const resourceNames of names)
          yield {
            verbs: [verb],
            apiGroups: [group],
            resources: [resource],
            resourceNames,
            nonResourceURLs: [],
          };
      }
    }
  }
}

function covers(owner: PolicyRule, wanted: PolicyRule): boolean {
  const [verb = ""] = wanted.verbs;
  if (!has(owner.verbs, verb)) return false;
  const [url] = wanted.nonResourceURLs;
  if (url !== undefined)
    return owner.nonResourceURLs.some(
      (pattern) =>
        pattern === url || pattern === "*" || (pattern.endsWith("*") && url.startsWith(pattern.slice(0, -1))),
    );
  const [group = ""] = wanted.apiGroups;
  const [resource = ""] = wanted.resources;
  if (!has(owner.apiGroups, group)) return false;
  const [plain = "", sub = ""] = resource.split("/");
  if (!hasResource(owner.resources, plain, sub)) return false;
  const [name] = wanted.resourceNames;
  return owner.resourceNames.length === 0 || (name !== undefined && owner.resourceNames.includes(name));
}

/** Permissions of `wanted` that `owned` does not cover; `undefined` when there are too many to compare. */
export function uncovered(
  owned: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): readonly PolicyRule[] | undefined {
  const missing: PolicyRule[] = [];
  let count = 0;
  for (const rule of wanted) {
    for (const permission of permissionsOf(rule)) {
      if (++count > maxPermissions) return undefined;
      if (!owned.some((owner) => covers(owner, permission))) missing.push(permission);
    }
  }
  return missing;
}

const list = (values: readonly string[]): string =>
  `[${values.map((value) => JSON.stringify(value)).join(" ")}]`;

/** A rule as refusals print it: `{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`. */
export function printRule(rule: PolicyRule): string {
  const parts: string[] = [];
  if (rule.nonResourceURLs.length > 0) parts.push(`NonResourceURLs:${list(rule.nonResourceURLs)}`);
  if (rule.apiGroups.length > 0) parts.push(`APIGroups:${list(rule.apiGroups)}`);
  if (rule.resources.length > 0) parts.push(`Resources:${list(rule.resources)}`);
  if (rule.resourceNames.length > 0) parts.push(`ResourceNames:${list(rule.resourceNames)}`);
  parts.push(`Verbs:${list(rule.verbs)}`);
  return `{${parts.join(", ")}}`;
}
