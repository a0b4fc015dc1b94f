/**
 * `DeleteOptions` (meta.k8s.io/v1): read from a body or from the query, never guessed.
 *
 * An option of the wrong type is 400: a delete whose precondition or dry run was dropped would remove what its sender
 * meant to keep. A value of the right type that is not supported is 422. Fields nobody knows are ignored, as clients
 * of other releases send them.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { RequestContext } from "../pipeline/context.ts";
import type { FieldError } from "../resource.ts";
import { invalid as invalidField, notSupported, printBadValue } from "../schema/field-error.ts";
import { badRequest, invalid } from "../status/status.ts";
import { queryFlag } from "./options.ts";

/** What becomes of dependents. */
export type Propagation = "Orphan" | "Background" | "Foreground";

/** The option that lets a delete remove what can't be decoded. */
export const ignoreReadErrorOption = "ignoreStoreReadErrorWithClusterBreakingPotential";

/** Options of a delete. */
export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly propagation: Propagation | undefined;
  readonly gracePeriodSeconds: number | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  /** Remove the object even though its stored bytes can't be decoded; its finalizers and dependents are not honoured. */
  readonly ignoreReadError: boolean;
}

const policies: readonly Propagation[] = ["Background", "Foreground", "Orphan"];

/** Reads options from the body, or from the query when there is no body. Fails with 400 and 422. */
export function parseDeleteOptions(context: RequestContext, body: JsonObject | undefined): DeleteOptions {
  const source: JsonObject = body ?? fromQuery(context);
  const { kind } = source;
  if (kind !== undefined && kind !== "DeleteOptions")
    throw badRequest(`the body of a delete must be DeleteOptions, not ${printBadValue(kind)}`);
  const errors: FieldError[] = [];
  const dryRun = dryRunOf(source, errors);
  const propagation = propagationOf(source, errors);
  const gracePeriodSeconds = option(source, "gracePeriodSeconds", "an integer", isSafeInteger);
  const preconditions = option(source, "preconditions", "an object", isObject) ?? {};
  const options: DeleteOptions = {
    dryRun,
    propagation,
    gracePeriodSeconds,
    uid: option(preconditions, "uid", "a string", isText, "preconditions."),
    resourceVersion: option(preconditions, "resourceVersion", "a string", isText, "preconditions."),
    ignoreReadError: option(source, ignoreReadErrorOption, "true or false", isBoolean) ?? false,
  };
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", errors);
  return options;
}

const isText = (value: unknown): value is string => typeof value === "string";
const isBoolean = (value: unknown): value is boolean => typeof value === "boolean";
const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value);

/** One option; absent and null are the same. Fails with 400 when it has another type. */
function option<T>(
  source: JsonObject,
  name: string,
  wanted: string,
  is: (value: unknown) => value is T,
  place = "",
): T | undefined {
  const value = source[name];
  if (value === undefined || value === null) return undefined;
  if (is(value)) return value;
  throw badRequest(`${place}${name} must be ${wanted}`);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText);
}

function dryRunOf(source: JsonObject, errors: FieldError[]): boolean {
  const stages = option(source, "dryRun", "a list of strings", isTexts) ?? [];
  for (const stage of stages) if (stage !== "All") errors.push(notSupported("dryRun", stage, ["All"]));
  return stages.length > 0;
}

function propagationOf(source: JsonObject, errors: FieldError[]): Propagation | undefined {
  const asked = option(source, "propagationPolicy", "a string", isText) ?? "";
  const orphan = option(source, "orphanDependents", "true or false", isBoolean);
  const policy = policies.find((known) => known === asked);
  if (policy === undefined && asked !== "") errors.push(notSupported("propagationPolicy", asked, policies));
  if (orphan === undefined) return policy;
  if (policy !== undefined) {
    const detail = "orphanDependents and deletionPropagation cannot be both set";
    errors.push(invalidField("propagationPolicy", asked, detail));
  }
  return orphan ? "Orphan" : "Background";
}

function fromQuery(context: RequestContext): JsonObject {
  const grace = context.parameter("gracePeriodSeconds");
  if (grace !== undefined && !/^-?\d{1,16}$/.test(grace))
    throw badRequest("gracePeriodSeconds must be an integer");
  return {
    dryRun: context.query.getAll("dryRun").filter((value) => value !== ""),
    propagationPolicy: context.parameter("propagationPolicy"),
    gracePeriodSeconds: grace === undefined ? undefined : Number(grace),
    orphanDependents: queryFlag(context, "orphanDependents"),
    [ignoreReadErrorOption]: queryFlag(context, ignoreReadErrorOption),
  };
}
