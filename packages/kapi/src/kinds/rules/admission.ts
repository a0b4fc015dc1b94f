/**
 * Rules of webhook configurations and admission policies.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { expressionProblem, type ExpressionScope } from "../../admission/expression.ts";
import type { FieldError } from "../../resource.ts";
import { duplicate, forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { child, ensure, has, items, number, setDefaults, text, texts } from "../read.ts";
import { dnsName, labelKey, labelSelector, type Errors } from "./checks.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const group = "admissionregistration.k8s.io/v1";
const maxConditions = 64;

function webhookDefaults(object: JsonObject, mutating: boolean): void {
  for (const webhook of items(object, "webhooks")) {
    setDefaults(webhook, {
      failurePolicy: "Fail",
      matchPolicy: "Equivalent",
      namespaceSelector: {},
      objectSelector: {},
      timeoutSeconds: 10,
      ...(mutating ? { reinvocationPolicy: "Never" } : {}),
    });
    for (const rule of items(webhook, "rules")) setDefaults(rule, { scope: "*" });
    const service = child(webhook, "clientConfig", "service");
    if (service !== undefined) setDefaults(service, { port: 443 });
  }
}

/** Checks how a webhook is reached: by URL or by service. */
export function checkClientConfig(config: JsonObject | undefined, path: string, errors: Errors): void {
  const byUrl = has(config, "url");
  if (byUrl === has(config, "service")) {
    errors.push(required(path, "exactly one of url or service is required"));
    return;
  }
  if (byUrl) checkUrl(text(config, "url"), `${path}.url`, errors);
  else {
    const route = text(config, "service", "path");
    if (route !== "" && !route.startsWith("/")) {
      errors.push(invalid(`${path}.service.path`, route, "must start with a '/'"));
    }
    const port = number(config, "service", "port");
    if (port < 1 || port > 65_535)
      errors.push(
        invalid(`${path}.service.port`, port, "port is not valid: must be between 1 and 65535, inclusive"),
      );
  }
}

function checkUrl(value: string, path: string, errors: Errors): void {
  const form = "; desired format: https://host[/path]";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined) {
    errors.push(required(path, `url must be a valid URL: ${value}${form}`));
    return;
  }
  if (url.protocol !== "https:")
    errors.push(invalid(path, url.protocol.slice(0, -1), `'https' is the only allowed URL scheme${form}`));
  if (url.host === "") errors.push(invalid(path, url.host, `host must be specified${form}`));
  if (url.username !== "" || url.password !== "") {
    errors.push(invalid(path, "<redacted>", "user information is not permitted in the URL"));
  }
  if (url.hash !== "")
    errors.push(invalid(path, url.hash.slice(1), "fragments are not permitted in the URL"));
  if (url.search !== "")
    errors.push(invalid(path, url.search.slice(1), "query parameters are not permitted in the URL"));
}

function checkList(list: readonly string[], path: string, what: string, errors: Errors): void {
  if (list.length === 0) errors.push(required(path));
  for (const [index, item] of list.entries()) {
    if (item === "" && what !== "API groups") errors.push(required(`${path}[${index}]`));
  }
  if (list.includes("*") && list.length > 1) {
    errors.push(invalid(path, list, `if '*' is present, must not specify other ${what}`));
  }
}

function checkRules(rules: readonly JsonObject[], path: string, errors: Errors): void {
  for (const [index, rule] of rules.entries()) {
    const here = `${path}[${index}]`;
    checkList(texts(rule, "operations"), `${here}.operations`, "operations", errors);
    checkList(texts(rule, "apiGroups"), `${here}.apiGroups`, "API groups", errors);
    checkList(texts(rule, "apiVersions"), `${here}.apiVersions`, "API versions", errors);
    const resources = texts(rule, "resources");
    if (resources.length === 0) errors.push(required(`${here}.resources`));
    for (const [position, resource] of resources.entries()) {
      if (resource === "") errors.push(required(`${here}.resources[${position}]`));
    }
    if (
      resources.length > 1 &&
      (resources.includes("*/*") ||
        (resources.includes("*") && resources.some((name) => !name.includes("/") && name !== "*")))
    ) {
      errors.push(
        invalid(
          `${here}.resources`,
          resources,
          "if '*' is present, must not specify other resources without subresources",
        ),
      );
    }
  }
}

/** Checks that an expression compiles and gives what it must. */
function checkExpression(
  object: JsonObject,
  key: string,
  path: string,
  scope: ExpressionScope,
  result: "bool" | "string" | undefined,
  errors: Errors,
): void {
  const source = text(object, key).trim();
  if (source === "") return;
  const why = expressionProblem(source, scope, result);
  if (why !== undefined) errors.push(invalid(`${path}.${key}`, text(object, key), why));
}

function checkConditions(
  conditions: readonly JsonObject[],
  path: string,
  scope: ExpressionScope,
  errors: Errors,
): void {
  if (conditions.length > maxConditions) {
    errors.push({
      reason: "FieldValueTooMany",
      field: path,
      message: `Too many: ${conditions.length}: must have at most ${maxConditions} items`,
    });
  }
  const names = new Set<string>();
  for (const [index, condition] of conditions.entries()) {
    const name = text(condition, "name");
    checkExpression(condition, "expression", `${path}[${index}]`, scope, "bool", errors);
    if (name === "") continue;
    labelKey(name, `${path}[${index}].name`, errors);
    if (names.has(name)) errors.push(duplicate(`${path}[${index}].name`, name));
    names.add(name);
  }
}

function checkWebhooks(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [index, webhook] of items(object, "webhooks").entries()) {
    const here = `webhooks[${index}]`;
    const name = text(webhook, "name");
    if (name !== "") {
      dnsName(name, "subdomain", `${here}.name`, errors);
      if (name.split(".").length < 3) {
        errors.push(
          invalid(`${here}.name`, name, "should be a domain with at least three segments separated by dots"),
        );
      }
      if (names.has(name)) errors.push(duplicate(`${here}.name`, name));
      names.add(name);
    }
    const effects = text(webhook, "sideEffects");
    if (effects !== "" && effects !== "None" && effects !== "NoneOnDryRun") {
      errors.push(notSupported(`${here}.sideEffects`, effects, ["None", "NoneOnDryRun"]));
    }
    const versions = texts(webhook, "admissionReviewVersions");
    if (versions.length === 0)
      errors.push(required(`${here}.admissionReviewVersions`, "must specify one of v1, v1beta1"));
    else if (!versions.includes("v1") && !versions.includes("v1beta1")) {
      errors.push(
        invalid(`${here}.admissionReviewVersions`, versions, "must include at least one of v1, v1beta1"),
      );
    }
    for (const [position, version] of versions.entries()) {
      if (versions.indexOf(version) < position) {
        errors.push(invalid(`${here}.admissionReviewVersions[${position}]`, version, "duplicate version"));
      }
    }
    const seconds = number(webhook, "timeoutSeconds");
    if (seconds < 1 || seconds > 30) {
      errors.push(
        invalid(`${here}.timeoutSeconds`, seconds, "the timeout value must be between 1 and 30 seconds"),
      );
    }
    labelSelector(child(webhook, "namespaceSelector"), `${here}.namespaceSelector`, errors);
    labelSelector(child(webhook, "objectSelector"), `${here}.objectSelector`, errors);
    checkRules(items(webhook, "rules"), `${here}.rules`, errors);
    checkConditions(items(webhook, "matchConditions"), `${here}.matchConditions`, { params: false }, errors);
    checkClientConfig(child(webhook, "clientConfig"), `${here}.clientConfig`, errors);
  }
  return errors;
}

const webhooks = (mutating: boolean): KindRules => ({
  generation: true,
  defaults: (object) => webhookDefaults(object, mutating),
  validate: checkWebhooks,
});

function matchDefaults(match: JsonObject | undefined): void {
  if (match === undefined) return;
  setDefaults(match, { matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {} });
  for (const key of ["resourceRules", "excludeResourceRules"]) {
    for (const rule of items(match, key)) setDefaults(rule, { scope: "*" });
  }
}

function checkMatch(match: JsonObject | undefined, path: string, errors: Errors): void {
  labelSelector(child(match, "namespaceSelector"), `${path}.namespaceSelector`, errors);
  labelSelector(child(match, "objectSelector"), `${path}.objectSelector`, errors);
  for (const key of ["resourceRules", "excludeResourceRules"])
    checkRules(items(match, key), `${path}.${key}`, errors);
}

const policy: KindRules = {
  statusKeeps: "metadata",
  generation: true,
  defaults(object) {
    const spec = ensure(object, "spec");
    setDefaults(spec, { failurePolicy: "Fail" });
    matchDefaults(child(spec, "matchConstraints"));
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    const match = child(spec, "matchConstraints");
    if (match === undefined) errors.push(required("spec.matchConstraints"));
    else if (items(match, "resourceRules").length === 0)
      errors.push(required("spec.matchConstraints.resourceRules"));
    checkMatch(match, "spec.matchConstraints", errors);
    const params = has(spec, "paramKind");
    checkConditions(items(spec, "matchConditions"), "spec.matchConditions", { params }, errors);
    if (items(spec, "validations").length === 0 && items(spec, "auditAnnotations").length === 0) {
      const why = "validations or auditAnnotations must be non-empty";
      errors.push(required("spec.validations", why), required("spec.auditAnnotations", why));
    }
    const variables: string[] = [];
    for (const [index, variable] of items(spec, "variables").entries()) {
      const here = `spec.variables[${index}]`;
      const name = text(variable, "name");
      if (name !== "" && !/^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name))
        errors.push(invalid(`${here}.name`, name, "name is not a valid CEL identifier"));
      if (variables.includes(name)) errors.push(duplicate(`${here}.name`, name));
      // A variable sees those declared before it.
      checkExpression(variable, "expression", here, { params, variables }, undefined, errors);
      variables.push(name);
    }
    const scope = { params, variables };
    for (const [index, annotation] of items(spec, "auditAnnotations").entries())
      checkExpression(
        annotation,
        "valueExpression",
        `spec.auditAnnotations[${index}]`,
        scope,
        "string",
        errors,
      );
    for (const [index, validation] of items(spec, "validations").entries()) {
      const here = `spec.validations[${index}]`;
      checkExpression(validation, "expression", here, scope, "bool", errors);
      checkExpression(validation, "messageExpression", here, scope, "string", errors);
      const message = text(validation, "message");
      if (/[\r\n]/.test(message))
        errors.push(
          invalid(`spec.validations[${index}].message`, message, "message must not contain line breaks"),
        );
      const reason = text(validation, "reason");
      const reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
      if (reason !== "" && !reasons.includes(reason))
        errors.push(notSupported(`spec.validations[${index}].reason`, reason, reasons));
    }
    return errors;
  },
};

const policyBinding: KindRules = {
  generation: true,
  defaults: (object) => matchDefaults(child(object, "spec", "matchResources")),
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    const policyName = text(spec, "policyName");
    if (policyName === "") errors.push(required("spec.policyName"));
    else dnsName(policyName, "subdomain", "spec.policyName", errors);
    const reference = child(spec, "paramRef");
    if (reference !== undefined) {
      const named = text(reference, "name") !== "";
      if (named === has(reference, "selector")) {
        errors.push(
          named
            ? forbidden("spec.paramRef.name", "name and selector are mutually exclusive")
            : required("spec.paramRef", "one of name or selector must be specified"),
        );
      }
      if (at(reference, "parameterNotFoundAction") === undefined)
        errors.push(required("spec.paramRef.parameterNotFoundAction"));
    }
    const actions = texts(spec, "validationActions");
    if (actions.length === 0)
      errors.push(required("spec.validationActions", "at least one validation action is required"));
    if (actions.includes("Deny") && actions.includes("Warn")) {
      errors.push(
        invalid(
          "spec.validationActions",
          actions,
          "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        ),
      );
    }
    if (new Set(actions).size !== actions.length) errors.push(duplicate("spec.validationActions", actions));
    checkMatch(child(spec, "matchResources"), "spec.matchResources", errors);
    return errors;
  },
};

/** Rules of admission kinds. */
export const admissionRules: RuleTable = {
  [`${group}/MutatingWebhookConfiguration`]: webhooks(true),
  [`${group}/ValidatingWebhookConfiguration`]: webhooks(false),
  [`${group}/ValidatingAdmissionPolicy`]: policy,
  [`${group}/ValidatingAdmissionPolicyBinding`]: policyBinding,
};
