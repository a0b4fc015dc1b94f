/**
 * The review kinds: questions about access and identity, answered and never stored.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { AccessAttributes, Authenticator, UserInfo } from "../contract.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { answerForm, sendObject } from "../registry/answer.ts";
import type { SpecialHandler } from "../registry/handler.ts";
import { readWriteBody } from "../registry/write-body.ts";
import { apiVersionOf } from "../registry/resource-store.ts";
import type { FieldError, ResourceDefinition } from "../resource.ts";
import { plainText } from "../schema/json-value.ts";
import { badRequest, invalid } from "../status/status.ts";
import type { Access } from "./access.ts";
import { authenticatedGroup, withGroup } from "./identity.ts";
import type { Rbac } from "./rbac.ts";

/** What reviews ask. */
export interface ReviewSources {
  readonly access: Access;
  readonly rbac: Rbac | undefined;
  readonly authenticators: readonly Authenticator[];
  readonly now: () => number;
}

/** Handlers by `<resource>.<group>`. */
export function reviewHandlers(sources: ReviewSources): ReadonlyMap<string, SpecialHandler> {
  const answer =
    (
      make: (body: JsonObject, context: RequestContext, resource: ResourceDefinition) => Promise<JsonObject>,
    ): SpecialHandler =>
    async (context, resource) => {
      const form = answerForm(context, resource, false);
      const { value } = await readWriteBody(context, resource);
      if (value["kind"] !== undefined && value["kind"] !== resource.kind)
        throw badRequest(`the body must be a ${resource.kind}`);
      const status = await make(value, context, resource);
      const object = {
        kind: resource.kind,
        apiVersion: apiVersionOf(resource),
        metadata: isObject(value["metadata"]) ? value["metadata"] : {},
        ...(value["spec"] === undefined ? {} : { spec: value["spec"] }),
        status,
      };
      return sendObject(context, resource, form, 201, object, sources.now());
    };
  return new Map([
    [
      "selfsubjectaccessreviews.authorization.k8s.io",
      answer((body, context, resource) => review(sources, resource, body, context.user)),
    ],
    [
      "subjectaccessreviews.authorization.k8s.io",
      answer((body, _context, resource) => review(sources, resource, body, subjectOf(resource, body))),
    ],
    [
      "localsubjectaccessreviews.authorization.k8s.io",
      answer((body, context, resource) => {
        const spec = isObject(body["spec"]) ? body["spec"] : {};
        const attributes = isObject(spec["resourceAttributes"]) ? spec["resourceAttributes"] : {};
        if (attributes["namespace"] !== context.info.namespace) {
          throw badRequest(
            `spec.resourceAttributes.namespace must match namespace: ${JSON.stringify(context.info.namespace)}`,
          );
        }
        return review(sources, resource, body, subjectOf(resource, body));
      }),
    ],
    [
      "selfsubjectrulesreviews.authorization.k8s.io",
      answer((body, context, resource) => rulesReview(sources, resource, body, context.user)),
    ],
    [
      "selfsubjectreviews.authentication.k8s.io",
      answer((_body, context) => Promise.resolve({ userInfo: shown(context.user) })),
    ],
    ["tokenreviews.authentication.k8s.io", answer((body, context) => tokenReview(sources, body, context))],
  ]);
}

function text(object: JsonObject, key: string): string {
  return typeof object[key] === "string" ? object[key] : "";
}

function required(
  resource: ResourceDefinition,
  field: string,
  message: string,
  reason: FieldError["reason"] = "FieldValueInvalid",
): never {
  throw invalid(resource, "", [{ reason, field, message }]);
}

function attributesFrom(resource: ResourceDefinition, body: JsonObject, user: UserInfo): AccessAttributes {
  const spec = isObject(body["spec"]) ? body["spec"] : {};
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (isObject(resourceAttributes) === isObject(nonResourceAttributes)) {
    const why = isObject(resourceAttributes)
      ? 'Invalid value: "": cannot be specified in combination with resourceAttributes'
      : "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
    return required(
      resource,
      isObject(resourceAttributes) ? "spec.nonResourceAttributes" : "spec.resourceAttributes",
      why,
    );
  }
  if (isObject(nonResourceAttributes))
    return { user, verb: text(nonResourceAttributes, "verb"), path: text(nonResourceAttributes, "path") };
  const asked = isObject(resourceAttributes) ? resourceAttributes : {};
  const subresource = text(asked, "subresource");
  const namespace = text(asked, "namespace");
  const name = text(asked, "name");
  return {
    user,
    verb: text(asked, "verb"),
    resource: {
      group: text(asked, "group"),
      version: text(asked, "version"),
      resource: text(asked, "resource"),
      ...(subresource === "" ? {} : { subresource }),
      ...(namespace === "" ? {} : { namespace }),
      ...(name === "" ? {} : { name }),
    },
  };
}

async function review(
  { access }: ReviewSources,
  resource: ResourceDefinition,
  body: JsonObject,
  user: UserInfo,
): Promise<JsonObject> {
  const { decision, reason } = await access.authorize(attributesFrom(resource, body, user));
  return {
    allowed: decision === "allow",
    ...(decision === "deny" ? { denied: true } : {}),
    ...(reason === "" ? {} : { reason }),
  };
}

function textLists(value: unknown): Record<string, readonly string[]> {
  const out: Record<string, readonly string[]> = {};
  if (isObject(value))
    for (const [key, item] of Object.entries(value)) if (Array.isArray(item)) out[key] = item.map(plainText);
  return out;
}

function subjectOf(resource: ResourceDefinition, body: JsonObject): UserInfo {
  const spec = isObject(body["spec"]) ? body["spec"] : {};
  const name = text(spec, "user");
  const groups = Array.isArray(spec["groups"]) ? spec["groups"].map(plainText) : [];
  if (name === "" && groups.length === 0)
    required(resource, "spec.user", 'Invalid value: "": at least one of user or group must be specified');
  const uid = text(spec, "uid");
  return { name, groups, ...(uid === "" ? {} : { uid }), extra: textLists(spec["extra"]) };
}

async function rulesReview(
  { access, rbac }: ReviewSources,
  resource: ResourceDefinition,
  body: JsonObject,
  user: UserInfo,
): Promise<JsonObject> {
  const spec = isObject(body["spec"]) ? body["spec"] : {};
  const namespace = text(spec, "namespace");
  if (namespace === "")
    required(resource, "spec.namespace", "Required value: namespace is required", "FieldValueRequired");
  if (access.allowsEverything(user)) {
    return {
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
      nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      incomplete: false,
    };
  }
  const held = (await rbac?.rulesFor(user, namespace)) ?? { rules: [], notes: [] };
  return {
    resourceRules: held.rules
      .filter(({ resources }) => resources.length > 0)
      .map(({ verbs, apiGroups, resources, resourceNames }) => ({
        verbs,
        apiGroups,
        resources,
        ...(resourceNames.length > 0 ? { resourceNames } : {}),
      })),
    nonResourceRules: held.rules
      .filter(({ nonResourceURLs }) => nonResourceURLs.length > 0)
      .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
    incomplete: held.notes.length > 0 || rbac === undefined,
    ...(held.notes.length > 0 ? { evaluationError: held.notes.join(", ") } : {}),
  };
}

/** A user as reviews show it. */
export function shown({ name, uid, groups, extra }: UserInfo): JsonObject {
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(extra === undefined || Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

async function tokenReview(
  { authenticators }: ReviewSources,
  body: JsonObject,
  context: RequestContext,
): Promise<JsonObject> {
  const spec = isObject(body["spec"]) ? body["spec"] : {};
  const bearer = text(spec, "token");
  if (bearer === "") throw badRequest("token is required for TokenReview in authentication");
  const audiences = Array.isArray(spec["audiences"]) ? spec["audiences"].map(plainText) : [];
  for (const authenticator of authenticators) {
    const user = await authenticator.authenticate({
      bearer,
      headers: {},
      address: context.request.address,
      ...(audiences.length > 0 ? { audiences } : {}),
    });
    if (user === "invalid") return { authenticated: false, error: "invalid bearer token" };
    if (user)
      return {
        authenticated: true,
        user: shown(withGroup(user, authenticatedGroup)),
        ...(audiences.length > 0 ? { audiences } : {}),
      };
  }
  return { authenticated: false, error: "the token is not known" };
}
