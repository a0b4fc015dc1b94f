/**
 * The authorizer of admission expressions (k8s.io/apiserver "cel/library/authz"): builds a question step by step,
 * `authorizer.group('').resource('pods').namespace('a').check('get').allowed()`, and asks it.
 *
 * Selectors are taken and left out of the question: no authorizer here looks at them, so that an answer is never wider
 * than it would be without them.
 */
import { CelError } from "../error.ts";
import { fixedCharge, member, type Overload } from "../function.ts";
import { CelOpaque, type CelValue } from "../value.ts";

/** What is asked about: a path, or a resource. */
export interface AuthorizerQuestion {
  /** Asked about instead of the user who makes the request. */
  readonly serviceAccount?: { readonly namespace: string; readonly name: string };
  readonly verb: string;
  readonly path?: string;
  readonly resource?: {
    readonly group: string;
    readonly resource: string;
    readonly subresource: string;
    readonly namespace: string;
    readonly name: string;
  };
}

/** The answer to a question. */
export interface AuthorizerAnswer {
  readonly allowed: boolean;
  readonly reason: string;
  /** Empty when there was none. */
  readonly error: string;
}

/** Answers questions at once; who can't fails with `CelError`. */
export type Decide = (question: AuthorizerQuestion) => AuthorizerAnswer;

const prefix = "kubernetes.authorization.";

/** Names of the types. */
export const authorizerType = `${prefix}Authorizer`;
export const resourceCheckType = `${prefix}ResourceCheck`;
const pathCheckType = `${prefix}PathCheck`;
const groupCheckType = `${prefix}GroupCheck`;
const decisionType = `${prefix}Decision`;

/** A question under construction; equal only to itself. */
class Step extends CelOpaque {
  readonly typeName: string;
  readonly decide: Decide;
  readonly question: Omit<AuthorizerQuestion, "verb">;

  constructor(typeName: string, decide: Decide, question: Omit<AuthorizerQuestion, "verb">) {
    super();
    this.typeName = typeName;
    this.decide = decide;
    this.question = question;
  }

  override equals(other: CelOpaque): boolean {
    return other === this;
  }
}

class Decision extends CelOpaque {
  readonly typeName = decisionType;
  readonly answer: AuthorizerAnswer;

  constructor(answer: AuthorizerAnswer) {
    super();
    this.answer = answer;
  }

  override equals(other: CelOpaque): boolean {
    return other === this;
  }
}

/** The `authorizer` variable. */
export const celAuthorizer = (decide: Decide): CelValue => new Step(authorizerType, decide, {});

/** The `authorizer.requestResource` variable: a check of what the request is about. */
export const celRequestResource = (
  decide: Decide,
  resource: NonNullable<AuthorizerQuestion["resource"]>,
): CelValue => new Step(resourceCheckType, decide, { resource });

const step = (value: CelValue): Step => {
  if (value instanceof Step) return value;
  throw new CelError("no such overload");
};

const answerOf = (value: CelValue): AuthorizerAnswer => {
  if (value instanceof Decision) return value.answer;
  throw new CelError("no such overload");
};

/** Price of a check; upstream lets an expression do no more than two. */
const checkCost = 350_000;
const check = { cost: () => checkCost, charge: fixedCharge(2_000) };

const emptyResource = { group: "", resource: "", subresource: "", namespace: "", name: "" };

/** Declares `ResourceCheck.<key>(text)`. */
const refine = (key: "subresource" | "namespace" | "name"): Overload =>
  member(key, [resourceCheckType, "string"], resourceCheckType, (value, text) => {
    const { decide, question } = step(value);
    const resource = { ...emptyResource, ...question.resource, [key]: text };
    return new Step(resourceCheckType, decide, { ...question, resource });
  });

/** Declares a selector, which changes nothing. */
const selector = (name: string): Overload =>
  member(name, [resourceCheckType, "string"], resourceCheckType, (value) => step(value));

const ask = (value: CelValue, verb: string): CelValue => {
  const { decide, question } = step(value);
  return new Decision(decide({ ...question, verb }));
};

/** All overloads of authorization. */
export const authorizerLibrary: readonly Overload[] = [
  member("path", [authorizerType, "string"], pathCheckType, (value, path) => {
    const { decide, question } = step(value);
    if (path === "") throw new CelError("path must not be empty");
    return new Step(pathCheckType, decide, { ...question, path });
  }),
  member("group", [authorizerType, "string"], groupCheckType, (value, group) => {
    const { decide, question } = step(value);
    return new Step(groupCheckType, decide, { ...question, resource: { ...emptyResource, group } });
  }),
  member(
    "serviceAccount",
    [authorizerType, "string", "string"],
    authorizerType,
    (value, namespace, name) =>
      new Step(authorizerType, step(value).decide, { serviceAccount: { namespace, name } }),
  ),
  member("resource", [groupCheckType, "string"], resourceCheckType, (value, text) => {
    const { decide, question } = step(value);
    const resource = { ...emptyResource, ...question.resource, resource: text };
    return new Step(resourceCheckType, decide, { ...question, resource });
  }),
  refine("subresource"),
  refine("namespace"),
  refine("name"),
  selector("fieldSelector"),
  selector("labelSelector"),
  member("check", [pathCheckType, "string"], decisionType, ask, check),
  member("check", [resourceCheckType, "string"], decisionType, ask, check),
  member("allowed", [decisionType], "bool", (value) => answerOf(value).allowed),
  member("reason", [decisionType], "string", (value) => answerOf(value).reason),
  member("errored", [decisionType], "bool", (value) => answerOf(value).error !== ""),
  member("error", [decisionType], "string", (value) => answerOf(value).error),
];
