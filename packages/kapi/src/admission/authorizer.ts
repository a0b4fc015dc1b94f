/**
 * `authorizer` in admission expressions. Expressions run without waiting; authorizers may have to. So an expression is run
 * with the answers known so far, what it asked beyond them is answered, and it is run again until it asks nothing new.
 */
import {
  celAuthorizer,
  celRequestResource,
  CelError,
  type AuthorizerAnswer,
  type AuthorizerQuestion,
} from "../cel/index.ts";
import type { AccessAttributes, Authorizer, UserInfo } from "../contract.ts";
import { messageOf } from "@kontinuum/std";
import type { AdmissionRequest } from "./admission.ts";
import type { AuthorizerVariables } from "./expression.ts";

/** Most rounds of questions, and most questions, of one evaluation. */
const maxRounds = 10;
const maxQuestions = 100;

/**
 * Runs `evaluate`, which must have no effect but its result, with variables that ask `access` on behalf of the request's
 * user. Questions beyond the limit are evaluation errors.
 */
export async function withAuthorizer<T>(
  access: Authorizer,
  request: AdmissionRequest,
  evaluate: (variables: AuthorizerVariables) => T,
): Promise<T> {
  const answers = new Map<string, AuthorizerAnswer>();
  const open = new Map<string, AuthorizerQuestion>();
  const decide = (question: AuthorizerQuestion): AuthorizerAnswer => {
    const key = JSON.stringify(question);
    const known = answers.get(key);
    if (known) return known;
    if (answers.size + open.size >= maxQuestions) throw new CelError("too many authorization checks");
    open.set(key, question);
    return { allowed: false, reason: "", error: "" };
  };
  const { resource, subresource, namespace, name } = request;
  const about = { group: resource.group, resource: resource.plural, subresource, namespace, name };
  const variables: AuthorizerVariables = {
    authorizer: celAuthorizer(decide),
    "authorizer.requestResource": celRequestResource(decide, about),
  };
  for (let round = 0; ; round++) {
    const result = evaluate(variables);
    if (open.size === 0 || round >= maxRounds) return result;
    for (const [key, question] of open) answers.set(key, await answer(access, request.user, question));
    open.clear();
  }
}

async function answer(
  access: Authorizer,
  user: UserInfo,
  question: AuthorizerQuestion,
): Promise<AuthorizerAnswer> {
  try {
    const { decision, reason } = await access.authorize(attributesFor(user, question));
    return { allowed: decision === "allow", reason, error: "" };
  } catch (error) {
    return { allowed: false, reason: "", error: messageOf(error) };
  }
}

function attributesFor(
  user: UserInfo,
  { serviceAccount, verb, path, resource }: AuthorizerQuestion,
): AccessAttributes {
  const who = serviceAccount === undefined ? user : accountUser(serviceAccount);
  if (resource === undefined) return { user: who, verb, path: path ?? "/" };
  const { group, subresource, namespace, name } = resource;
  return {
    user: who,
    verb,
    resource: {
      group,
      version: "*",
      resource: resource.resource,
      ...(subresource === "" ? {} : { subresource }),
      ...(namespace === "" ? {} : { namespace }),
      ...(name === "" ? {} : { name }),
    },
  };
}

const accountUser = ({
  namespace,
  name,
}: {
  readonly namespace: string;
  readonly name: string;
}): UserInfo => ({
  name: `system:serviceaccount:${namespace}:${name}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
});
