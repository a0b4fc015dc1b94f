/**
 * CEL expressions of admission: match conditions and policies. Variables are plain JSON values; every evaluation has a
 * budget. `authorizer` is not offered: an expression that uses it does not compile.
 */
import type { JsonObject } from "@kontinuum/std";
import { compileCel, fromJson, Meter, types, type CelProgram, type CelValue } from "../cel/index.ts";
import { LRUCache } from "lru-cache";
import type { AdmissionRequest } from "./admission.ts";

/** Budget of all expressions of one policy or webhook on one request. */
export const admissionBudget = 500_000;

const names = ["object", "oldObject", "request", "params", "namespaceObject", "variables"] as const;
const declared = Object.fromEntries(names.map((name) => [name, types.dyn]));
const compiled = new LRUCache<string, CelProgram>({ max: 1000 });

/** Values an expression sees. */
export type ExpressionValues = Readonly<Record<(typeof names)[number], CelValue>>;

/** Compiles an expression. Fails with `CelCompileError`. */
export function admissionExpression(source: string): CelProgram {
  let program = compiled.get(source);
  if (!program) {
    program = compileCel(source, { variables: declared });
    compiled.set(source, program);
  }
  return program;
}

/** The values of a request. */
export function expressionValues(
  request: AdmissionRequest,
  more: { readonly params?: JsonObject | undefined; readonly namespace?: JsonObject | undefined } = {},
): ExpressionValues {
  return {
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
