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

/** Whether a quota counts a pod: all its scopes must match. Quotas without scopes count every object. */
export function inScope(quota: JsonObject, pod: JsonObject): boolean {
  return (
    texts(quota, "spec", "scopes").every((scope) => scopeMatches(scope, "Exists", [], pod)) &&
    items(quota, "spec", "scopeSelector", "matchExpressions").every((expression) =>
      scopeMatches(
        text(expression, "scopeName"),
        text(expression, "operator"),
        texts(expression, "values"),
        pod,
      ),
    )
  );
}

function scopeMatches(scope: string, operator: string, values: readonly string[], pod: JsonObject): boolean {
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
      if (operator === "In") return values.includes(name);
      if (operator === "NotIn") return !values.includes(name);
      return operator === "Exists" ? name !== "" : name === "";
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

/** Whether a quota has scopes at all: then it counts pods only. */
export const isScoped = (quota: JsonObject): boolean =>
  texts(quota, "spec", "scopes").length > 0 || has(quota, "spec", "scopeSelector");
