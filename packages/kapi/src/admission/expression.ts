/**
 * CEL expressions of admission: match conditions and policies. Object variables are plain JSON values; every evaluation
 * has a budget.
 */
import type { JsonObject } from "@kontinuum/std";
import { LRUCache } from "lru-cache";
import {
  admissionFunctions,
  authorizerType,
  CelCompileError,
  compileCel,
  fromJson,
  listOf,
  mapOf,
  Meter,
  resourceCheckType,
  types,
  type CelProgram,
  type CelType,
  type CelValue,
  type ObjectField,
} from "../cel/index.ts";
import type { AdmissionRequest } from "./admission.ts";

/** Budget of all expressions of one policy or webhook on one request. */
export const admissionBudget = 500_000;

const objectOf = (fields: Readonly<Record<string, CelType>>): CelType => ({
  kind: "object",
  name: "kubernetes.AdmissionRequest",
  fields: new Map(
    Object.entries(fields).map(([name, type]): [string, ObjectField] => [name, { type, jsonName: name }]),
  ),
});

const kindType = objectOf({ group: types.string, version: types.string, kind: types.string });
const resourceType = objectOf({ group: types.string, version: types.string, resource: types.string });

/** `request` in expressions: admission.k8s.io/v1 AdmissionRequest without the objects. */
const requestType = objectOf({
  kind: kindType,
  resource: resourceType,
  subResource: types.string,
  requestKind: kindType,
  requestResource: resourceType,
  requestSubResource: types.string,
  name: types.string,
  namespace: types.string,
  operation: types.string,
  userInfo: objectOf({
    username: types.string,
    uid: types.string,
    groups: listOf(types.string),
    extra: mapOf(types.string, listOf(types.string)),
  }),
  dryRun: types.bool,
  options: types.dyn,
});

/** What every expression of admission may mention. */
const common = {
  object: types.dyn,
  oldObject: types.dyn,
  request: requestType,
  namespaceObject: types.dyn,
  authorizer: { kind: "opaque", name: authorizerType },
  "authorizer.requestResource": { kind: "opaque", name: resourceCheckType },
} satisfies Readonly<Record<string, CelType>>;

const declared = { ...common, params: types.dyn, variables: types.dyn };
const compiled = new LRUCache<string, CelProgram>({ max: 1000 });

/** The variables that ask who may do what; see `authorizer.ts`. */
export type AuthorizerVariables = Readonly<Record<"authorizer" | "authorizer.requestResource", CelValue>>;

/** Values an expression sees. */
export type ExpressionValues = Readonly<Record<keyof typeof declared, CelValue>>;

/** Compiles an expression. Fails with `CelCompileError`. */
export function admissionExpression(source: string): CelProgram {
  let program = compiled.get(source);
  if (!program) {
    program = compileCel(source, { variables: declared, functions: admissionFunctions });
    compiled.set(source, program);
  }
  return program;
}

/** What an expression of a policy or webhook may mention beyond the common variables. */
export interface ExpressionScope {
  /** The policy has parameters. */
  readonly params: boolean;
  /** Names of the variables declared before; absent where there are none. */
  readonly variables?: readonly string[];
}

/** Why an expression can't be used, or `undefined`. `result` is what it must give; absent: anything. */
export function expressionProblem(
  source: string,
  { params, variables }: ExpressionScope,
  result?: "bool" | "string",
): string | undefined {
  const names = (variables ?? []).map((name): [string, CelType] => [name, types.dyn]);
  const scope = {
    ...common,
    ...(params ? { params: types.dyn } : {}),
    ...(variables === undefined ? {} : { variables: objectOf(Object.fromEntries(names)) }),
  };
  try {
    const { type } = compileCel(source, { variables: scope, functions: admissionFunctions });
    if (result === undefined || type.kind === result || type.kind === "dyn") return undefined;
    return `must evaluate to ${result} but got ${type.kind}`;
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    const line = source.split("\n")[error.line - 1] ?? "";
    const pointer = `${".".repeat(Math.max(0, error.column - 1))}^`;
    return `compilation failed: ERROR: <input>:${error.line}:${error.column}: ${error.message}\n | ${line}\n | ${pointer}`;
  }
}

/** The values of a request. */
export function expressionValues(
  request: AdmissionRequest,
  authorizer: AuthorizerVariables,
  more: { readonly params?: JsonObject | undefined; readonly namespace?: JsonObject | undefined } = {},
): ExpressionValues {
  return {
    ...authorizer,
    object: fromJson(request.object ?? null),
    oldObject: fromJson(request.oldObject ?? null),
    request: fromJson(requestValue(request)),
    params: fromJson(more.params ?? null),
    namespaceObject: fromJson(more.namespace ?? null),
    variables: fromJson({}),
  };
}

/** A meter with the budget of one request. */
export function admissionMeter(): Meter {
  return new Meter(admissionBudget);
}

/** `request` as expressions and webhooks see it (admission.k8s.io/v1 AdmissionRequest without the objects). */
export function requestValue(request: AdmissionRequest): JsonObject {
  const { resource, subresource, namespace, name, operation, user, dryRun, options } = request;
  const { group, version, kind, plural } = resource;
  const gvk = { group, version, kind };
  const gvr = { group, version, resource: plural };
  return {
    kind: gvk,
    resource: gvr,
    ...(subresource === "" ? {} : { subResource: subresource, requestSubResource: subresource }),
    requestKind: gvk,
    requestResource: gvr,
    ...(name === "" ? {} : { name }),
    ...(namespace === "" ? {} : { namespace }),
    operation,
    userInfo: {
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: user.groups,
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    },
    dryRun,
    options,
  };
}
