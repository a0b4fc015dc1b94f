/**
 * Gives containers the limits and requests that the LimitRanges of their namespace say, and refuses pods and
 * claims outside the ranges (Kubernetes documentation, "Limit Ranges").
 */
import type { JsonObject } from "@kontinuum/std";
import { formatQuantity, quantityNano } from "../kinds/quantity.ts";
import { child, ensure, entries, items, text } from "../kinds/read.ts";
import { forbidden } from "../status/status.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";

const note = "kubernetes.io/limit-ranger";

/** The plug-in. `ranges` lists the LimitRanges of a namespace. Refuses with 403. */
export function limitRanger(ranges: (namespace: string) => Promise<readonly JsonObject[]>): AdmissionPlugin {
  const concerns = ({ resource, subresource, operation }: AdmissionRequest): boolean =>
    subresource === "" &&
    resource.group === "" &&
    ((resource.plural === "pods" && operation === "CREATE") ||
      (resource.plural === "persistentvolumeclaims" && operation !== "DELETE"));
  const limitsOf = async (namespace: string): Promise<JsonObject[]> =>
    (await ranges(namespace)).flatMap((range) => items(range, "spec", "limits"));
  return {
    name: "LimitRanger",
    async mutate(request) {
      const { object, namespace, resource } = request;
      if (object === undefined || resource.plural !== "pods" || !concerns(request)) return;
      const given = (await limitsOf(namespace))
        .filter((limit) => text(limit, "type") === "Container")
        .flatMap((limit) => fillContainers(object, limit));
      if (given.length === 0) return;
      const annotations = ensure(ensure(object, "metadata"), "annotations");
      annotations[note] = `LimitRanger plugin set: ${given.join("; ")}`;
    },
    async validate(request) {
      const { object, namespace, resource, name } = request;
      if (object === undefined || !concerns(request)) return;
      const errors = (await limitsOf(namespace)).flatMap((limit) =>
        violations(resource.plural, object, limit),
      );
      if (errors.length === 0) return;
      throw forbidden(resource, name, errors.length === 1 ? (errors[0] ?? "") : `[${errors.join(", ")}]`);
    },
  };
}

/** Fills what containers do not say; tells what was filled. */
function fillContainers(pod: JsonObject, limit: JsonObject): string[] {
  const told: string[] = [];
  for (const [list, what] of [
    ["containers", "container"],
    ["initContainers", "init container"],
  ] as const) {
    for (const container of items(pod, "spec", list)) {
      const resources = ensure(container, "resources");
      for (const [kind, source, word] of [
        ["requests", "defaultRequest", "request"],
        ["limits", "default", "limit"],
      ] as const) {
        const filled: string[] = [];
        for (const [name, amount] of entries(limit, source)) {
          const amounts = ensure(resources, kind);
          if (Object.hasOwn(amounts, name)) continue;
          amounts[name] = amount;
          filled.push(name);
        }
        if (filled.length > 0)
          told.push(`${filled.toSorted().join(", ")} ${word} for ${what} ${text(container, "name")}`);
      }
    }
  }
  return told;
}

interface Amounts {
  readonly requests: ReadonlyMap<string, bigint>;
  readonly limits: ReadonlyMap<string, bigint>;
}

const amountsOf = (container: JsonObject): Amounts => {
  const read = (kind: string): Map<string, bigint> =>
    new Map(
      entries(container, "resources", kind).map(([name, amount]) => [name, quantityNano(amount) ?? 0n]),
    );
  return { requests: read("requests"), limits: read("limits") };
};

/** Totals of a pod: all containers, or the largest init container where that is more. */
function podAmounts(pod: JsonObject): Amounts {
  const total = (kind: "requests" | "limits"): Map<string, bigint> => {
    const sum = new Map<string, bigint>();
    for (const container of items(pod, "spec", "containers")) {
      for (const [name, nano] of amountsOf(container)[kind]) sum.set(name, (sum.get(name) ?? 0n) + nano);
    }
    for (const container of items(pod, "spec", "initContainers")) {
      for (const [name, nano] of amountsOf(container)[kind])
        if (nano > (sum.get(name) ?? 0n)) sum.set(name, nano);
    }
    return sum;
  };
  return { requests: total("requests"), limits: total("limits") };
}

function violations(plural: string, object: JsonObject, limit: JsonObject): string[] {
  const type = text(limit, "type");
  if (plural === "pods" && type === "Container") {
    return [...items(object, "spec", "containers"), ...items(object, "spec", "initContainers")].flatMap(
      (container) => outside(amountsOf(container), limit, "Container"),
    );
  }
  if (plural === "pods" && type === "Pod") return outside(podAmounts(object), limit, "Pod");
  if (plural !== "persistentvolumeclaims" || type !== "PersistentVolumeClaim") return [];
  const wanted = quantityNano(child(object, "spec", "resources", "requests")?.storage) ?? 0n;
  const amounts = new Map([["storage", wanted]]);
  return outside({ requests: amounts, limits: new Map() }, limit, type);
}

/** Where amounts lie outside a range. */
function outside({ requests, limits }: Amounts, limit: JsonObject, type: string): string[] {
  const errors: string[] = [];
  const print = (name: string, nano: bigint): string => formatQuantity(nano, /memory|storage/.test(name));
  for (const [name, bound] of entries(limit, "min")) {
    const least = quantityNano(bound) ?? 0n;
    const head = `minimum ${name} usage per ${type} is ${String(bound)}`;
    const [request, most] = [requests.get(name), limits.get(name)];
    if (request === undefined) errors.push(`${head}. No request is specified`);
    else if (request < least) errors.push(`${head}, but request is ${print(name, request)}`);
    if (most !== undefined && most < least) errors.push(`${head}, but limit is ${print(name, most)}`);
  }
  for (const [name, bound] of entries(limit, "max")) {
    const most = quantityNano(bound) ?? 0n;
    const head = `maximum ${name} usage per ${type} is ${String(bound)}`;
    const [request, given] = [requests.get(name), limits.get(name)];
    if (type !== "PersistentVolumeClaim" && given === undefined)
      errors.push(`${head}. No limit is specified`);
    else if (given !== undefined && given > most) errors.push(`${head}, but limit is ${print(name, given)}`);
    if (request !== undefined && request > most)
      errors.push(`${head}, but request is ${print(name, request)}`);
  }
  for (const [name, ratio] of entries(limit, "maxLimitRequestRatio")) {
    const [request, given] = [requests.get(name) ?? 0n, limits.get(name) ?? 0n];
    const head = `${name} max limit to request ratio per ${type} is ${String(ratio)}`;
    if (request === 0n || given === 0n) errors.push(`${head}, but no request or limit is specified`);
    else if (given * 1_000_000_000n > (quantityNano(ratio) ?? 0n) * request) {
      errors.push(`${head}, but provided ratio is ${(Number(given) / Number(request)).toFixed(6)}`);
    }
  }
  return errors;
}
