/**
 * Gives services their cluster addresses and node ports: unique among all services, picked at random so that
 * two servers seldom pick the same.
 *
 * The function looks at the services that exist; whoever calls it makes sure that no other service is written
 * between the look and the write, or repeats both.
 */
import type { JsonObject, Random } from "@kontinuum/std";
import ipaddr from "ipaddr.js";
import type { FieldError } from "../../resource.ts";
import { invalid } from "../../schema/field-error.ts";
import { child, items, number, text, texts } from "../read.ts";
import { ipFamily } from "./network-address.ts";
import { familyDefaults } from "./service.ts";

/** Where addresses and ports come from. */
export interface ServiceRanges {
  /** IPv4 network of cluster addresses. Default `10.96.0.0/12`. */
  readonly serviceCidr: string;
  /** First and last node port. Default 30000 to 32767. */
  readonly nodePorts: readonly [number, number];
}

/** The ranges of a cluster that says nothing else (kubeadm's and kube-apiserver's defaults). */
const defaultServiceRanges: ServiceRanges = {
  serviceCidr: "10.96.0.0/12",
  nodePorts: [30_000, 32_767],
};

/** Random picks before the range is searched in order. */
const maxPicks = 32;

/** What other services hold. */
interface Taken {
  readonly addresses: ReadonlySet<string>;
  readonly ports: ReadonlySet<string>;
}

function takenBy(services: readonly JsonObject[], own: string): Taken {
  const addresses = new Set<string>();
  const ports = new Set<string>();
  for (const service of services) {
    if (`${text(service, "metadata", "namespace")}/${text(service, "metadata", "name")}` === own) continue;
    for (const address of texts(service, "spec", "clusterIPs")) addresses.add(address);
    for (const port of items(service, "spec", "ports")) {
      if (number(port, "nodePort") !== 0) ports.add(`${text(port, "protocol")}/${number(port, "nodePort")}`);
    }
    const health = number(service, "spec", "healthCheckNodePort");
    if (health !== 0) ports.add(`TCP/${health}`);
  }
  return { addresses, ports };
}

/**
 * Fills the addresses and node ports of a service in place. `services` are all services, `random` a source of
 * numbers. Returns what could not be given.
 */
export function allocateService(
  service: JsonObject,
  services: readonly JsonObject[],
  random: Random,
  ranges: ServiceRanges = defaultServiceRanges,
): readonly FieldError[] {
  const spec = child(service, "spec");
  if (spec === undefined || text(spec, "type") === "ExternalName") return [];
  const errors: FieldError[] = [];
  const taken = takenBy(
    services,
    `${text(service, "metadata", "namespace")}/${text(service, "metadata", "name")}`,
  );
  allocateAddress(spec, taken, random, ranges, errors);
  const type = text(spec, "type");
  const wantsPorts =
    type === "NodePort" || (type === "LoadBalancer" && spec.allocateLoadBalancerNodePorts !== false);
  allocatePorts(spec, wantsPorts, taken, random, ranges, errors);
  return errors;
}

function allocateAddress(
  spec: JsonObject,
  taken: Taken,
  random: Random,
  ranges: ServiceRanges,
  errors: FieldError[],
): void {
  const given = text(spec, "clusterIP");
  if (given === "None") return;
  const [network, length] = ipaddr.IPv4.parseCIDR(ranges.serviceCidr);
  if (given === "") {
    const address = freeAddress(network, length, taken, random);
    if (address === undefined) {
      errors.push({
        reason: "InternalError",
        field: "spec.clusterIPs",
        message: "Internal error: failed to allocate a serviceIP: range is full",
      });
      return;
    }
    Object.assign(spec, { clusterIP: address, clusterIPs: [address] });
  } else if (taken.addresses.has(given)) {
    const why = `failed to allocate IP ${given}: provided IP is already allocated`;
    errors.push(invalid("spec.clusterIPs", [given], why));
  } else if (ipFamily(given) === "IPv4" && !ipaddr.IPv4.parse(given).match(network, length)) {
    const why = `failed to allocate IP ${given}: the provided IP (${given}) is not in the valid range. The range of valid IPs is ${ranges.serviceCidr}`;
    errors.push(invalid("spec.clusterIPs", [given], why));
  }
  familyDefaults(spec, ipFamily(text(spec, "clusterIP")) ?? "IPv4");
}

function freeAddress(network: ipaddr.IPv4, length: number, taken: Taken, random: Random): string | undefined {
  const size = 2 ** (32 - length);
  const base = network.octets.reduce((sum, octet) => sum * 256 + octet, 0);
  const at = (offset: number): string => {
    const value = base + offset;
    return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
  };
  // The first address is the API server's own, the last the broadcast address.
  const usable = size - 3;
  for (let pick = 0; pick < maxPicks; pick++) {
    const address = at(2 + random.integer(usable));
    if (!taken.addresses.has(address)) return address;
  }
  for (let offset = 2; offset < size - 1; offset++) if (!taken.addresses.has(at(offset))) return at(offset);
  return undefined;
}

function allocatePorts(
  spec: JsonObject,
  wanted: boolean,
  taken: Taken,
  random: Random,
  { nodePorts: [first, last] }: ServiceRanges,
  errors: FieldError[],
): void {
  const used = new Set(taken.ports);
  const ports = items(spec, "ports");
  for (const [index, port] of ports.entries()) {
    const given = number(port, "nodePort");
    if (given === 0) continue;
    const key = `${text(port, "protocol")}/${given}`;
    const field = `spec.ports[${index}].nodePort`;
    if (given < first || given > last) {
      errors.push(
        invalid(
          field,
          given,
          `provided port is not in the valid range. The range of valid ports is ${first}-${last}`,
        ),
      );
    } else if (used.has(key)) errors.push(invalid(field, given, "provided port is already allocated"));
    used.add(key);
  }
  if (!wanted) return;
  const local = text(spec, "type") === "LoadBalancer" && text(spec, "externalTrafficPolicy") === "Local";
  if (local && number(spec, "healthCheckNodePort") === 0) {
    const health = freePort("TCP", used, random, first, last);
    if (health !== undefined) {
      spec.healthCheckNodePort = health;
      used.add(`TCP/${health}`);
    }
  }
  for (const [index, port] of ports.entries()) {
    if (number(port, "nodePort") !== 0) continue;
    const free = freePort(text(port, "protocol"), used, random, first, last);
    if (free === undefined) {
      errors.push({
        reason: "InternalError",
        field: `spec.ports[${index}].nodePort`,
        message: "Internal error: failed to allocate a nodePort: range is full",
      });
      return;
    }
    port.nodePort = free;
    used.add(`${text(port, "protocol")}/${free}`);
  }
}

function freePort(
  protocol: string,
  used: ReadonlySet<string>,
  random: Random,
  first: number,
  last: number,
): number | undefined {
  const size = last - first + 1;
  const start = random.integer(size);
  for (let step = 0; step < size; step++) {
    const port = first + ((start + step) % size);
    if (!used.has(`${protocol}/${port}`)) return port;
  }
  return undefined;
}
