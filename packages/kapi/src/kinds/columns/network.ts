/**
 * The cells of services and everything about the network.
 */
import type { JsonObject } from "@kontinuum/std";
import { child, has, items, number, text, texts } from "../read.ts";
import type { CellTable } from "./cell.ts";
import { labels, none, selector, shortened } from "./format.ts";

const loadBalancer = (object: JsonObject): string =>
  [
    ...new Set(
      items(object, "status", "loadBalancer", "ingress")
        .map((ingress) => text(ingress, "ip") || text(ingress, "hostname"))
        .filter((address) => address !== ""),
    ),
  ]
    .toSorted()
    .join(",");

function externalIp(service: JsonObject): string {
  const addresses = texts(service, "spec", "externalIPs");
  switch (text(service, "spec", "type")) {
    case "ClusterIP":
    case "NodePort":
      return addresses.join(",") || none;
    case "LoadBalancer":
      return (
        [loadBalancer(service), ...addresses].filter((address) => address !== "").join(",") || "<pending>"
      );
    case "ExternalName":
      return text(service, "spec", "externalName");
    default:
      return "<unknown>";
  }
}

function ports(service: JsonObject): string {
  const parts = items(service, "spec", "ports").map((port) => {
    const node = number(port, "nodePort");
    return `${number(port, "port")}${node > 0 ? `:${node}` : ""}/${text(port, "protocol")}`;
  });
  return parts.join(",") || none;
}

function hosts(ingress: JsonObject): string {
  const rules = items(ingress, "spec", "rules");
  const named = rules.map((rule) => text(rule, "host")).filter((host) => host !== "");
  if (named.length === 0) return "*";
  return named.length > 3 ? `${named.slice(0, 3).join(",")} + ${rules.length - 3} more...` : named.join(",");
}

const hostPort = (host: string, port: number): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;

function endpoints(object: JsonObject): string {
  const subsets = items(object, "subsets");
  if (subsets.length === 0) return none;
  const all = subsets.flatMap((subset) => {
    const addresses = items(subset, "addresses").map((address) => text(address, "ip"));
    const numbers = items(subset, "ports").map((port) => number(port, "port"));
    return numbers.length === 0
      ? addresses
      : numbers.flatMap((port) => addresses.map((address) => hostPort(address, port)));
  });
  return shortened(all, 3);
}

function slicePorts(slice: JsonObject): string {
  const all = items(slice, "ports").map((port) => (has(port, "port") ? String(number(port, "port")) : "*"));
  return all.length === 0 ? "<unset>" : shortened(all, 3);
}

function sliceEndpoints(slice: JsonObject): string {
  const all = items(slice, "endpoints").flatMap((endpoint) => texts(endpoint, "addresses"));
  return all.length === 0 ? "<unset>" : shortened(all, 3);
}

function classParameters(object: JsonObject): string {
  const parameters = child(object, "spec", "parameters");
  if (parameters === undefined) return none;
  const group = text(parameters, "apiGroup");
  return `${text(parameters, "kind")}${group === "" ? "" : `.${group}`}/${text(parameters, "name")}`;
}

function parent(object: JsonObject): string {
  const reference = child(object, "spec", "parentRef");
  if (reference === undefined) return none;
  const group = text(reference, "group");
  const resource = `${text(reference, "resource")}${group === "" ? "" : `.${group}`}`.toLowerCase();
  return [resource, text(reference, "namespace"), text(reference, "name")]
    .filter((part) => part !== "")
    .join("/");
}

/** Cells of network kinds. */
export const networkCells: CellTable = {
  "v1/Service": {
    Type: (object) => text(object, "spec", "type"),
    "Cluster-IP": (object) =>
      texts(object, "spec", "clusterIPs")[0] ?? (text(object, "spec", "clusterIP") || none),
    "External-IP": externalIp,
    "Port(s)": ports,
    Selector: (object) => labels(child(object, "spec", "selector")),
  },
  "v1/Endpoints": { Endpoints: endpoints },
  "discovery.k8s.io/v1/EndpointSlice": {
    AddressType: (object) => text(object, "addressType"),
    Ports: slicePorts,
    Endpoints: sliceEndpoints,
  },
  "networking.k8s.io/v1/Ingress": {
    Class: (object) => text(object, "spec", "ingressClassName") || none,
    Hosts: hosts,
    Address: loadBalancer,
    Ports: (object) => (items(object, "spec", "tls").length > 0 ? "80, 443" : "80"),
  },
  "networking.k8s.io/v1/IngressClass": {
    Controller: (object) => text(object, "spec", "controller"),
    Parameters: classParameters,
  },
  "networking.k8s.io/v1/NetworkPolicy": {
    "Pod-Selector": (object) => selector(child(object, "spec", "podSelector")),
  },
  "networking.k8s.io/v1/ServiceCIDR": { CIDRs: (object) => texts(object, "spec", "cidrs").join(",") },
  "networking.k8s.io/v1/IPAddress": { ParentRef: parent },
};
