/**
 * What an object costs against the quotas of its namespace (Kubernetes documentation, "Resource Quotas"):
 * one of its kind, and for pods, services and claims what they ask for.
 */
import type { JsonObject } from "@kontinuum/std";
import { formatQuantity, quantityNano } from "./quantity.ts";
import { child, entries, has, items, number, text, texts } from "./read.ts";

/** Amounts in billionths by quota key (`pods`, `requests.cpu`, `count/jobs.batch`). */
export type Amounts = Map<string, bigint>;

/** One object, in billionths. */
const one = 1_000_000_000n;

/** Kinds whose plural alone is a quota key. */
const plainCounts: ReadonlySet<string> = new Set([
  "configmaps",
  "persistentvolumeclaims",
  "pods",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "services",
]);

/** What an object of a resource costs. */
export function chargeOf(
  resource: { readonly group: string; readonly plural: string },
  object: JsonObject,
): Amounts {
  const { group, plural } = resource;
  const amounts: Amounts = new Map([[`count/${plural}${group === "" ? "" : `.${group}`}`, one]]);
  if (group !== "") return amounts;
  if (plural === "pods") chargePod(object, amounts);
  else {
    if (plainCounts.has(plural)) amounts.set(plural, one);
    if (plural === "services") chargeService(object, amounts);
    if (plural === "persistentvolumeclaims") chargeClaim(object, amounts);
  }
  return amounts;
}

/** The resource (`pods`, `jobs.batch`) whose objects a quota key counts, or `undefined` for a key nobody counts. */
export function countedResource(
  key: string,
): { readonly plural: string; readonly group: string } | undefined {
  if (key.startsWith("count/")) {
    const [plural = "", ...group] = key.slice("count/".length).split(".");
    return { plural, group: group.join(".") };
  }
  if (plainCounts.has(key)) return { plural: key, group: "" };
  if (key.startsWith("services.")) return { plural: "services", group: "" };
  if (key === "requests.storage" || key.includes(".storageclass.storage.k8s.io/")) {
    return { plural: "persistentvolumeclaims", group: "" };
  }
  return /^(requests\.|limits\.|cpu$|memory$|ephemeral-storage$|hugepages-)/.test(key)
    ? { plural: "pods", group: "" }
    : undefined;
}

/** Text of an amount of a quota key. */
export const amountText = (key: string, nano: bigint): string =>
  formatQuantity(nano, /memory|storage|hugepages/.test(key));

function add(amounts: Amounts, key: string, nano: bigint): void {
  amounts.set(key, (amounts.get(key) ?? 0n) + nano);
}

/** A pod that has ended uses nothing any more but its place in `count/pods`. */
function chargePod(pod: JsonObject, amounts: Amounts): void {
  const phase = text(pod, "status", "phase");
  if (phase === "Succeeded" || phase === "Failed") return;
  amounts.set("pods", one);
  for (const kind of ["requests", "limits"]) {
    const running = new Map<string, bigint>();
    for (const container of items(pod, "spec", "containers")) {
      for (const [name, amount] of entries(container, "resources", kind)) {
        running.set(name, (running.get(name) ?? 0n) + (quantityNano(amount) ?? 0n));
      }
    }
    // Init containers run one after the other, before the others: the largest decides.
    for (const container of items(pod, "spec", "initContainers")) {
      for (const [name, amount] of entries(container, "resources", kind)) {
        const nano = quantityNano(amount) ?? 0n;
        if (nano > (running.get(name) ?? 0n)) running.set(name, nano);
      }
    }
    for (const [name, nano] of running) {
      add(amounts, `${kind}.${name}`, nano);
      if (kind === "requests") add(amounts, name, nano);
    }
  }
}

function chargeService(service: JsonObject, amounts: Amounts): void {
  const type = text(service, "spec", "type");
  if (type === "LoadBalancer") amounts.set("services.loadbalancers", one);
  if (type !== "NodePort" && type !== "LoadBalancer") return;
  const ports = items(service, "spec", "ports").filter((port) => number(port, "nodePort") !== 0);
  if (ports.length > 0) amounts.set("services.nodeports", one * BigInt(ports.length));
}

function chargeClaim(claim: JsonObject, amounts: Amounts): void {
  const wanted = quantityNano(text(claim, "spec", "resources", "requests", "storage")) ?? 0n;
  amounts.set("requests.storage", wanted);
  const storageClass = text(claim, "spec", "storageClassName");
  if (storageClass === "") return;
  const suffix = ".storageclass.storage.k8s.io/";
  amounts.set(`${storageClass}${suffix}requests.storage`, wanted);
  amounts.set(`${storageClass}${suffix}persistentvolumeclaims`, one);
}

/**
 * Whether a quota counts an object: all its scopes must match. Quotas without scopes count every object; those with
 * scopes only pods, or claims where the scope is about a claim's attributes.
 */
export function inScope(
  quota: JsonObject,
  { group, plural }: { readonly group: string; readonly plural: string },
  object: JsonObject,
): boolean {
  const matches = (scope: string, operator: string, values: readonly string[]): boolean => {
    if (group !== "") return false;
    if (plural === "pods") return podMatches(scope, operator, values, object);
    if (plural !== "persistentvolumeclaims" || scope !== "VolumeAttributesClass") return false;
    return anyMatches(operator, values, attributesClasses(object));
  };
  return (
    texts(quota, "spec", "scopes").every((scope) => matches(scope, "Exists", [])) &&
    items(quota, "spec", "scopeSelector", "matchExpressions").every((expression) =>
      matches(text(expression, "scopeName"), text(expression, "operator"), texts(expression, "values")),
    )
  );
}

/** The attributes classes a claim has, wants, or is on its way to. */
const attributesClasses = (claim: JsonObject): string[] =>
  [
    text(claim, "spec", "volumeAttributesClassName"),
    text(claim, "status", "currentVolumeAttributesClassName"),
    text(claim, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
  ].filter((name) => name !== "");

/** Whether one of the names an object has satisfies a scope's expression. */
function anyMatches(operator: string, values: readonly string[], names: readonly string[]): boolean {
  if (operator === "In") return names.some((name) => values.includes(name));
  if (operator === "NotIn") return names.length === 0 || names.some((name) => !values.includes(name));
  return operator === "Exists" ? names.length > 0 : names.length === 0;
}

function podMatches(scope: string, operator: string, values: readonly string[], pod: JsonObject): boolean {
  const spec = child(pod, "spec");
  const bestEffort = ![...items(spec, "containers"), ...items(spec, "initContainers")].some(
    (container) =>
      entries(container, "resources", "requests").length > 0 ||
      entries(container, "resources", "limits").length > 0,
  );
  switch (scope) {
    case "Terminating":
      return has(spec, "activeDeadlineSeconds");
    case "NotTerminating":
      return !has(spec, "activeDeadlineSeconds");
    case "BestEffort":
      return bestEffort;
    case "NotBestEffort":
      return !bestEffort;
    case "PriorityClass": {
      const name = text(spec, "priorityClassName");
      return anyMatches(operator, values, name === "" ? [] : [name]);
    }
    case "CrossNamespacePodAffinity":
      return ["podAffinity", "podAntiAffinity"].some((kind) =>
        [
          "requiredDuringSchedulingIgnoredDuringExecution",
          "preferredDuringSchedulingIgnoredDuringExecution",
        ].some((when) =>
          items(spec, "affinity", kind, when).some((term) => {
            const inner = child(term, "podAffinityTerm") ?? term;
            return texts(inner, "namespaces").length > 0 || has(inner, "namespaceSelector");
          }),
        ),
      );
    default:
      return false;
  }
}

/** Whether a quota has scopes at all: then it does not count everything. */
export const isScoped = (quota: JsonObject): boolean =>
  texts(quota, "spec", "scopes").length > 0 || has(quota, "spec", "scopeSelector");
