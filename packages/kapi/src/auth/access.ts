/**
 * Who may do what: the chain of authorizers and the texts of a refusal.
 */
import type { AccessAttributes, Authorizer, Decision, UserInfo } from "../contract.ts";
import type { RequestInfo } from "../pipeline/request-info.ts";
import { StatusError } from "../status/status.ts";
import { mastersGroup } from "./identity.ts";

/** Asks authorizers in order; the first allow or deny counts, and nobody's opinion is a denial. */
export class Access implements Authorizer {
  readonly #authorizers: readonly Authorizer[];

  constructor(authorizers: readonly Authorizer[]) {
    this.#authorizers = authorizers;
  }

  /** Whether nothing a user may ask is ever refused: its group, or a server without any authorization, says so. */
  allowsEverything(user: UserInfo): boolean {
    return user.groups.includes(mastersGroup) || this.#authorizers[0] === allowAll;
  }

  async authorize(attributes: AccessAttributes): Promise<Decision> {
    if (attributes.user.groups.includes(mastersGroup)) return { decision: "allow", reason: "" };
    const reasons: string[] = [];
    for (const authorizer of this.#authorizers) {
      const answer = await authorizer.authorize(attributes);
      if (answer.decision !== "noOpinion") return answer;
      if (answer.reason !== "") reasons.push(answer.reason);
    }
    return { decision: "noOpinion", reason: reasons.join("; ") };
  }
}

/** What a request wants, as authorizers see it. */
export function attributesOf(user: UserInfo, info: RequestInfo, verb: string = info.verb): AccessAttributes {
  if (!info.isResource) return { user, verb, path: info.path };
  const { group, version, resource, subresource, namespace, name } = info;
  return {
    user,
    verb,
    resource: {
      group,
      version,
      resource,
      ...(subresource === "" ? {} : { subresource }),
      ...(namespace === "" ? {} : { namespace }),
      ...(name === "" ? {} : { name }),
    },
  };
}

/** 403 for refused attributes, in the words clients know. */
export function accessDenied(attributes: AccessAttributes, reason: string): StatusError {
  const { user, verb, resource, path } = attributes;
  const who = `User ${JSON.stringify(user.name)}`;
  const why = reason === "" ? "" : `: ${reason}`;
  if (!resource) {
    return new StatusError(
      403,
      "Forbidden",
      `forbidden: ${who} cannot ${verb} path ${JSON.stringify(path ?? "/")}${why}`,
      {},
    );
  }
  const { group, name = "", namespace, subresource } = resource;
  const full = subresource ? `${resource.resource}/${subresource}` : resource.resource;
  const qualified = group === "" ? resource.resource : `${resource.resource}.${group}`;
  const subject = name === "" ? qualified : `${qualified} ${JSON.stringify(name)}`;
  const place =
    namespace === undefined ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  const message = `${subject} is forbidden: ${who} cannot ${verb} resource ${JSON.stringify(full)} in API group ${JSON.stringify(group)} ${place}${why}`;
  return new StatusError(403, "Forbidden", message, {
    ...(name === "" ? {} : { name }),
    ...(group === "" ? {} : { group }),
    kind: resource.resource,
  });
}

/** Allows everything: for servers without any authorization. */
export const allowAll: Authorizer = { authorize: () => Promise.resolve({ decision: "allow", reason: "" }) };
