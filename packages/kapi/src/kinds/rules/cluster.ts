/**
 * Rules of the kinds that describe and govern a cluster: nodes, quotas, limits, priorities, runtimes, leases,
 * events, signing requests, flow control, aggregated APIs, device claims.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson } from "../../json/json.ts";
import type { FieldError, StrategyContext } from "../../resource.ts";
import { duplicate, forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { quantityNano } from "../quantity.ts";
import { child, ensure, entries, has, isTrue, items, number, setDefaults, text, texts } from "../read.ts";
import { checkClientConfig } from "./admission.ts";
import { dnsName, immutable, labelKey, nonNegativeQuantity, type Errors } from "./checks.ts";
import { cidrError, cidrFamily } from "./network-address.ts";
import type { KindRules, RuleTable } from "./rules.ts";

const taintEffects = ["NoExecute", "NoSchedule", "PreferNoSchedule"];

const node: KindRules = {
  statusMetadata: true,
  validate(object) {
    const errors: FieldError[] = [];
    const pairs = new Set<string>();
    for (const [index, taint] of items(object, "spec", "taints").entries()) {
      const here = `spec.taints[${index}]`;
      const key = text(taint, "key");
      const effect = text(taint, "effect");
      if (key !== "") labelKey(key, `${here}.key`, errors);
      if (effect === "") errors.push(required(`${here}.effect`));
      else if (!taintEffects.includes(effect))
        errors.push(notSupported(`${here}.effect`, effect, taintEffects));
      const pair = `${key}:${effect}`;
      if (pairs.has(pair))
        errors.push({
          ...duplicate(here, taint),
          message: `Duplicate value: ${JSON.stringify(taint)}: taints must be unique by key and effect pair`,
        });
      pairs.add(pair);
    }
    for (const [index, cidr] of texts(object, "spec", "podCIDRs").entries()) {
      if (cidrFamily(cidr) === undefined) errors.push(invalid(`spec.podCIDRs[${index}]`, cidr, cidrError));
    }
    return errors;
  },
  validateUpdate(object, old) {
    const before = texts(old, "spec", "podCIDRs");
    const errors: FieldError[] = [];
    if (before.length > 0 && !equalJson(texts(object, "spec", "podCIDRs"), before)) {
      errors.push(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'));
    }
    const id = text(old, "spec", "providerID");
    if (id !== "" && text(object, "spec", "providerID") !== id) {
      errors.push(
        forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'),
      );
    }
    return errors;
  },
};

const quota: KindRules = {
  validate(object) {
    const errors: FieldError[] = [];
    for (const [name, amount] of entries(object, "spec", "hard")) {
      labelKey(name, `spec.hard[${name}]`, errors);
      nonNegativeQuantity(amount, `spec.hard[${name}]`, errors);
      const countable =
        /^(pods|services|secrets|configmaps|replicationcontrollers|resourcequotas|persistentvolumeclaims|services\..+|count\/.+)$/;
      if (countable.test(name) && (quantityNano(amount) ?? 0n) % 1_000_000_000n !== 0n) {
        errors.push(invalid(`spec.hard[${name}]`, amount, "must be an integer"));
      }
    }
    return errors;
  },
  validateUpdate(object, old) {
    const errors: FieldError[] = [];
    if (!equalJson(texts(object, "spec", "scopes").toSorted(), texts(old, "spec", "scopes").toSorted())) {
      errors.push(invalid("spec.scopes", texts(object, "spec", "scopes"), "field is immutable"));
    }
    return errors;
  },
};

function limitDefaults(object: JsonObject): void {
  for (const limit of items(object, "spec", "limits")) {
    if (text(limit, "type") !== "Container") continue;
    const usual = { ...child(limit, "default") };
    for (const [name, amount] of entries(limit, "max")) usual[name] ??= amount;
    const request = { ...child(limit, "defaultRequest") };
    for (const [name, amount] of Object.entries(usual)) request[name] ??= amount;
    for (const [name, amount] of entries(limit, "min")) request[name] ??= amount;
    if (Object.keys(usual).length > 0) limit.default = usual;
    if (Object.keys(request).length > 0) limit.defaultRequest = request;
  }
}

function checkLimits(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const types = new Set<string>();
  for (const [index, limit] of items(object, "spec", "limits").entries()) {
    const here = `spec.limits[${index}]`;
    const type = text(limit, "type");
    if (types.has(type)) errors.push(duplicate(`${here}.type`, type));
    types.add(type);
    for (const key of ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"]) {
      if (type === "Pod" && (key === "default" || key === "defaultRequest") && has(limit, key)) {
        errors.push(forbidden(`${here}.${key}`, "may not be specified when `type` is 'Pod'"));
      }
      for (const [name, amount] of entries(limit, key))
        nonNegativeQuantity(amount, `${here}.${key}[${name}]`, errors);
    }
    ordered(limit, "min", "max", here, errors);
    ordered(limit, "min", "default", here, errors);
    ordered(limit, "default", "max", here, errors);
    ordered(limit, "defaultRequest", "default", here, errors);
    if (type === "PersistentVolumeClaim" && !has(limit, "min", "storage") && !has(limit, "max", "storage")) {
      errors.push(
        required(here, "either minimum or maximum storage value is required, but neither was provided"),
      );
    }
  }
  return errors;
}

/** The amounts of one list do not exceed those of another. */
function ordered(limit: JsonObject, low: string, high: string, path: string, errors: Errors): void {
  for (const [name, amount] of entries(limit, low)) {
    const other = at(limit, high, name);
    const [least, most] = [quantityNano(amount), quantityNano(other)];
    if (least !== undefined && most !== undefined && least > most) {
      errors.push(
        invalid(
          `${path}.${low}[${name}]`,
          amount,
          `${low} value ${String(amount)} is greater than ${high} value ${String(other)}`,
        ),
      );
    }
  }
}

const priorityClass: KindRules = {
  generation: true,
  defaults: (object) => setDefaults(object, { preemptionPolicy: "PreemptLowerPriority" }),
  validate(object) {
    const errors: FieldError[] = [];
    const name = text(object, "metadata", "name");
    const system = { "system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000 }[name];
    if (name.startsWith("system-") && system !== number(object, "value")) {
      errors.push(
        forbidden(
          "metadata.name",
          "priority class names with 'system-' prefix are reserved for system use only",
        ),
      );
    } else if (system === undefined && number(object, "value") > 1_000_000_000) {
      errors.push(forbidden("value", "maximum allowed value of a user defined priority is 1000000000"));
    }
    return errors;
  },
  validateUpdate(object, old) {
    const errors: FieldError[] = [];
    if (number(object, "value") !== number(old, "value"))
      errors.push(forbidden("value", "may not be changed in an update."));
    immutable(object, old, ["preemptionPolicy"], equalJson, errors);
    return errors;
  },
};

const lease: KindRules = {
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    if (has(spec, "leaseDurationSeconds") && number(spec, "leaseDurationSeconds") <= 0) {
      errors.push(
        invalid("spec.leaseDurationSeconds", number(spec, "leaseDurationSeconds"), "must be greater than 0"),
      );
    }
    if (has(spec, "leaseTransitions") && number(spec, "leaseTransitions") < 0) {
      errors.push(
        invalid(
          "spec.leaseTransitions",
          number(spec, "leaseTransitions"),
          "must be greater than or equal to 0",
        ),
      );
    }
    if (has(spec, "holderIdentity") && text(spec, "holderIdentity") === "") {
      errors.push(invalid("spec.holderIdentity", "", "must not be empty"));
    }
    return errors;
  },
};

/** Events name an object of their own namespace; those of cluster-wide objects live in `default`. */
function checkEventNamespace(object: JsonObject, key: "involvedObject" | "regarding", errors: Errors): void {
  const namespace = text(object, "metadata", "namespace");
  const about = text(object, key, "namespace");
  const allowed = about === "" ? ["default", "kube-system"].includes(namespace) : about === namespace;
  if (!allowed) errors.push(invalid(`${key}.namespace`, about, "does not match event.namespace"));
}

/** Checks of events that carry an event time: the new kind of events, in either group. */
function checkNewEvent(
  object: JsonObject,
  names: { controller: string; instance: string; about: string },
  errors: Errors,
): void {
  const controller = text(object, names.controller);
  if (controller === "") errors.push(required(names.controller));
  else labelKey(controller, names.controller, errors);
  const instance = text(object, names.instance);
  if (instance === "") errors.push(required(names.instance));
  else if (instance.length > 128) errors.push(invalid(names.instance, "", "can have at most 128 characters"));
  for (const key of ["action", "reason"]) {
    const value = text(object, key);
    if (value === "") errors.push(required(key));
    else if (value.length > 128) errors.push(invalid(key, "", "can have at most 128 characters"));
  }
  const type = text(object, "type");
  if (type !== "Normal" && type !== "Warning") errors.push(invalid("type", "", `has invalid value: ${type}`));
}

const coreEvent: KindRules = {
  validate(object) {
    const errors: FieldError[] = [];
    checkEventNamespace(object, "involvedObject", errors);
    if (has(object, "eventTime")) {
      checkNewEvent(
        object,
        { controller: "reportingComponent", instance: "reportingInstance", about: "involvedObject" },
        errors,
      );
    }
    return errors.map((error) => ({
      ...error,
      field: error.field.replace(/^reportingComponent$/, "reportingController"),
    }));
  },
};

const event: KindRules = {
  validate(object, context) {
    const errors: FieldError[] = [];
    checkEventNamespace(object, "regarding", errors);
    // Events that the older group wrote have no event time; they may still be updated here.
    if (!has(object, "eventTime") && has(object, "deprecatedFirstTimestamp") && context.subresource === "")
      return errors;
    if (!has(object, "eventTime")) errors.push(required("eventTime"));
    checkNewEvent(
      object,
      { controller: "reportingController", instance: "reportingInstance", about: "regarding" },
      errors,
    );
    if (text(object, "note").length > 1024)
      errors.push(invalid("note", "", "can have at most 1024 characters"));
    return errors;
  },
};

/** The requester is whoever sends the request; nobody can sign up for somebody else. */
function requester(object: JsonObject, context: StrategyContext): void {
  const spec = ensure(object, "spec");
  const { name, uid, groups, extra } = context.user;
  spec.username = name;
  if (uid === undefined) delete spec.uid;
  else spec.uid = uid;
  spec.groups = [...groups];
  if (extra === undefined) delete spec.extra;
  else spec.extra = Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]));
}

const pemRequest = /-----BEGIN (NEW )?CERTIFICATE REQUEST-----/;

const signingRequest: KindRules = {
  prepareCreate: requester,
  prepareUpdate(object, old) {
    object.spec = cloneJson(old.spec);
  },
  prepareSubresource(object, old) {
    const conditions = at(object, "status", "conditions");
    object.spec = cloneJson(old.spec);
    object.status = {
      ...cloneJson(child(old, "status") ?? {}),
      ...(conditions === undefined ? {} : { conditions }),
    };
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    const body = Buffer.from(text(spec, "request"), "base64").toString("latin1");
    if (!pemRequest.test(body)) {
      errors.push(
        invalid("spec.request", "<contents redacted>", "PEM block type must be CERTIFICATE REQUEST"),
      );
    }
    if (texts(spec, "usages").length === 0) errors.push(required("spec.usages"));
    const signer = text(spec, "signerName");
    if (signer !== "" && !/^[^/]+\.[^/]+\/.+$/.test(signer)) {
      errors.push(
        invalid(
          "spec.signerName",
          signer,
          'must be a fully qualified domain and path of the form "example.com/signer-name"',
        ),
      );
    }
    if (has(spec, "expirationSeconds") && number(spec, "expirationSeconds") < 600) {
      errors.push(
        invalid(
          "spec.expirationSeconds",
          number(spec, "expirationSeconds"),
          "may not specify a duration less than 600 seconds (10 minutes)",
        ),
      );
    }
    const types = new Set(items(object, "status", "conditions").map((condition) => text(condition, "type")));
    if (types.has("Approved") && types.has("Denied")) {
      errors.push(
        invalid("status.conditions", "Denied", "Approved and Denied conditions are mutually exclusive"),
      );
    }
    return errors;
  },
};

const flowSchema: KindRules = {
  generation: true,
  defaults(object) {
    const spec = ensure(object, "spec");
    if (number(spec, "matchingPrecedence") === 0) spec.matchingPrecedence = 1000;
  },
  validate(object) {
    const errors: FieldError[] = [];
    const precedence = number(object, "spec", "matchingPrecedence");
    if (precedence < 1 || precedence > 10_000) {
      errors.push(
        invalid(
          "spec.matchingPrecedence",
          precedence,
          precedence < 1 ? "must be a positive value" : "must not be greater than 10000",
        ),
      );
    }
    if (precedence === 1 && text(object, "metadata", "name") !== "exempt") {
      errors.push(
        invalid("spec.matchingPrecedence", 1, "only the schema named 'exempt' may have matchingPrecedence 1"),
      );
    }
    return errors;
  },
};

const priorityLevel: KindRules = {
  generation: true,
  defaults(object) {
    const limited = child(object, "spec", "limited");
    if (limited !== undefined) {
      setDefaults(limited, { nominalConcurrencyShares: 30, lendablePercent: 0 });
      const queuing = child(limited, "limitResponse", "queuing");
      if (queuing !== undefined) {
        for (const [key, value] of [
          ["queues", 64],
          ["handSize", 8],
          ["queueLengthLimit", 50],
        ] as const) {
          if (number(queuing, key) === 0) queuing[key] = value;
        }
      }
    }
    const exempt = child(object, "spec", "exempt");
    if (exempt !== undefined) setDefaults(exempt, { nominalConcurrencyShares: 0, lendablePercent: 0 });
  },
  validate(object) {
    const errors: FieldError[] = [];
    const type = text(object, "spec", "type");
    if (type === "Limited" && !has(object, "spec", "limited")) {
      errors.push(required("spec.limited", "must not be empty when type is Limited"));
    }
    if (type === "Exempt" && has(object, "spec", "limited")) {
      errors.push(forbidden("spec.limited", "must be nil if the type is not Limited"));
    }
    return errors;
  },
};

const apiService: KindRules = {
  defaults(object) {
    const service = child(object, "spec", "service");
    if (service !== undefined) setDefaults(service, { port: 443 });
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    const [group, version] = [text(spec, "group"), text(spec, "version")];
    const name = `${version}.${group}`;
    if (text(object, "metadata", "name") !== name) {
      errors.push(
        invalid(
          "metadata.name",
          text(object, "metadata", "name"),
          `must be \`spec.version+"."+spec.group\`: "${name}"`,
        ),
      );
    }
    if (group !== "") dnsName(group, "subdomain", "spec.group", errors);
    if (version === "") errors.push(required("spec.version"));
    else dnsName(version, "dns1035", "spec.version", errors);
    for (const [key, most] of [
      ["groupPriorityMinimum", 20_000],
      ["versionPriority", 1000],
    ] as const) {
      const value = number(spec, key);
      if (value <= 0 || value > most)
        errors.push(invalid(`spec.${key}`, value, `must be positive and less than ${most}`));
    }
    const local = !has(spec, "service");
    if (local && (text(spec, "caBundle") !== "" || isTrue(spec, "insecureSkipTLSVerify"))) {
      errors.push(
        invalid("spec.caBundle", "<contents redacted>", "local APIServices may not have a caBundle"),
      );
    }
    if (!local) {
      for (const key of ["namespace", "name"])
        if (text(spec, "service", key) === "") errors.push(required(`spec.service.${key}`));
      checkClientConfig({ service: child(spec, "service") }, "spec", errors);
      if (isTrue(spec, "insecureSkipTLSVerify") && text(spec, "caBundle") !== "") {
        errors.push(invalid("spec.insecureSkipTLSVerify", true, "may not be true if caBundle is present"));
      }
    }
    return errors;
  },
};

function deviceRequestDefaults(spec: JsonObject | undefined): void {
  for (const request of items(spec, "devices", "requests")) {
    const exact = child(request, "exactly");
    for (const part of [...(exact === undefined ? [] : [exact]), ...items(request, "firstAvailable")]) {
      setDefaults(part, { allocationMode: "ExactCount" });
      if (part.allocationMode === "ExactCount" && number(part, "count") === 0) part.count = 1;
    }
  }
}

/** Rules of the kinds that describe a cluster. */
export const clusterRules: RuleTable = {
  "v1/Node": node,
  "v1/ResourceQuota": quota,
  "v1/LimitRange": { defaults: limitDefaults, validate: checkLimits },
  "v1/Event": coreEvent,
  "events.k8s.io/v1/Event": event,
  "scheduling.k8s.io/v1/PriorityClass": priorityClass,
  "coordination.k8s.io/v1/Lease": lease,
  "node.k8s.io/v1/RuntimeClass": {
    validate(object) {
      const errors: FieldError[] = [];
      const handler = text(object, "handler");
      if (handler !== "") dnsName(handler, "label", "handler", errors);
      return errors;
    },
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["handler"], equalJson, errors);
      return errors;
    },
  },
  "certificates.k8s.io/v1/CertificateSigningRequest": signingRequest,
  "flowcontrol.apiserver.k8s.io/v1/FlowSchema": flowSchema,
  "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": priorityLevel,
  "apiregistration.k8s.io/v1/APIService": apiService,
  "resource.k8s.io/v1/ResourceClaim": {
    defaults: (object) => deviceRequestDefaults(child(object, "spec")),
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["spec"], equalJson, errors);
      return errors;
    },
  },
  "resource.k8s.io/v1/ResourceClaimTemplate": {
    defaults: (object) => deviceRequestDefaults(child(object, "spec", "spec")),
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["spec"], equalJson, errors);
      return errors;
    },
  },
  "resource.k8s.io/v1/ResourceSlice": { generation: true },
  "resource.k8s.io/v1/DeviceClass": { generation: true },
};
