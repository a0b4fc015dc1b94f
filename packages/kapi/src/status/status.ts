/**
 * Failures as clients of Kubernetes understand them: a `Status` object with reason, code, message and causes.
 *
 * Clients act on `reason` and on causes, people read `message`; both are part of the wire contract (Kubernetes API
 * conventions, "Response Status Kind"). Everything thrown inside the server becomes one of these in one place,
 * {@link toStatusError}; what nobody expected becomes `InternalError` without the thrown text.
 */
import { isCoded, type CodedError, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";

/** One cause in `details.causes`. */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** `details` of a Status. */
export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** A failure with its wire form. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;
  /** `metadata.continue` of the answer: only for an expired page token. */
  readonly continueToken: string | undefined;

  constructor(
    code: number,
    reason: string,
    message: string,
    details?: StatusDetails,
    options: { readonly continueToken?: string; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "StatusError";
    this.code = code;
    this.reason = reason;
    this.details = details;
    this.continueToken = options.continueToken;
  }

  /** The `Status` object of this failure. */
  toObject(): JsonObject {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: this.continueToken === undefined ? {} : { continue: this.continueToken },
      status: "Failure",
      message: this.message,
      ...(this.reason === "" ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

/** A resource as messages name it. */
export interface ResourceName {
  readonly group: string;
  readonly plural: string;
}

/** `deployments.apps`, or just `configmaps` in the core group. */
export function qualified(resource: ResourceName): string {
  return resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
}

function about(resource: ResourceName, name: string, more: StatusDetails = {}): StatusDetails {
  return {
    ...(name === "" ? {} : { name }),
    ...(resource.group === "" ? {} : { group: resource.group }),
    kind: resource.plural,
    ...more,
  };
}

/** 404 for an object. */
export function notFound(resource: ResourceName, name: string): StatusError {
  return new StatusError(
    404,
    "NotFound",
    `${qualified(resource)} "${name}" not found`,
    about(resource, name),
  );
}

/** 404 for a path that no resource answers. */
export function routeNotFound(): StatusError {
  return new StatusError(404, "NotFound", "the server could not find the requested resource", {});
}

/** 409: the name is taken. */
export function alreadyExists(resource: ResourceName, name: string, deleting = false): StatusError {
  const prefix = deleting ? "object is being deleted: " : "";
  const message = `${prefix}${qualified(resource)} "${name}" already exists`;
  return new StatusError(409, "AlreadyExists", message, about(resource, name));
}

/** The text of an optimistic lock that failed. */
export const modifiedMessage =
  "the object has been modified; please apply your changes to the latest version and try again";

/** 409: the write does not fit the stored object. */
export function conflict(resource: ResourceName, name: string, why: string = modifiedMessage): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return new StatusError(409, "Conflict", message, about(resource, name));
}

/** 422 with causes. `kind` is the Kind, not the resource. */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  errors: readonly FieldError[],
): StatusError {
  const texts = errors.map((error) =>
    error.field === "" ? error.message : `${error.field}: ${error.message}`,
  );
  const list = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const title = kind.group === "" ? kind.kind : `${kind.kind}.${kind.group}`;
  return new StatusError(422, "Invalid", `${title} "${name}" is invalid: ${list}`, {
    ...(name === "" ? {} : { name }),
    ...(kind.group === "" ? {} : { group: kind.group }),
    kind: kind.kind,
    causes: errors.map(({ reason, message, field }) => ({
      reason,
      message,
      field: field === "" ? "<nil>" : field,
    })),
  });
}

/** 400. */
export function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

/** 401. */
export function unauthorized(): StatusError {
  return new StatusError(401, "Unauthorized", "Unauthorized");
}

/** 403 about a resource: `configmaps "x" is forbidden: …`. */
export function forbidden(
  resource: ResourceName,
  name: string,
  why: string,
  causes?: readonly StatusCause[],
): StatusError {
  const subject = name === "" ? qualified(resource) : `${qualified(resource)} "${name}"`;
  return new StatusError(
    403,
    "Forbidden",
    `${subject} is forbidden: ${why}`,
    about(resource, name, causes ? { causes } : {}),
  );
}

/** 405. `action` is a verb such as `create`. */
export function methodNotAllowed(resource: ResourceName, action: string): StatusError {
  const message = `${action} is not supported on resources of kind "${qualified(resource)}"`;
  return new StatusError(405, "MethodNotAllowed", message, about(resource, ""));
}

/** 405 for a method that a path does not know. */
export const wrongMethod = (): StatusError =>
  new StatusError(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
  );

/** 406. */
export function notAcceptable(types: readonly string[]): StatusError {
  return new StatusError(
    406,
    "NotAcceptable",
    `only the following media types are accepted: ${types.join(", ")}`,
  );
}

/** 415. */
export function unsupportedMediaType(types: readonly string[]): StatusError {
  return new StatusError(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: ${types.join(", ")}`,
  );
}

/** 415 for a body in a content coding (RFC 9110, 15.5.16). */
export function unsupportedCoding(coding: string): StatusError {
  return new StatusError(
    415,
    "UnsupportedMediaType",
    `the body of the request is encoded as ${JSON.stringify(coding.slice(0, 64))}; send it without a content-encoding`,
  );
}

/** 413. `limit` in bytes. */
export function tooLarge(limit: number): StatusError {
  return new StatusError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limit}`);
}

/** 410: history is gone. */
export function expired(message: string, continueToken?: string): StatusError {
  return new StatusError(
    410,
    "Expired",
    message,
    undefined,
    continueToken === undefined ? {} : { continueToken },
  );
}

/** 504. */
export function timeout(message: string, retryAfterSeconds?: number): StatusError {
  return new StatusError(
    504,
    "Timeout",
    `Timeout: ${message}`,
    retryAfterSeconds === undefined ? undefined : { retryAfterSeconds },
  );
}

/** 504 for a resource version from the future: clients look at the cause and retry. */
export function tooLargeResourceVersion(asked: number, current: number): StatusError {
  const message = `Too large resource version: ${asked}, current: ${current}`;
  return new StatusError(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

/** 429 for an overload. */
export function tooManyRequests(retryAfterSeconds = 1): StatusError {
  return new StatusError(429, "TooManyRequests", "Too many requests, please try again later.", {
    retryAfterSeconds,
  });
}

/** 500 with a text that is safe to show. */
export function internal(message: string, cause?: unknown): StatusError {
  return new StatusError(
    500,
    "InternalError",
    `Internal error occurred: ${message}`,
    {
      causes: [{ message }],
    },
    { cause },
  );
}

/** Any thrown value as a {@link StatusError}. Texts of what nobody expected stay inside. */
export function toStatusError(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  if (isCoded(error, "deadline_exceeded"))
    return new StatusError(504, "Timeout", `Timeout: ${error.message}`, undefined, { cause: error });
  if (!isCoded(error)) return internal("see the server's log under this request's Audit-ID", error);
  const coded: CodedError = error;
  const retry = coded.retryAfterMs ?? (coded.code === "unavailable" ? 1000 : undefined);
  return new StatusError(
    coded.meaning.http,
    coded.meaning.kubernetes,
    coded.message,
    retry === undefined ? undefined : { retryAfterSeconds: Math.ceil(retry / 1000) },
    { cause: error },
  );
}
