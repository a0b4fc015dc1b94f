/**
 * Admission webhooks: the configured servers that may change or refuse writes.
 *
 * Configurations come out of their watch caches, so a new one is in force with the event that brings it. Mutating
 * webhooks are asked one after another in the order of their configurations' names, validating ones all at once.
 */
import { isObject, messageOf, stringAt, type JsonObject } from "@kontinuum/std";
import { applyJsonPatch } from "../patch/index.ts";
import { equalJson } from "../json/json.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import { apiVersionOf } from "../registry/resource-store.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceDefinition } from "../resource.ts";
import { badRequest, internal, StatusError } from "../status/status.ts";
import { entryObject } from "../watch-cache/entry.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";
import { admissionExpression, admissionMeter, expressionValues } from "./expression.ts";
import {
  isAdmissionConfiguration,
  namespaceLabels,
  namespaceSelected,
  objectSelected,
  ruleMatches,
} from "./rules.ts";
import type { Authorizer } from "../contract.ts";
import { withAuthorizer } from "./authorizer.ts";
import { callWebhook, WebhookFailure, type WebhookAnswer, type WebhookCaller } from "./webhook-call.ts";

const group = "admissionregistration.k8s.io";

/** What the plug-in needs. */
export interface WebhookOptions {
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  readonly caller: WebhookCaller;
  readonly access: Authorizer;
  /** Reads a namespace. */
  namespace(name: string): Promise<JsonObject | undefined>;
}

/** A webhook that is to be asked, with the request in the version it understands. */
interface Match {
  readonly webhook: JsonObject;
  readonly name: string;
  readonly resource: ResourceDefinition;
}

/** The webhooks plug-in. */
export class Webhooks implements AdmissionPlugin {
  readonly name = "Webhooks";
  readonly #options: WebhookOptions;
  readonly #known = new Map<string, { readonly stamp: string; readonly webhooks: readonly JsonObject[] }>();

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  async mutate(request: AdmissionRequest): Promise<void> {
    const webhooks = await this.#webhooks("mutatingwebhookconfigurations");
    if (webhooks.length === 0 || isAdmissionConfiguration(request.resource)) return;
    const again: Match[] = [];
    const seen = new Map<Match, JsonObject | undefined>();
    for (const webhook of webhooks) {
      const match = await this.#match(webhook, request);
      if (!match) continue;
      await this.#mutateWith(match, request);
      seen.set(match, request.object);
      if (webhook["reinvocationPolicy"] === "IfNeeded") again.push(match);
    }
    // Once more for those after whom somebody else changed the object.
    for (const match of again)
      if (!equalJson(seen.get(match), request.object)) await this.#mutateWith(match, request);
  }

  async validate(request: AdmissionRequest): Promise<void> {
    const webhooks = await this.#webhooks("validatingwebhookconfigurations");
    if (webhooks.length === 0 || isAdmissionConfiguration(request.resource)) return;
    const matches: Match[] = [];
    for (const webhook of webhooks) {
      const match = await this.#match(webhook, request);
      if (match) matches.push(match);
    }
    const outcomes = await Promise.allSettled(matches.map((match) => this.#ask(match, request)));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  /** All webhooks of all configurations of a kind, in order. */
  async #webhooks(plural: string): Promise<readonly JsonObject[]> {
    const resource = this.#options.resources.get(group, "v1", plural);
    if (!resource) return [];
    const { cache } = this.#options.storage.of(resource);
    if (cache.revision === 0) await cache.load();
    const stamp = `${cache.loadedRevision}.${cache.lastChange}`;
    const known = this.#known.get(plural);
    if (known?.stamp === stamp) return known.webhooks;
    const webhooks = cache.list().flatMap((entry) => {
      const found = entry.error === undefined ? entryObject(entry)["webhooks"] : undefined;
      return Array.isArray(found) ? found.filter(isObject) : [];
    });
    this.#known.set(plural, { stamp, webhooks });
    return webhooks;
  }

  async #match(webhook: JsonObject, request: AdmissionRequest): Promise<Match | undefined> {
    const resource = this.#versionFor(webhook, request);
    if (!resource) return undefined;
    const labels = await namespaceLabels(request, (name) => this.#options.namespace(name));
    if (
      !namespaceSelected(webhook["namespaceSelector"], labels) ||
      !objectSelected(webhook["objectSelector"], request)
    )
      return undefined;
    const match: Match = { webhook, name: stringAt(webhook, "name") ?? "", resource };
    return (await this.#conditionsHold(match, request)) ? match : undefined;
  }

  /** The version of the resource that the webhook's rules name, if any. */
  #versionFor(
    webhook: JsonObject,
    { operation, resource, subresource }: AdmissionRequest,
  ): ResourceDefinition | undefined {
    const rules = Array.isArray(webhook["rules"]) ? webhook["rules"] : [];
    const named = (version: ResourceDefinition): boolean =>
      rules.some((rule) => ruleMatches(rule, operation, version, subresource));
    if (named(resource)) return resource;
    if (webhook["matchPolicy"] === "Exact") return undefined;
    return this.#options.resources.versions(resource.group, resource.plural).find(named);
  }

  async #conditionsHold({ webhook, name }: Match, request: AdmissionRequest): Promise<boolean> {
    const conditions = Array.isArray(webhook["matchConditions"]) ? webhook["matchConditions"] : [];
    if (conditions.length === 0) return true;
    const failure = await withAuthorizer(this.#options.access, request, (authorizer) => {
      const values = expressionValues(request, authorizer);
      const meter = admissionMeter();
      let first: unknown;
      for (const condition of conditions) {
        try {
          if (admissionExpression(stringAt(condition, "expression") ?? "").evaluate(values, meter) === false)
            return false;
        } catch (error) {
          first ??= error;
        }
      }
      return first;
    });
    if (failure === false) return false;
    if (failure === undefined) return true;
    if (webhook["failurePolicy"] === "Ignore") return false;
    throw new StatusError(
      403,
      "Forbidden",
      `admission webhook ${JSON.stringify(name)} could not decide whether it applies: ${messageOf(failure)}`,
    );
  }

  /** Asks one webhook; `undefined` when it failed and may be ignored. Refusals are thrown. */
  async #ask(match: Match, request: AdmissionRequest): Promise<WebhookAnswer | undefined> {
    const { webhook, name, resource } = match;
    const effects = webhook["sideEffects"];
    if (request.dryRun && effects !== "None" && effects !== "NoneOnDryRun") {
      throw badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
    }
    let answer: WebhookAnswer;
    try {
      answer = await callWebhook(this.#options.caller, webhook, await inVersion(request, resource));
    } catch (error) {
      if (webhook["failurePolicy"] === "Ignore" || request.housekeeping) {
        request.annotate(`failed-open.webhook.admission.k8s.io/${name}`, messageOf(error));
        return undefined;
      }
      const why = error instanceof WebhookFailure ? error.message : messageOf(error);
      throw internal(`failed calling webhook ${JSON.stringify(name)}: ${why}`, error);
    }
    for (const warning of answer.warnings) request.warn(warning);
    for (const [key, value] of Object.entries(answer.annotations)) request.annotate(`${name}/${key}`, value);
    if (answer.allowed) return answer;
    const text =
      answer.message !== ""
        ? `: ${answer.message}`
        : answer.reason !== ""
          ? `: ${answer.reason}`
          : " without explanation";
    const message = `admission webhook ${JSON.stringify(name)} denied the request${text}`;
    throw new StatusError(
      answer.code,
      answer.reason === "" && answer.code === 403 ? "Forbidden" : answer.reason,
      message,
    );
  }

  async #mutateWith(match: Match, request: AdmissionRequest): Promise<void> {
    const answer = await this.#ask(match, request);
    if (answer?.patch === undefined || !request.object) return;
    const { resource } = match;
    try {
      const shown = (await inVersion(request, resource)).object ?? {};
      const patched = applyJsonPatch(shown, answer.patch);
      request.object = await toVersion(patched, resource, request.resource);
    } catch (error) {
      if (match.webhook["failurePolicy"] === "Ignore") return;
      throw internal(
        `failed calling webhook ${JSON.stringify(match.name)}: the patch can't be applied: ${messageOf(error)}`,
        error,
      );
    }
  }
}

/** The request with its objects in another version of the resource. */
async function inVersion(request: AdmissionRequest, resource: ResourceDefinition): Promise<AdmissionRequest> {
  if (resource === request.resource) return request;
  const { object, oldObject } = request;
  return {
    ...request,
    resource,
    object: object && (await toVersion(object, request.resource, resource)),
    oldObject: oldObject && (await toVersion(oldObject, request.resource, resource)),
  };
}

async function toVersion(
  object: JsonObject,
  from: ResourceDefinition,
  to: ResourceDefinition,
): Promise<JsonObject> {
  if (from === to) return object;
  const apiVersion = apiVersionOf(to);
  const [converted] = (await to.convert?.([object], apiVersion)) ?? [];
  return converted ?? { ...object, apiVersion };
}
