/**
 * Rules of the kinds that govern the API server itself: flow control and aggregated APIs.
 */
import type { JsonObject } from "@kontinuum/std";
import type { FieldError } from "../../resource.ts";
import { forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { child, ensure, has, isTrue, items, number, setDefaults, text, texts } from "../read.ts";
import { checkClientConfig } from "./admission.ts";
import { dnsName, type Errors } from "./checks.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const flowVerbs = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "proxy",
  "update",
  "watch",
];

function checkVerbs(rule: JsonObject, path: string, errors: Errors): void {
  const verbs = texts(rule, "verbs");
  if (verbs.length === 0) errors.push(required(`${path}.verbs`, "verbs must contain at least one value"));
  else if (verbs.includes("*")) {
    if (verbs.length > 1)
      errors.push(invalid(`${path}.verbs`, verbs, "if '*' is present, must not specify other verbs"));
  } else if (!verbs.every((verb) => flowVerbs.includes(verb))) {
    errors.push(notSupported(`${path}.verbs`, verbs, flowVerbs));
  }
}

/** Checks one rule of a flow schema: whom and what it catches. */
function checkFlowRule(rule: JsonObject, path: string, errors: Errors): void {
  const subjects = items(rule, "subjects");
  if (subjects.length === 0)
    errors.push(required(`${path}.subjects`, "subjects must contain at least one value"));
  for (const [index, subject] of subjects.entries()) {
    const kind = text(subject, "kind");
    const key = kind.charAt(0).toLowerCase() + kind.slice(1);
    if (["user", "group", "serviceAccount"].includes(key) && !has(subject, key)) {
      errors.push(
        required(`${path}.subjects[${index}].${key}`, `${key} is required when subject kind is '${kind}'`),
      );
    }
  }
  for (const [index, resource] of items(rule, "resourceRules").entries()) {
    const here = `${path}.resourceRules[${index}]`;
    checkVerbs(resource, here, errors);
    for (const [key, what] of [
      ["apiGroups", "api group"],
      ["resources", "resource"],
    ] as const) {
      if (texts(resource, key).length === 0) {
        errors.push(required(`${here}.${key}`, `resource rules must supply at least one ${what}`));
      }
    }
    const namespaces = texts(resource, "namespaces");
    if (namespaces.length === 0 && !isTrue(resource, "clusterScope")) {
      errors.push(
        required(
          `${here}.namespaces`,
          "resource rules that are not cluster scoped must supply at least one namespace",
        ),
      );
    }
    for (const [position, namespace] of namespaces.entries()) {
      if (namespace !== "*") dnsName(namespace, "label", `${here}.namespaces[${position}]`, errors);
    }
    if (namespaces.includes("*") && namespaces.length > 1) {
      errors.push(
        invalid(`${here}.namespaces`, namespaces, "if '*' is present, must not specify other namespaces"),
      );
    }
  }
  for (const [index, other] of items(rule, "nonResourceRules").entries()) {
    const here = `${path}.nonResourceRules[${index}]`;
    checkVerbs(other, here, errors);
    const urls = texts(other, "nonResourceURLs");
    if (urls.length === 0) {
      errors.push(required(`${here}.nonResourceURLs`, "nonResourceURLs must contain at least one value"));
    }
    for (const [position, url] of urls.entries()) {
      const field = `${here}.nonResourceURLs[${position}]`;
      if (url === "") errors.push(invalid(field, url, "must not be empty"));
      else if (url !== "*" && !url.startsWith("/")) errors.push(invalid(field, url, "must start with slash"));
    }
  }
}

const flowSchema: KindRules = {
  statusKeeps: "metadata",
  generation: true,
  defaults(object) {
    const spec = ensure(object, "spec");
    if (number(spec, "matchingPrecedence") === 0) spec.matchingPrecedence = 1000;
  },
  validate(object) {
    const errors: FieldError[] = [];
    const level = text(object, "spec", "priorityLevelConfiguration", "name");
    if (level !== "") dnsName(level, "subdomain", "spec.priorityLevelConfiguration.name", errors);
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
    for (const [index, rule] of items(object, "spec", "rules").entries())
      checkFlowRule(rule, `spec.rules[${index}]`, errors);
    if (precedence === 1 && text(object, "metadata", "name") !== "exempt") {
      errors.push(
        invalid("spec.matchingPrecedence", 1, "only the schema named 'exempt' may have matchingPrecedence 1"),
      );
    }
    return errors;
  },
};

const priorityLevel: KindRules = {
  statusKeeps: "metadata",
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
    const response = child(object, "spec", "limited", "limitResponse");
    if (text(response, "type") === "Queue" && !has(response, "queuing")) {
      errors.push(
        required(
          "spec.limited.limitResponse.queuing",
          "must not be empty if limited.limitResponse.type is Limited",
        ),
      );
    }
    if (type === "Exempt" && has(object, "spec", "limited")) {
      errors.push(forbidden("spec.limited", "must be nil if the type is not Limited"));
    }
    return errors;
  },
};

const apiService: KindRules = {
  statusKeeps: "metadata",
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

/** Rules of flow control and aggregation. */
export const apiMachineryRules: RuleTable = {
  "flowcontrol.apiserver.k8s.io/v1/FlowSchema": flowSchema,
  "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": priorityLevel,
  "apiregistration.k8s.io/v1/APIService": apiService,
};
