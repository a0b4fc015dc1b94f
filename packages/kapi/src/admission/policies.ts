/**
 * Validating admission policies: CEL rules bound to requests (admissionregistration.k8s.io/v1).
 *
 * A policy without a binding does nothing. Bindings say where it holds, with which parameters, and whether a failure
 * denies, warns or is only recorded.
 */
import { at, isObject, messageOf, stringAt, type JsonObject } from "@kontinuum/std";
import type { Authorizer } from "../contract.ts";
import { EntryMap, type CelValue, type Meter } from "../cel/index.ts";
import { labelSelectorOf } from "../registry/label-selector.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import { forbidden, StatusError } from "../status/status.ts";
import { entryObject } from "../watch-cache/entry.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";
import { withAuthorizer } from "./authorizer.ts";
import {
  admissionExpression,
  admissionMeter,
  expressionValues,
  type ExpressionValues,
} from "./expression.ts";
import {
  isAdmissionConfiguration,
  namespaceLabels,
  namespaceSelected,
  objectSelected,
  ruleMatches,
} from "./rules.ts";

const group = "admissionregistration.k8s.io";
/** Parameter objects one binding may select. */
const maxParams = 100;

/** What the plug-in needs. */
export interface PolicyOptions {
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  readonly access: Authorizer;
  /** Reads a namespace. */
  namespace(name: string): Promise<JsonObject | undefined>;
}

interface Failure {
  readonly message: string;
  readonly reason: string;
}

/** The policies plug-in. */
export class ValidatingPolicies implements AdmissionPlugin {
  readonly name = "ValidatingAdmissionPolicy";
  readonly #options: PolicyOptions;
  readonly #known = new Map<string, { readonly stamp: string; readonly objects: readonly JsonObject[] }>();

  constructor(options: PolicyOptions) {
    this.#options = options;
  }

  async validate(request: AdmissionRequest): Promise<void> {
    if (isAdmissionConfiguration(request.resource)) return;
    const policies = await this.#objects("validatingadmissionpolicies");
    if (policies.length === 0) return;
    const bindings = await this.#objects("validatingadmissionpolicybindings");
    for (const binding of bindings) {
      const policy = policies.find(
        (other) => stringAt(other, "metadata", "name") === stringAt(binding, "spec", "policyName"),
      );
      if (policy) await this.#apply(policy, binding, request);
    }
  }

  async #objects(plural: string): Promise<readonly JsonObject[]> {
    const resource = this.#options.resources.get(group, "v1", plural);
    if (!resource) return [];
    const { cache } = this.#options.storage.of(resource);
    if (cache.revision === 0) await cache.load();
    const stamp = `${cache.loadedRevision}.${cache.lastChange}`;
    const known = this.#known.get(plural);
    if (known?.stamp === stamp) return known.objects;
    const objects = cache
      .list()
      .filter((entry) => entry.error === undefined)
      .map(entryObject);
    this.#known.set(plural, { stamp, objects });
    return objects;
  }

  async #matches(constraints: unknown, request: AdmissionRequest): Promise<boolean> {
    if (!isObject(constraints)) return true;
    const { operation, resource, subresource, name } = request;
    const versions =
      constraints["matchPolicy"] === "Exact"
        ? [resource]
        : this.#options.resources.versions(resource.group, resource.plural);
    const named = (rules: unknown): boolean =>
      Array.isArray(rules) &&
      rules.some((rule) =>
        versions.some((version) => ruleMatches(rule, operation, version, subresource, name)),
      );
    const rules = constraints["resourceRules"];
    if (Array.isArray(rules) && rules.length > 0 && !named(rules)) return false;
    if (named(constraints["excludeResourceRules"])) return false;
    const labels = await namespaceLabels(request, (namespace) => this.#options.namespace(namespace));
    return (
      namespaceSelected(constraints["namespaceSelector"], labels) &&
      objectSelected(constraints["objectSelector"], request)
    );
  }

  async #apply(policy: JsonObject, binding: JsonObject, request: AdmissionRequest): Promise<void> {
    if (!(await this.#matches(at(policy, "spec", "matchConstraints"), request))) return;
    if (!(await this.#matches(at(binding, "spec", "matchResources"), request))) return;
    const params = await this.#params(policy, binding, request);
    const namespace = request.resource.namespaced
      ? await this.#options.namespace(request.namespace)
      : undefined;
    for (const param of params) {
      const { failures, annotations } = await withAuthorizer(this.#options.access, request, (authorizer) =>
        evaluate(policy, expressionValues(request, authorizer, { params: param, namespace })),
      );
      for (const [key, value] of annotations) request.annotate(key, value);
      for (const failure of failures) report(policy, binding, request, failure);
    }
  }

  /** Parameter objects of a binding; one `undefined` when the policy takes none. */
  async #params(
    policy: JsonObject,
    binding: JsonObject,
    request: AdmissionRequest,
  ): Promise<readonly (JsonObject | undefined)[]> {
    const kind = at(policy, "spec", "paramKind");
    const reference = at(binding, "spec", "paramRef");
    if (!isObject(kind) || !isObject(reference)) return [undefined];
    const [groupName, version] = splitApiVersion(stringAt(kind, "apiVersion") ?? "");
    const resource = this.#options.resources.byKind(groupName, version, stringAt(kind, "kind") ?? "");
    const found: JsonObject[] = [];
    if (resource) {
      const store = this.#options.storage.of(resource);
      await store.cache.load();
      const namespace = resource.namespaced ? (stringAt(reference, "namespace") ?? request.namespace) : "";
      const name = stringAt(reference, "name");
      const selector = name === undefined ? labelSelectorOf(reference["selector"] ?? {}) : undefined;
      for (const entry of store.cache.list(store.scope(namespace))) {
        if (entry.error !== undefined || found.length >= maxParams) continue;
        if (selector ? selector.matches(entry.labels) : entry.name === name)
          found.push(await store.object(resource, entry));
      }
    }
    if (found.length > 0) return found;
    if (reference["parameterNotFoundAction"] === "Allow") return [];
    report(policy, binding, request, {
      message:
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
      reason: "Invalid",
    });
    return [];
  }
}

function splitApiVersion(apiVersion: string): [string, string] {
  const slash = apiVersion.indexOf("/");
  return slash === -1 ? ["", apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)];
}

function items(policy: JsonObject, field: string): readonly JsonObject[] {
  const list = at(policy, "spec", field);
  return Array.isArray(list) ? list.filter(isObject) : [];
}

/** What a policy says of a request. */
interface Verdict {
  readonly failures: readonly Failure[];
  /** For the audit record. */
  readonly annotations: readonly (readonly [string, string])[];
}

/** Failed validations of a policy; an expression that fails counts unless the policy ignores failures. */
function evaluate(policy: JsonObject, values: ExpressionValues): Verdict {
  const ignores = at(policy, "spec", "failurePolicy") === "Ignore";
  const meter = admissionMeter();
  const failures: Failure[] = [];
  try {
    for (const condition of items(policy, "matchConditions")) {
      if (run(stringAt(condition, "expression") ?? "", values, meter) === false)
        return { failures: [], annotations: [] };
    }
    const variables = new Map<string, CelValue>();
    let scope = values;
    for (const variable of items(policy, "variables")) {
      const name = stringAt(variable, "name") ?? "";
      try {
        variables.set(name, run(stringAt(variable, "expression") ?? "", scope, meter));
      } catch {
        // A variable that fails matters only to the expressions that use it: for them it is missing.
        continue;
      }
      scope = { ...scope, variables: new EntryMap([...variables]) };
    }
    for (const validation of items(policy, "validations")) {
      const source = stringAt(validation, "expression") ?? "";
      let message = "";
      try {
        if (run(source, scope, meter) === true) continue;
        message = messageFor(validation, scope, meter) ?? `failed expression: ${source.trim()}`;
      } catch (error) {
        if (ignores) continue;
        message = `expression '${source.trim()}' resulted in error: ${messageOf(error)}`;
      }
      failures.push({ message, reason: stringAt(validation, "reason") ?? "Invalid" });
    }
  } catch (error) {
    if (!ignores) failures.push({ message: messageOf(error), reason: "Invalid" });
  }
  const annotations: (readonly [string, string])[] = [];
  for (const annotation of items(policy, "auditAnnotations")) {
    try {
      const value = run(stringAt(annotation, "valueExpression") ?? "", values, meter);
      if (typeof value === "string")
        annotations.push([
          `${stringAt(policy, "metadata", "name") ?? ""}/${stringAt(annotation, "key") ?? ""}`,
          value,
        ]);
    } catch {
      // Annotations are for the record only.
    }
  }
  return { failures, annotations };
}

function messageFor(validation: JsonObject, values: ExpressionValues, meter: Meter): string | undefined {
  const expression = stringAt(validation, "messageExpression");
  if (expression !== undefined && expression !== "") {
    try {
      const text = run(expression, values, meter);
      if (typeof text === "string" && text.trim() !== "") return text.trim();
    } catch {
      // The fixed message is used instead.
    }
  }
  const message = stringAt(validation, "message");
  return message === undefined || message === "" ? undefined : message;
}

function run(source: string, values: ExpressionValues, meter: Meter): CelValue {
  return admissionExpression(source).evaluate(values, meter);
}

function report(
  policy: JsonObject,
  binding: JsonObject,
  request: AdmissionRequest,
  { message, reason }: Failure,
): void {
  const policyName = stringAt(policy, "metadata", "name") ?? "";
  const bindingName = stringAt(binding, "metadata", "name") ?? "";
  const actions = at(binding, "spec", "validationActions");
  const list = Array.isArray(actions) ? actions : ["Deny"];
  const title = `ValidatingAdmissionPolicy '${policyName}' with binding '${bindingName}'`;
  if (list.includes("Audit"))
    request.annotate("validation.policy.admission.k8s.io/validation_failure", `${policyName}: ${message}`);
  if (list.includes("Warn")) request.warn(`Validation failed for ${title}: ${message}`);
  if (!list.includes("Deny")) return;
  const { resource, name } = request;
  const text = `${title} denied request: ${message}`;
  const refusal = forbidden(resource, name, text);
  const codes: Readonly<Record<string, number>> = {
    Unauthorized: 401,
    Forbidden: 403,
    Invalid: 422,
    RequestEntityTooLarge: 413,
  };
  throw new StatusError(codes[reason] ?? 422, reason, refusal.message, {
    ...refusal.details,
    causes: [{ message: text }],
  });
}
