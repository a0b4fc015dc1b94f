/**
 * Kubernetes `Status` answers as coded errors.
 *
 * Clients test `reason`, not the number, so both are kept: the code decides what our own code does, the
 * details carry what the server said.
 *
 * Source: Kubernetes API conventions ("Response Status Kind").
 */
import { at, CodedError, isCoded, isObject, stringAt, type ErrorCode } from "@kontinuum/std";

/** One cause of a `Status` (a wrong field, a conflicting manager). */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** What `details` of an error of the client holds. */
export interface StatusDetails {
  /** HTTP status. */
  readonly status: number;
  /** Kubernetes reason, e.g. `AlreadyExists`; empty when the answer was no `Status`. */
  readonly reason: string;
  readonly causes: readonly StatusCause[];
}

const byReason: Readonly<Record<string, ErrorCode>> = {
  AlreadyExists: "already_exists",
  Conflict: "conflict",
  Expired: "gone",
  Gone: "gone",
  ServerTimeout: "unavailable",
  Invalid: "unprocessable",
  TooManyRequests: "rate_limited",
  Timeout: "deadline_exceeded",
};

const byStatus: Readonly<Record<number, ErrorCode>> = {
  400: "invalid_argument",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  405: "unsupported",
  406: "unsupported",
  408: "deadline_exceeded",
  409: "conflict",
  410: "gone",
  412: "failed_precondition",
  413: "payload_too_large",
  415: "unsupported",
  422: "unprocessable",
  429: "rate_limited",
  501: "unsupported",
  502: "unavailable",
  503: "unavailable",
  504: "deadline_exceeded",
};

/** The error behind an answer of `status` with `body` (a `Status` object, or anything). `what` names the request. */
export function statusError(status: number, body: unknown, what: string, retryAfterMs?: number): CodedError {
  const isStatus = isObject(body) && body["kind"] === "Status";
  const reason = (isStatus ? stringAt(body, "reason") : undefined) ?? "";
  const message = (isStatus ? stringAt(body, "message") : undefined) || `${what}: HTTP status ${status}`;
  const seconds = at(body, "details", "retryAfterSeconds");
  const wait = retryAfterMs ?? (typeof seconds === "number" && seconds > 0 ? seconds * 1000 : undefined);
  const details: StatusDetails & Record<string, unknown> = {
    status,
    reason,
    causes: readCauses(at(body, "details", "causes")),
  };
  return new CodedError(byReason[reason] ?? byStatus[status] ?? "internal", message, {
    details,
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  });
}

function readCauses(value: unknown): StatusCause[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isObject).map((cause) => {
    const [reason, message, field] = ["reason", "message", "field"].map((name) => stringAt(cause, name));
    return {
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      ...(field === undefined ? {} : { field }),
    };
  });
}

/** The Kubernetes reason of an error of the client, e.g. `NamespaceTerminating`'s `Forbidden`; empty when it has none. */
export function reasonOf(error: unknown): string {
  return isCoded(error) ? (stringAt(error.details, "reason") ?? "") : "";
}

/** Whether the answer carried a cause with this reason (`NamespaceTerminating`, `FieldManagerConflict`, …). */
export function hasCause(error: unknown, reason: string): boolean {
  const causes = isCoded(error) ? error.details["causes"] : undefined;
  return Array.isArray(causes) && causes.some((cause) => stringAt(cause, "reason") === reason);
}
