/**
 * The error codes of the machine API and the one class that carries them.
 *
 * A code is what clients branch on; message and hint are for people and never hold a secret. The
 * lower-case codes are kept because clients of the original use them.
 */
import { CodedError, type ErrorCode, type ErrorOptions } from "@kontinuum/std";

interface KrytonMeaning {
  readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 422 | 429 | 500 | 501 | 502 | 503;
  readonly std: ErrorCode;
}

const row = (status: KrytonMeaning["status"], std: ErrorCode): KrytonMeaning => ({ status, std });

/** Every code the API answers with, its HTTP status and its meaning in the shared table. */
export const krytonErrors = {
  INVALID_REQUEST: row(400, "invalid_argument"),
  IMAGE_NOT_READY: row(400, "failed_precondition"),
  CLONE_FORBIDDEN: row(400, "failed_precondition"),
  ADMISSION_DENIED: row(400, "failed_precondition"),
  STORAGE_INVALID: row(400, "failed_precondition"),
  QUOTA_EXCEEDED: row(403, "failed_precondition"),
  UNAUTHORIZED: row(401, "unauthenticated"),
  FORBIDDEN: row(403, "permission_denied"),
  NOT_FOUND: row(404, "not_found"),
  not_found: row(404, "not_found"),
  METHOD_NOT_ALLOWED: row(405, "unsupported"),
  CONFLICT: row(409, "conflict"),
  conflict: row(409, "conflict"),
  IDEMPOTENCY_MISMATCH: row(422, "unprocessable"),
  RATE_LIMITED: row(429, "rate_limited"),
  INTERNAL: row(500, "internal"),
  UNSUPPORTED: row(501, "unsupported"),
  STREAM_UNSUPPORTED: row(501, "unsupported"),
  PROVIDER_ERROR: row(502, "unavailable"),
  CLONE_RBAC_FAILED: row(502, "unavailable"),
  CONSOLE_UNAVAILABLE: row(502, "unavailable"),
  PROVIDER_UNAVAILABLE: row(503, "unavailable"),
  NODE_DISK_PRESSURE: row(503, "unavailable"),
  STORE_UNAVAILABLE: row(503, "unavailable"),
  unavailable: row(503, "unavailable"),
} as const satisfies Record<string, KrytonMeaning>;

/** The closed set of codes. */
export type KrytonCode = keyof typeof krytonErrors;

/** Options of a {@link KrytonError}. */
export interface KrytonErrorOptions extends ErrorOptions {
  /** What the caller does next, one sentence. */
  readonly hint?: string;
  /** Extra response headers, for example `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An expected failure of the machine API. */
export class KrytonError extends CodedError {
  readonly kryton: KrytonCode;
  readonly hint: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: KrytonCode, message: string, options: KrytonErrorOptions = {}) {
    super(krytonErrors[code].std, message, options);
    this.name = "KrytonError";
    this.kryton = code;
    this.hint = options.hint;
    this.headers = options.headers ?? {};
  }

  /** The HTTP status of the code. */
  get status(): KrytonMeaning["status"] {
    return krytonErrors[this.kryton].status;
  }
}

/** A 400 with every violation in one message: sorted, so that the same mistake reads the same. */
export function invalidRequest(violations: readonly string[] | string): KrytonError {
  const list = typeof violations === "string" ? [violations] : [...new Set(violations)].sort();
  return new KrytonError("INVALID_REQUEST", list.join("; "));
}

/** Any thrown value as a {@link KrytonError}; what nobody expected becomes `INTERNAL` without its text. */
export function toKrytonError(error: unknown): KrytonError {
  if (error instanceof KrytonError) return error;
  if (error instanceof CodedError) {
    const options = {
      cause: error,
      ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    };
    switch (error.code) {
      case "unavailable":
      case "deadline_exceeded":
        return new KrytonError("STORE_UNAVAILABLE", "the store did not answer in time", {
          ...options,
          retryAfterMs: error.retryAfterMs ?? 1000,
          hint: "Try again shortly; with an Idempotency-Key a repeat is safe.",
        });
      case "conflict":
        return new KrytonError("CONFLICT", error.message, options);
      case "rate_limited":
        return new KrytonError("RATE_LIMITED", error.message, options);
      case "cancelled":
        return new KrytonError("STORE_UNAVAILABLE", "the request was cancelled", options);
      default:
        break;
    }
  }
  return new KrytonError("INTERNAL", "internal error", {
    cause: error,
    hint: "Report it with the request id.",
  });
}
