/**
 * Rules of Services, Endpoints and EndpointSlices.
 *
 * Cluster addresses and node ports are given out by `service-allocation.ts`, which must see all services.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { duplicate, forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { child, ensure, entries, has, items, number, setDefaults, text, texts } from "../read.ts";
import { dnsName, labelKey, labelMap, oneOf, portNumber, portReference, type Errors } from "./checks.ts";
import { cidrError, cidrFamily, ipError, ipFamily, specialAddressError } from "./network-address.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const isExposed = (spec: JsonObject): boolean => {
  const type = text(spec, "type");
  return (
    type === "NodePort" ||
    type === "LoadBalancer" ||
    (type === "ClusterIP" && texts(spec, "externalIPs").length > 0)
  );
};

function serviceDefaults(object: JsonObject): void {
  const spec = ensure(object, "spec");
  setDefaults(spec, { sessionAffinity: "None", type: "ClusterIP" });
  if (spec.sessionAffinity === "None") delete spec.sessionAffinityConfig;
  if (spec.sessionAffinity === "ClientIP") {
    setDefaults(ensure(ensure(spec, "sessionAffinityConfig"), "clientIP"), { timeoutSeconds: 10_800 });
  }
  for (const port of items(spec, "ports")) {
    setDefaults(port, { protocol: "TCP" });
    if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === "")
      port.targetPort = port.port;
  }
  if (isExposed(spec)) setDefaults(spec, { externalTrafficPolicy: "Cluster" });
  if (spec.type !== "ExternalName") setDefaults(spec, { internalTrafficPolicy: "Cluster" });
  if (spec.type === "LoadBalancer") setDefaults(spec, { allocateLoadBalancerNodePorts: true });
  const addresses = texts(spec, "clusterIPs");
  if (addresses.length === 0 && text(spec, "clusterIP") !== "") spec.clusterIPs = [spec.clusterIP];
  if (spec.clusterIP === "None" && entries(spec, "selector").length === 0) {
    // Nobody knows of which family the endpoints will be that somebody else writes.
    if (texts(spec, "ipFamilies").length === 0) spec.ipFamilies = ["IPv4", "IPv6"];
    setDefaults(spec, { ipFamilyPolicy: "RequireDualStack" });
  } else if (spec.clusterIP === "None") familyDefaults(spec, "IPv4");
  else if (addresses[0] !== undefined) familyDefaults(spec, ipFamily(addresses[0]) ?? "IPv4");
}

/** Families of an address that is known. */
export function familyDefaults(spec: JsonObject, family: "IPv4" | "IPv6"): void {
  if (texts(spec, "ipFamilies").length === 0) spec.ipFamilies = [family];
  setDefaults(spec, { ipFamilyPolicy: "SingleStack" });
}

/** Drops what belongs to the type a service had before, as a client that only changes the type expects. */
export function releaseOldAddresses(object: JsonObject, old: JsonObject): void {
  const spec = ensure(object, "spec");
  const type = text(spec, "type");
  const before = text(old, "spec", "type");
  if (type !== "ExternalName" && before !== "ExternalName") {
    // An update that does not say the address keeps it.
    if (text(spec, "clusterIP") === "") {
      for (const key of ["clusterIP", "clusterIPs"])
        if (has(old, "spec", key)) spec[key] = cloneJson(at(old, "spec", key));
    }
    for (const key of ["ipFamilies", "ipFamilyPolicy"]) {
      if (!has(spec, key) && has(old, "spec", key)) spec[key] = cloneJson(at(old, "spec", key));
    }
  }
  if (type === "ExternalName" && before !== "ExternalName") {
    for (const key of ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]) delete spec[key];
  }
  const keepsPorts = type === "NodePort" || type === "LoadBalancer";
  const oldPorts = items(old, "spec", "ports");
  for (const port of items(spec, "ports")) {
    const same = oldPorts.find(
      (other) =>
        number(other, "port") === number(port, "port") && text(other, "protocol") === text(port, "protocol"),
    );
    const given = number(port, "nodePort");
    const had = number(same, "nodePort");
    if (keepsPorts && given === 0 && had !== 0) port.nodePort = had;
    else if (!keepsPorts && given !== 0 && given === had) delete port.nodePort;
  }
  if (type !== "LoadBalancer" && before === "LoadBalancer") {
    delete spec.allocateLoadBalancerNodePorts;
    delete spec.loadBalancerClass;
  }
  if (!isExposed(spec)) {
    if (equalJson(spec.externalTrafficPolicy, at(old, "spec", "externalTrafficPolicy")))
      delete spec.externalTrafficPolicy;
    delete spec.healthCheckNodePort;
  }
}

function checkPorts(spec: JsonObject | undefined, errors: Errors): void {
  const ports = items(spec, "ports");
  const type = text(spec, "type");
  if (ports.length === 0 && type !== "ExternalName" && text(spec, "clusterIP") !== "None") {
    errors.push(required("spec.ports"));
  }
  const names = new Set<string>();
  const pairs = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const here = `spec.ports[${index}]`;
    const name = text(port, "name");
    if (name === "") {
      if (ports.length > 1) errors.push(required(`${here}.name`));
    } else {
      dnsName(name, "label", `${here}.name`, errors);
      if (names.has(name)) errors.push(duplicate(`${here}.name`, name));
      names.add(name);
    }
    portNumber(number(port, "port"), `${here}.port`, errors);
    portReference(at(port, "targetPort"), `${here}.targetPort`, errors);
    const nodePort = number(port, "nodePort");
    if (nodePort !== 0 && (type === "ClusterIP" || type === "ExternalName")) {
      errors.push(forbidden(`${here}.nodePort`, `may not be used when \`type\` is '${type}'`));
    }
    const pair = `${text(port, "protocol")}/${number(port, "port")}`;
    if (pairs.has(pair))
      errors.push(duplicate(here, { port: number(port, "port"), protocol: text(port, "protocol") }));
    pairs.add(pair);
  }
}

/** Load balancers ask a port of their own whether a node has endpoints, when only those are to be reached. */
function checkHealthPort(spec: JsonObject | undefined, errors: Errors): void {
  const port = number(spec, "healthCheckNodePort");
  if (port === 0) return;
  const path = "spec.healthCheckNodePort";
  if (text(spec, "type") !== "LoadBalancer" || text(spec, "externalTrafficPolicy") !== "Local") {
    const why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    errors.push(invalid(path, port, why));
  } else portNumber(port, path, errors);
}

function checkService(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const spec = child(object, "spec");
  const type = text(spec, "type");
  checkPorts(spec, errors);
  labelMap(child(spec, "selector"), "spec.selector", errors);
  if (type === "ExternalName") {
    const name = text(spec, "externalName");
    if (name === "") errors.push(required("spec.externalName"));
    else dnsName(name.replace(/\.$/, ""), "subdomain", "spec.externalName", errors);
    if (text(spec, "clusterIP") === "None") {
      errors.push(forbidden("spec.clusterIPs[0]", "may not be set to 'None' for ExternalName services"));
    } else if (text(spec, "clusterIP") !== "") {
      errors.push(forbidden("spec.clusterIP", "may not be used when `type` is 'ExternalName'"));
    }
  } else if (type === "LoadBalancer" && text(spec, "clusterIP") === "None") {
    errors.push(invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for LoadBalancer services"));
  } else if (type === "NodePort" && text(spec, "clusterIP") === "None") {
    errors.push(invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for NodePort services"));
  }
  const addresses = texts(spec, "clusterIPs");
  if (addresses.length > 0 && text(spec, "clusterIP") === "")
    errors.push(invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified"));
  if (addresses.length > 1 && addresses.includes("None"))
    errors.push(invalid("spec.clusterIPs", addresses, "'None' must be the first and only value"));
  for (const [index, address] of addresses.entries()) {
    if ((address !== "None" || index > 0) && ipFamily(address) === undefined) {
      errors.push(invalid(`spec.clusterIPs[${index}]`, address, ipError));
    }
  }
  if (text(spec, "clusterIP") !== "" && texts(spec, "clusterIPs")[0] !== text(spec, "clusterIP")) {
    errors.push(invalid("spec.clusterIPs", texts(spec, "clusterIPs"), "first value must match `clusterIP`"));
  }
  for (const [index, address] of texts(spec, "externalIPs").entries()) {
    const why = ipFamily(address) === undefined ? ipError : specialAddressError(address);
    if (why !== undefined) errors.push(invalid(`spec.externalIPs[${index}]`, address, why));
  }
  if (type !== "LoadBalancer" && texts(spec, "loadBalancerSourceRanges").length > 0) {
    errors.push(forbidden("spec.LoadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'"));
  }
  for (const [index, range] of texts(spec, "loadBalancerSourceRanges").entries()) {
    if (cidrFamily(range.trim()) === undefined)
      errors.push(invalid(`spec.loadBalancerSourceRanges[${index}]`, range, cidrError));
  }
  if (has(spec, "externalTrafficPolicy") && spec !== undefined && !isExposed(spec)) {
    errors.push(
      invalid(
        "spec.externalTrafficPolicy",
        text(spec, "externalTrafficPolicy"),
        "may only be set for externally-accessible services",
      ),
    );
  }
  const timeout = number(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds");
  if (text(spec, "sessionAffinity") === "ClientIP" && (timeout <= 0 || timeout > 86_400)) {
    errors.push(
      invalid(
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        timeout,
        "must be greater than 0 and less than 86400",
      ),
    );
  }
  checkHealthPort(spec, errors);
  const distribution = text(spec, "trafficDistribution");
  const distributions = ["PreferClose", "PreferSameNode", "PreferSameZone"];
  if (distribution !== "" && !distributions.includes(distribution)) {
    errors.push(notSupported("spec.trafficDistribution", distribution, distributions));
  }
  return errors;
}

const service: KindRules = {
  defaults: serviceDefaults,
  prepareUpdate: releaseOldAddresses,
  validate: checkService,
  validateUpdate(object, old) {
    const [before, after] = [text(old, "spec", "type"), text(object, "spec", "type")];
    const had = text(old, "spec", "clusterIP");
    if (before === "ExternalName" || after === "ExternalName" || had === "") return [];
    const errors: FieldError[] = [];
    if (text(object, "spec", "clusterIP") !== had) {
      errors.push(
        invalid("spec.clusterIPs[0]", texts(object, "spec", "clusterIPs"), "may not change once set"),
      );
    }
    if (after === "LoadBalancer" && before === "LoadBalancer" && has(old, "spec", "loadBalancerClass")) {
      const value = text(object, "spec", "loadBalancerClass");
      if (value !== text(old, "spec", "loadBalancerClass")) {
        errors.push(invalid("spec.loadBalancerClass", value, "may not change once set"));
      }
    }
    return errors;
  },
  warnings(object) {
    const found: string[] = [];
    if (text(object, "spec", "loadBalancerIP") !== "") {
      found.push(
        "spec.loadBalancerIP: deprecated in v1.24+; the semantics of this field are ill-defined, prefer an implementation-specific annotation",
      );
    }
    if (text(object, "spec", "clusterIP") !== "None") return found;
    if (text(object, "spec", "sessionAffinity") === "ClientIP") {
      found.push("spec.SessionAffinity is ignored for headless services");
    }
    return found;
  },
};

function checkEndpointPorts(ports: readonly JsonObject[], path: string, errors: Errors): void {
  for (const [index, port] of ports.entries()) {
    const here = `${path}[${index}]`;
    const name = text(port, "name");
    if (ports.length > 1 && name === "") errors.push(required(`${here}.name`));
    else if (name !== "") dnsName(name, "label", `${here}.name`, errors);
    portNumber(number(port, "port"), `${here}.port`, errors);
  }
}

const endpoints: KindRules = {
  defaults(object) {
    for (const subset of items(object, "subsets")) {
      for (const port of items(subset, "ports")) setDefaults(port, { protocol: "TCP" });
    }
  },
  validate(object) {
    const errors: FieldError[] = [];
    for (const [index, subset] of items(object, "subsets").entries()) {
      const here = `subsets[${index}]`;
      if (items(subset, "addresses").length === 0 && items(subset, "notReadyAddresses").length === 0) {
        errors.push(required(here, "must specify `addresses` or `notReadyAddresses`"));
      }
      for (const key of ["addresses", "notReadyAddresses"]) {
        for (const [position, address] of items(subset, key).entries()) {
          const ip = text(address, "ip");
          const why = ipFamily(ip) === undefined ? "must be a valid IP address" : specialAddressError(ip);
          if (why !== undefined) errors.push(invalid(`${here}.${key}[${position}].ip`, ip, why));
        }
      }
      checkEndpointPorts(items(subset, "ports"), `${here}.ports`, errors);
    }
    return errors;
  },
};

const endpointSlice: KindRules = {
  generation: true,
  defaults(object) {
    for (const port of items(object, "ports")) {
      setDefaults(port, { protocol: "TCP" });
      if (!has(port, "name")) port.name = "";
    }
  },
  validate(object) {
    const errors: FieldError[] = [];
    const type = text(object, "addressType");
    oneOf(type, ["FQDN", "IPv4", "IPv6"], "addressType", errors);
    const names = new Set<string>();
    for (const [index, port] of items(object, "ports").entries()) {
      const name = text(port, "name");
      if (name !== "") dnsName(name, "label", `ports[${index}].name`, errors);
      if (has(port, "appProtocol"))
        labelKey(text(port, "appProtocol"), `ports[${index}].appProtocol`, errors);
      if (names.has(name)) errors.push(duplicate(`ports[${index}].name`, name));
      names.add(name);
    }
    for (const [index, endpoint] of items(object, "endpoints").entries()) {
      const addresses = texts(endpoint, "addresses");
      for (const [key, rule] of [
        ["hostname", "label"],
        ["nodeName", "subdomain"],
      ] as const)
        if (has(endpoint, key)) dnsName(text(endpoint, key), rule, `endpoints[${index}].${key}`, errors);
      const here = `endpoints[${index}].addresses`;
      if (addresses.length === 0) errors.push(required(here, "must contain at least 1 address"));
      if (addresses.length > 100) {
        errors.push({
          reason: "FieldValueTooMany",
          field: here,
          message: `Too many: ${addresses.length}: must have at most 100 items`,
        });
      }
      for (const [position, address] of addresses.entries()) {
        if (type === "FQDN") dnsName(address, "subdomain", `${here}[${position}]`, errors);
        else if (ipFamily(address) === undefined)
          errors.push(invalid(`${here}[${position}]`, address, ipError));
        else if ((type === "IPv4" || type === "IPv6") && ipFamily(address) !== type) {
          errors.push(invalid(`${here}[${position}]`, address, `must be an ${type} address`));
        }
      }
    }
    return errors;
  },
  validateUpdate(object, old) {
    const type = text(object, "addressType");
    return type === text(old, "addressType") ? [] : [invalid("addressType", type, "field is immutable")];
  },
};

/** Rules of services and their endpoints. */
export const serviceRules: RuleTable = {
  "v1/Service": service,
  "v1/Endpoints": {
    ...endpoints,
    warnings: () => ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"],
  },
  "discovery.k8s.io/v1/EndpointSlice": endpointSlice,
};
