/**
 * Rules of Ingresses, IngressClasses, NetworkPolicies, IPAddresses and ServiceCIDRs.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { invalid, required } from "../../schema/field-error.ts";
import { child, ensure, has, items, number, setDefaults, text, texts } from "../read.ts";
import {
  dnsName,
  labelSelector,
  oneOf,
  portNameErrors,
  portNumber,
  portReference,
  type Errors,
} from "./checks.ts";
import { cidrContains, cidrError, cidrFamily, ipError, ipFamily } from "./network-address.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

function checkBackend(backend: JsonObject | undefined, path: string, errors: Errors): void {
  if (backend === undefined) return;
  const service = child(backend, "service");
  const resource = child(backend, "resource");
  if (service !== undefined && resource !== undefined) {
    errors.push(invalid(path, "", "cannot set both resource and service backends"));
  } else if (service === undefined && resource === undefined) {
    errors.push(invalid(path, "", "resource or service backend is required"));
  }
  if (service === undefined) return;
  const name = text(service, "name");
  if (name !== "") dnsName(name, "dns1035", `${path}.service.name`, errors);
  const portName = text(service, "port", "name");
  const portValue = number(service, "port", "number");
  if (portName !== "" && portValue !== 0) {
    errors.push(invalid(path, "", "cannot set both port name & port number"));
  } else if (portName !== "") {
    for (const why of portNameErrors(portName))
      errors.push(invalid(`${path}.service.port.name`, portName, why));
  } else if (portValue !== 0) portNumber(portValue, `${path}.service.port.number`, errors);
  else errors.push(required(path, "port name or number is required"));
}

function checkHost(host: string, path: string, errors: Errors): void {
  if (host === "") return;
  if (ipFamily(host) !== undefined) errors.push(invalid(path, host, "must be a DNS name, not an IP address"));
  else checkName(host, path, errors);
}

/** A name, or one with a wildcard for its first part. */
function checkName(host: string, path: string, errors: Errors): void {
  if (host.includes("*")) {
    if (!/^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(host)) {
      errors.push(
        invalid(
          path,
          host,
          "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
      );
    }
  } else dnsName(host, "subdomain", path, errors);
}

const ingress: KindRules = {
  generation: true,
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    if (items(spec, "rules").length === 0 && !has(spec, "defaultBackend")) {
      errors.push(invalid("spec", spec ?? {}, "either `defaultBackend` or `rules` must be specified"));
    }
    checkBackend(child(spec, "defaultBackend"), "spec.defaultBackend", errors);
    for (const [index, rule] of items(spec, "rules").entries()) {
      const here = `spec.rules[${index}]`;
      checkHost(text(rule, "host"), `${here}.host`, errors);
      const paths = items(rule, "http", "paths");
      if (has(rule, "http") && paths.length === 0) errors.push(required(`${here}.http.paths`));
      for (const [position, path] of paths.entries()) {
        const target = `${here}.http.paths[${position}]`;
        const type = text(path, "pathType");
        const value = text(path, "path");
        oneOf(type, ["Exact", "ImplementationSpecific", "Prefix"], `${target}.pathType`, errors);
        if (type === "Exact" || type === "Prefix") {
          if (!value.startsWith("/"))
            errors.push(invalid(`${target}.path`, value, "must be an absolute path"));
          for (const bad of ["//", "/./", "/../", "%2f", "%2F"]) {
            if (value.includes(bad))
              errors.push(invalid(`${target}.path`, value, `must not contain '${bad}'`));
          }
        }
        checkBackend(child(path, "backend") ?? {}, `${target}.backend`, errors);
      }
    }
    for (const [index, tls] of items(spec, "tls").entries()) {
      for (const [position, host] of texts(tls, "hosts").entries())
        checkName(host, `spec.tls[${index}].hosts[${position}]`, errors);
      const secret = text(tls, "secretName");
      if (secret !== "") dnsName(secret, "subdomain", `spec.tls[${index}].secretName`, errors);
    }
    if (has(spec, "ingressClassName"))
      dnsName(text(spec, "ingressClassName"), "subdomain", "spec.ingressClassName", errors);
    return errors;
  },
  warnings: (object) =>
    text(object, "metadata", "annotations", "kubernetes.io/ingress.class") === ""
      ? []
      : [
          "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead",
        ],
};

const ingressClass: KindRules = {
  generation: true,
  defaults(object) {
    const parameters = child(object, "spec", "parameters");
    if (parameters !== undefined) setDefaults(parameters, { scope: "Cluster" });
  },
  validate(object) {
    const errors: FieldError[] = [];
    const controller = text(object, "spec", "controller");
    if (controller === "") errors.push(required("spec.controller"));
    else if (controller.length > 250)
      errors.push(invalid("spec.controller", controller, "must be no more than 250 characters"));
    else if (!/^[^/]+\/.+$/.test(controller)) {
      errors.push(
        invalid("spec.controller", controller, 'must be a domain-prefixed path (such as "acme.io/foo")'),
      );
    }
    const parameters = child(object, "spec", "parameters");
    if (parameters === undefined) return errors;
    const namespaced = text(parameters, "scope") === "Namespace";
    if (namespaced && text(parameters, "namespace") === "") {
      errors.push(required("spec.parameters.namespace", "`parameters.scope` is set to 'Namespace'"));
    } else if (!namespaced && has(parameters, "namespace")) {
      errors.push({
        reason: "FieldValueForbidden",
        field: "spec.parameters.namespace",
        message: "Forbidden: `parameters.scope` is set to 'Cluster'",
      });
    }
    return errors;
  },
  validateUpdate(object, old) {
    const controller = text(object, "spec", "controller");
    return controller === text(old, "spec", "controller")
      ? []
      : [invalid("spec.controller", controller, "field is immutable")];
  },
};

function checkPeers(peers: readonly JsonObject[], path: string, errors: Errors): void {
  for (const [index, peer] of peers.entries()) {
    const here = `${path}[${index}]`;
    const kinds = ["podSelector", "namespaceSelector", "ipBlock"].filter((key) => has(peer, key));
    if (kinds.length === 0) errors.push(required(here, "must specify a peer"));
    labelSelector(child(peer, "podSelector"), `${here}.podSelector`, errors);
    labelSelector(child(peer, "namespaceSelector"), `${here}.namespaceSelector`, errors);
    const block = child(peer, "ipBlock");
    if (block === undefined) continue;
    if (kinds.length > 1) {
      errors.push({
        reason: "FieldValueForbidden",
        field: here,
        message: "Forbidden: may not specify both ipBlock and another peer",
      });
    }
    const cidr = text(block, "cidr");
    if (cidr !== "" && cidrFamily(cidr) === undefined)
      errors.push(invalid(`${here}.ipBlock.cidr`, cidr, cidrError));
    for (const [position, except] of texts(block, "except").entries()) {
      const field = `${here}.ipBlock.except[${position}]`;
      if (cidrFamily(except) === undefined) errors.push(invalid(field, except, cidrError));
      else if (!cidrContains(cidr, except) || cidr === except) {
        errors.push(invalid(field, except, `must be a strict subset of \`cidr\``));
      }
    }
  }
}

function checkPolicyPorts(ports: readonly JsonObject[], path: string, errors: Errors): void {
  for (const [index, port] of ports.entries()) {
    const here = `${path}[${index}]`;
    const value = at(port, "port");
    portReference(value, `${here}.port`, errors);
    if (!has(port, "endPort")) continue;
    const end = number(port, "endPort");
    portNumber(end, `${here}.endPort`, errors);
    if (typeof value === "string") {
      errors.push({
        reason: "FieldValueForbidden",
        field: `${here}.endPort`,
        message: "Forbidden: may not be specified when `port` is non-numeric",
      });
    } else if (typeof value !== "number")
      errors.push(required(`${here}.port`, "must be specified when `endPort` is specified"));
    else if (end < value)
      errors.push(invalid(`${here}.endPort`, end, "must be greater than or equal to `port`"));
  }
}

const networkPolicy: KindRules = {
  generation: true,
  defaults(object) {
    const spec = ensure(object, "spec");
    for (const key of ["ingress", "egress"]) {
      for (const rule of items(spec, key))
        for (const port of items(rule, "ports")) setDefaults(port, { protocol: "TCP" });
    }
    if (texts(spec, "policyTypes").length === 0) {
      spec.policyTypes = items(spec, "egress").length > 0 ? ["Ingress", "Egress"] : ["Ingress"];
    }
  },
  validate(object) {
    const errors: FieldError[] = [];
    labelSelector(child(object, "spec", "podSelector"), "spec.podSelector", errors);
    for (const [key, peers] of [
      ["ingress", "from"],
      ["egress", "to"],
    ] as const) {
      for (const [index, rule] of items(object, "spec", key).entries()) {
        checkPolicyPorts(items(rule, "ports"), `spec.${key}[${index}].ports`, errors);
        checkPeers(items(rule, peers), `spec.${key}[${index}].${peers}`, errors);
      }
    }
    const types = texts(object, "spec", "policyTypes");
    if (types.length > 2)
      errors.push(invalid("spec.policyTypes", types, "may not specify more than two policyTypes"));
    return errors;
  },
};

/** Rules of network kinds. */
export const networkingRules: RuleTable = {
  "networking.k8s.io/v1/Ingress": ingress,
  "networking.k8s.io/v1/IngressClass": ingressClass,
  "networking.k8s.io/v1/NetworkPolicy": networkPolicy,
  "networking.k8s.io/v1/IPAddress": {
    validate(object) {
      const errors: FieldError[] = [];
      const name = text(object, "metadata", "name");
      if (ipFamily(name) === undefined) errors.push(invalid("metadata.name", name, ipError));
      if (!has(object, "spec", "parentRef")) errors.push(required("spec.parentRef"));
      return errors;
    },
    validateUpdate: (object, old) =>
      equalJson(at(object, "spec", "parentRef"), at(old, "spec", "parentRef"))
        ? []
        : [invalid("spec.parentRef", at(object, "spec", "parentRef"), "field is immutable")],
  },
  "networking.k8s.io/v1/ServiceCIDR": {
    statusKeeps: "metadata",
    validate(object) {
      const errors: FieldError[] = [];
      const cidrs = texts(object, "spec", "cidrs");
      if (cidrs.length === 0) errors.push(required("spec.cidrs", "at least one CIDR required"));
      if (cidrs.length > 2) errors.push(invalid("spec.cidrs", cidrs, "may only hold up to 2 values"));
      const families = cidrs.map((cidr) => cidrFamily(cidr)).filter((family) => family !== undefined);
      if (cidrs.length === 2 && families.length === 2 && families[0] === families[1])
        errors.push(
          invalid(
            "spec.cidrs",
            cidrs,
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
          ),
        );
      for (const [index, cidr] of cidrs.entries()) {
        if (cidrFamily(cidr) === undefined) errors.push(invalid(`spec.cidrs[${index}]`, cidr, cidrError));
      }
      return errors;
    },
    validateUpdate: (object, old) =>
      equalJson(at(object, "spec", "cidrs"), at(old, "spec", "cidrs"))
        ? []
        : [invalid("spec.cidrs", texts(object, "spec", "cidrs"), "field is immutable")],
  },
};
