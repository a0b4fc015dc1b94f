/**
 * Query options of verbs, checked: what `dryRun`, `fieldValidation`, `resourceVersionMatch` and the like may be.
 *
 * Unknown parameters are ignored, as clients of other releases send them; wrong values of known ones are 422 with
 * the option kind's name, a number that is none is 400.
 */
import type { RequestContext } from "../pipeline/context.ts";
import type { FieldError, ResourceDefinition } from "../resource.ts";
import { badRequest, invalid } from "../status/status.ts";
import { header } from "../wire/request.ts";
import { parseFieldSelector, type FieldSelector } from "./field-selector.ts";
import { parseLabelSelector, type LabelSelector } from "./label-selector.ts";

/** Strictness about fields the schema does not know. */
export type FieldValidation = "Ignore" | "Warn" | "Strict";

/** Options of create, update and patch. */
export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
  /** Manager that owns what this request changes. */
  readonly fieldManager: string;
  readonly force: boolean;
}

/** In bytes. */
const maxManagerLength = 128;

function optionErrors(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind }, "", errors);
}

function unsupported(field: string, value: string, supported: readonly string[]): FieldError {
  const list = supported.map((item) => JSON.stringify(item)).join(", ");
  return {
    reason: "FieldValueNotSupported",
    field,
    message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${list}`,
  };
}

/** The manager when the request names none: the agent's name. */
export function defaultManager(userAgent: string | undefined): string {
  const name = (userAgent ?? "").split("/")[0] ?? "";
  return name.replace(/[^\x20-\x7e]/g, "").slice(0, maxManagerLength) || "unknown";
}

/** Reads write options. `apply` says that the request is a server-side apply. Fails with 422. */
export function parseWriteOptions(
  context: RequestContext,
  kind: "CreateOptions" | "UpdateOptions" | "PatchOptions",
  apply: boolean = false,
): WriteOptions {
  const errors: FieldError[] = [];
  const dryRuns = context.query.getAll("dryRun").filter((value) => value !== "");
  for (const value of dryRuns) if (value !== "All") errors.push(unsupported("dryRun", value, ["All"]));
  const validation = context.parameter("fieldValidation") ?? "Warn";
  if (validation !== "Ignore" && validation !== "Warn" && validation !== "Strict") {
    errors.push(unsupported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]));
  }
  const manager = context.parameter("fieldManager");
  if (manager === undefined && apply) {
    errors.push({
      reason: "FieldValueRequired",
      field: "fieldManager",
      message: "Required value: is required for apply patch",
    });
  }
  if (manager !== undefined && Buffer.byteLength(manager) > maxManagerLength) {
    errors.push({
      reason: "FieldValueTooLong",
      field: "fieldManager",
      message: `Too long: may not be more than ${maxManagerLength} bytes`,
    });
  }
  if (manager !== undefined && !/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(manager)) {
    errors.push({
      reason: "FieldValueInvalid",
      field: "fieldManager",
      message: `Invalid value: ${JSON.stringify(manager)}: should only contain printable characters`,
    });
  }
  const force = queryFlag(context, "force");
  if (force !== undefined && kind === "PatchOptions" && !apply) {
    errors.push({
      reason: "FieldValueForbidden",
      field: "force",
      message: "Forbidden: may not be specified for non-apply patch",
    });
  }
  optionErrors(kind, errors);
  return {
    dryRun: dryRuns.length > 0,
    fieldValidation: validation === "Ignore" || validation === "Strict" ? validation : "Warn",
    fieldManager: manager ?? defaultManager(header(context.request, "user-agent")),
    force: force ?? false,
  };
}

/** Options of list and watch. */
export interface ListOptions {
  readonly labels: LabelSelector;
  readonly fields: FieldSelector;
  /** 0: no limit. */
  readonly limit: number;
  readonly continueToken: string | undefined;
  /** Undefined: the newest; 0: any. */
  readonly resourceVersion: number | undefined;
  readonly match: "Exact" | "NotOlderThan" | undefined;
  readonly sendInitialEvents: boolean | undefined;
  readonly bookmarks: boolean;
  readonly timeoutSeconds: number | undefined;
}

function integer(context: RequestContext, name: string): number | undefined {
  const text = context.parameter(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(value)) {
    throw badRequest(`invalid value for query parameter ${name}: ${JSON.stringify(text.slice(0, 64))}`);
  }
  return value;
}

/** The greatest number of items; a negative one is none, as upstream. */
function limitOf(context: RequestContext): number {
  return /^-\d{1,16}$/.test(context.parameter("limit") ?? "") ? 0 : (integer(context, "limit") ?? 0);
}

/** A boolean of the query, read as the API server reads it: everything but `false` and `0` is true. */
export function queryFlag(context: RequestContext, name: string): boolean | undefined {
  const text = context.query.get(name);
  return text === null ? undefined : text !== "0" && text.toLowerCase() !== "false";
}

/** Reads list options. `watch`: the request is a watch. Fails with 400 and 422. */
export function parseListOptions(
  context: RequestContext,
  resource: ResourceDefinition,
  watch: boolean,
): ListOptions {
  const version = integer(context, "resourceVersion");
  const match = context.parameter("resourceVersionMatch");
  const initial = queryFlag(context, "sendInitialEvents");
  const token = watch ? undefined : context.parameter("continue");
  const errors: FieldError[] = [];
  const forbid = (field: string, why: string): void => {
    errors.push({ reason: "FieldValueForbidden", field, message: `Forbidden: ${why}` });
  };
  if (match !== undefined && match !== "Exact" && match !== "NotOlderThan") {
    errors.push(unsupported("resourceVersionMatch", match, ["", "Exact", "NotOlderThan"]));
  }
  if (watch) {
    if (initial !== undefined && match !== "NotOlderThan") {
      forbid(
        "resourceVersionMatch",
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
      );
    }
    if (match !== undefined && initial === undefined) {
      forbid(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
      );
    }
  } else {
    if (initial !== undefined) forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    if (match !== undefined && version === undefined) {
      forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (match !== undefined && token !== undefined) {
      forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
    }
    if (match === "Exact" && version === 0) {
      forbid("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
    }
  }
  optionErrors("ListOptions", errors);
  if (token !== undefined && version !== undefined && version !== 0) {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  return {
    labels: parseLabelSelector(context.parameter("labelSelector")),
    fields: parseFieldSelector(context.parameter("fieldSelector"), resource),
    limit: limitOf(context),
    continueToken: token,
    resourceVersion: version,
    match: match === "Exact" || match === "NotOlderThan" ? match : undefined,
    sendInitialEvents: initial,
    bookmarks: queryFlag(context, "allowWatchBookmarks") ?? false,
    timeoutSeconds: integer(context, "timeoutSeconds"),
  };
}
