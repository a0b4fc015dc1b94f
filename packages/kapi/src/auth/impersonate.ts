/**
 * Acting as somebody else (`Impersonate-…` headers), which needs the right to do so for every part of the identity.
 */
import type { AccessAttributes, Authorizer, UserInfo } from "../contract.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { badRequest } from "../status/status.ts";
import { header, headerValues } from "../wire/request.ts";
import { accessDenied } from "./access.ts";
import { authenticatedGroup } from "./identity.ts";
import { decodeKey } from "./authenticators.ts";

const extraPrefix = "impersonate-extra-";
/** Values of one identity at most. */
const maxValues = 500;

/** Replaces the context's user when it asks to. Fails with 400 and 403. */
export async function impersonate(access: Authorizer, context: RequestContext): Promise<void> {
  const { request } = context;
  const name = header(request, "impersonate-user") ?? "";
  const uid = header(request, "impersonate-uid");
  const groups = headerValues(request, "impersonate-group")
    .flatMap((value) => value.split(/,\s*/))
    .filter((group) => group !== "");
  const extra: Record<string, string[]> = {};
  for (const key of Object.keys(request.headers)) {
    if (!key.startsWith(extraPrefix)) continue;
    extra[decodeKey(key.slice(extraPrefix.length)).toLowerCase()] = headerValues(request, key).flatMap(
      (value) => value.split(/,\s*/),
    );
  }
  if (name === "") {
    if (uid === undefined && groups.length === 0 && Object.keys(extra).length === 0) return;
    throw badRequest("requested impersonation without impersonating a user");
  }
  const total = groups.length + Object.values(extra).reduce((sum, values) => sum + values.length, 0);
  if (total > maxValues)
    throw badRequest(`an impersonated identity holds at most ${maxValues} groups and extra values`);
  const ask = async (resource: NonNullable<AccessAttributes["resource"]>): Promise<void> => {
    const attributes: AccessAttributes = { user: context.user, verb: "impersonate", resource };
    const { decision } = await access.authorize(attributes);
    if (decision !== "allow") throw accessDenied(attributes, "");
  };
  const account = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(name);
  if (account?.[1] && account[2]) {
    await ask({
      group: "",
      version: "v1",
      resource: "serviceaccounts",
      namespace: account[1],
      name: account[2],
    });
  } else await ask({ group: "", version: "v1", resource: "users", name });
  for (const group of groups) await ask({ group: "", version: "v1", resource: "groups", name: group });
  if (uid !== undefined)
    await ask({ group: "authentication.k8s.io", version: "v1", resource: "uids", name: uid });
  for (const [key, values] of Object.entries(extra)) {
    for (const value of values) {
      await ask({
        group: "authentication.k8s.io",
        version: "v1",
        resource: "userextras",
        subresource: key,
        name: value,
      });
    }
  }
  const implied = account?.[1] ? ["system:serviceaccounts", `system:serviceaccounts:${account[1]}`] : [];
  const all = groups.length > 0 ? groups : implied;
  const anonymous = name === "system:anonymous";
  const user: UserInfo = {
    name,
    ...(uid === undefined ? {} : { uid }),
    groups: [...new Set([...all, anonymous ? "system:unauthenticated" : authenticatedGroup])],
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
  };
  context.impersonator = context.user;
  context.user = user;
}
