/**
 * Checks of pod specs, in pods and in templates of workloads.
 */
import type { JsonObject } from "@kontinuum/std";
import { duplicate, forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { child, has, isTrue, items, number, text, texts } from "../read.ts";
import { labelValueErrors } from "../../registry/names.ts";
import { dnsName, labelKey, labelMap, labelSelector, labelValues, type Errors } from "./checks.ts";
import { checkContainers, checkEphemeralContainers } from "./container-validation.ts";
import { ipError, ipFamily } from "./network-address.ts";
import { checkVolumes } from "./volume-validation.ts";

/** Checks a pod spec at a path; `restartPolicies` narrows what a workload's template may say. */
export function checkPodSpec(spec: JsonObject | undefined, path: string, errors: Errors): void {
  const volumes = checkVolumes(items(spec, "volumes"), `${path}.volumes`, errors);
  checkContainers(spec, volumes, path, errors);
  checkEphemeralContainers(spec, volumes, path, errors);
  if (has(spec, "activeDeadlineSeconds")) {
    const seconds = number(spec, "activeDeadlineSeconds");
    if (seconds < 1 || seconds > 2_147_483_647) {
      errors.push(
        invalid(`${path}.activeDeadlineSeconds`, seconds, "must be between 1 and 2147483647, inclusive"),
      );
    }
  }
  for (const [key, rule] of [
    ["serviceAccountName", "subdomain"],
    ["nodeName", "subdomain"],
    ["hostname", "label"],
    ["subdomain", "label"],
    ["runtimeClassName", "subdomain"],
    ["priorityClassName", "subdomain"],
  ] as const) {
    const value = text(spec, key);
    if (value !== "") dnsName(value, rule, `${path}.${key}`, errors);
  }
  labelMap(child(spec, "nodeSelector"), `${path}.nodeSelector`, errors);
  checkTolerations(spec, path, errors);
  checkSpread(spec, path, errors);
  checkAffinity(child(spec, "affinity"), `${path}.affinity`, errors);
  checkDns(spec, path, errors);
  checkHosts(spec, path, errors);
  checkSecurity(child(spec, "securityContext"), `${path}.securityContext`, errors);
  if (isTrue(spec, "shareProcessNamespace") && isTrue(spec, "hostPID")) {
    errors.push(
      invalid(
        `${path}.securityContext.shareProcessNamespace`,
        true,
        "ShareProcessNamespace and HostPID cannot both be enabled",
      ),
    );
  }
}

function checkTolerations(spec: JsonObject | undefined, path: string, errors: Errors): void {
  for (const [index, toleration] of items(spec, "tolerations").entries()) {
    const here = `${path}.tolerations[${index}]`;
    const key = text(toleration, "key");
    const operator = text(toleration, "operator");
    const effect = text(toleration, "effect");
    if (key !== "") labelKey(key, `${here}.key`, errors);
    else if (operator !== "Exists") {
      errors.push(
        invalid(
          `${here}.operator`,
          operator,
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    }
    if (operator === "" || operator === "Equal")
      for (const why of labelValueErrors(text(toleration, "value")))
        errors.push(invalid(`${here}.operator`, text(toleration, "value"), why));
    if (has(toleration, "tolerationSeconds") && effect !== "NoExecute") {
      errors.push(
        invalid(`${here}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"),
      );
    }
    if (operator === "Exists") {
      if (text(toleration, "value") !== "") {
        errors.push(
          invalid(`${here}.operator`, toleration, "value must be empty when `operator` is 'Exists'"),
        );
      }
    } else if (operator !== "" && operator !== "Equal") {
      errors.push(notSupported(`${here}.operator`, operator, ["Equal", "Exists"]));
    }
    if (effect !== "" && !taintEffects.includes(effect)) {
      errors.push(notSupported(`${here}.effect`, effect, taintEffects));
    }
  }
}

const taintEffects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

function checkSpread(spec: JsonObject | undefined, path: string, errors: Errors): void {
  const seen = new Set<string>();
  for (const [index, constraint] of items(spec, "topologySpreadConstraints").entries()) {
    const here = `${path}.topologySpreadConstraints[${index}]`;
    const skew = number(constraint, "maxSkew");
    if (skew <= 0) errors.push(invalid(`${here}.maxSkew`, skew, "must be greater than zero"));
    const action = text(constraint, "whenUnsatisfiable");
    if (action !== "DoNotSchedule" && action !== "ScheduleAnyway") {
      errors.push(notSupported(`${here}.whenUnsatisfiable`, action, ["DoNotSchedule", "ScheduleAnyway"]));
    }
    if (has(constraint, "minDomains") && number(constraint, "minDomains") <= 0) {
      errors.push(
        invalid(`${here}.minDomains`, number(constraint, "minDomains"), "must be greater than zero"),
      );
    }
    const pair = `{${text(constraint, "topologyKey")}, ${action}}`;
    if (seen.has(pair)) errors.push(duplicate(`${here}.{topologyKey, whenUnsatisfiable}`, pair));
    seen.add(pair);
    labelSelector(child(constraint, "labelSelector"), `${here}.labelSelector`, errors);
  }
}

function checkAffinity(affinity: JsonObject | undefined, path: string, errors: Errors): void {
  const required_ = child(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
  if (required_ !== undefined) {
    const here = `${path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`;
    const terms = items(required_, "nodeSelectorTerms");
    if (terms.length === 0) {
      errors.push(required(`${here}.nodeSelectorTerms`, "must have at least one node selector term"));
    }
    for (const [index, term] of terms.entries()) {
      checkNodeTerm(term, `${here}.nodeSelectorTerms[${index}]`, errors);
    }
  }
  const preferred = items(affinity, "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution");
  for (const [index, item] of preferred.entries()) {
    const here = `${path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
    checkWeight(item, here, errors);
    checkNodeTerm(child(item, "preference") ?? {}, `${here}.preference`, errors);
  }
  for (const kind of ["podAffinity", "podAntiAffinity"]) {
    const hard = items(affinity, kind, "requiredDuringSchedulingIgnoredDuringExecution");
    for (const [index, term] of hard.entries()) {
      const here = `${path}.${kind}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`;
      checkPodTerm(term, here, errors);
    }
    const soft = items(affinity, kind, "preferredDuringSchedulingIgnoredDuringExecution");
    for (const [index, item] of soft.entries()) {
      const here = `${path}.${kind}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
      checkWeight(item, here, errors);
      checkPodTerm(child(item, "podAffinityTerm") ?? {}, `${here}.podAffinityTerm`, errors);
    }
  }
}

function checkWeight(item: JsonObject, path: string, errors: Errors): void {
  const weight = number(item, "weight");
  if (weight < 1 || weight > 100)
    errors.push(invalid(`${path}.weight`, weight, "must be in the range 1-100"));
}

const nodeOperators: ReadonlySet<string> = new Set(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);

/** Checks a node selector term. */
export function checkNodeTerm(term: JsonObject, path: string, errors: Errors): void {
  for (const [index, expression] of items(term, "matchExpressions").entries()) {
    const here = `${path}.matchExpressions[${index}]`;
    const operator = text(expression, "operator");
    const count = texts(expression, "values").length;
    if ((operator === "In" || operator === "NotIn") && count === 0) {
      errors.push(required(`${here}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if ((operator === "Exists" || operator === "DoesNotExist") && count > 0) {
      errors.push(
        forbidden(`${here}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      );
    } else if ((operator === "Gt" || operator === "Lt") && count !== 1) {
      errors.push(
        required(`${here}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"),
      );
    } else if (!nodeOperators.has(operator)) {
      errors.push(invalid(`${here}.operator`, operator, "not a valid selector operator"));
    }
    labelKey(text(expression, "key"), `${here}.key`, errors);
    if (operator === "In" || operator === "NotIn") {
      labelValues(texts(expression, "values"), `${here}.values`, errors);
    }
  }
}

function checkPodTerm(term: JsonObject, path: string, errors: Errors): void {
  labelSelector(child(term, "labelSelector"), `${path}.labelSelector`, errors);
  labelSelector(child(term, "namespaceSelector"), `${path}.namespaceSelector`, errors);
  for (const [index, namespace] of texts(term, "namespaces").entries()) {
    dnsName(namespace, "label", `${path}.namespaces[${index}]`, errors);
  }
  const key = text(term, "topologyKey");
  if (key !== "") labelKey(key, `${path}.topologyKey`, errors);
}

const searchDomain = /^[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*$/;
const searchDomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*')";

function checkDns(spec: JsonObject | undefined, path: string, errors: Errors): void {
  const servers = texts(spec, "dnsConfig", "nameservers");
  if (text(spec, "dnsPolicy") === "None") {
    if (!has(spec, "dnsConfig")) {
      errors.push(required(`${path}.dnsConfig`, "must provide `dnsConfig` when `dnsPolicy` is None"));
    } else if (servers.length === 0) {
      errors.push(
        required(
          `${path}.dnsConfig.nameservers`,
          "must provide at least one DNS nameserver when `dnsPolicy` is None",
        ),
      );
    }
  }
  for (const [index, server] of servers.entries()) {
    if (ipFamily(server) === undefined)
      errors.push(invalid(`${path}.dnsConfig.nameservers[${index}]`, server, ipError));
  }
  for (const [index, domain] of texts(spec, "dnsConfig", "searches").entries()) {
    const bare = domain.length > 1 ? domain.replace(/\.$/, "") : domain;
    if (bare !== "." && !searchDomain.test(bare))
      errors.push(invalid(`${path}.dnsConfig.searches[${index}]`, domain, searchDomainText));
  }
  for (const [index, option] of items(spec, "dnsConfig", "options").entries()) {
    if (text(option, "name") === "")
      errors.push(required(`${path}.dnsConfig.options[${index}]`, "must not be empty"));
  }
  if (servers.length > 3) {
    errors.push(invalid(`${path}.dnsConfig.nameservers`, servers, "must not have more than 3 nameservers"));
  }
}

function checkHosts(spec: JsonObject | undefined, path: string, errors: Errors): void {
  for (const [index, alias] of items(spec, "hostAliases").entries()) {
    const ip = text(alias, "ip");
    if (ipFamily(ip) === undefined) errors.push(invalid(`${path}.hostAliases[${index}].ip`, ip, ipError));
    for (const host of texts(alias, "hostnames")) {
      dnsName(host, "subdomain", `${path}.hostAliases[${index}].hostnames`, errors);
    }
  }
  for (const [index, gate] of items(spec, "readinessGates").entries()) {
    labelKey(text(gate, "conditionType"), `${path}.readinessGates[${index}].conditionType`, errors);
  }
}

const sysctl = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;

function checkSecurity(context: JsonObject | undefined, path: string, errors: Errors): void {
  const names = new Set<string>();
  for (const [index, { name }] of items(context, "sysctls").entries()) {
    const here = `${path}.sysctls[${index}].name`;
    if (typeof name !== "string" || name === "") continue;
    if (name.length > 253 || !sysctl.test(name)) {
      const form = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
      errors.push(invalid(here, name, `must have at most 253 characters and match regex ${form}`));
    } else if (names.has(name)) errors.push(duplicate(here, name));
    names.add(name);
  }
  for (const key of ["fsGroup", "runAsUser", "runAsGroup"]) {
    if (!has(context, key)) continue;
    const id = number(context, key);
    if (id < 0 || id > 2_147_483_647) {
      errors.push(invalid(`${path}.${key}`, id, "must be between 0 and 2147483647, inclusive"));
    }
  }
}
