/**
 * One error class, a closed set of codes, one table of what each code means to whom.
 *
 * Expected failures carry a code; anything else is a bug and is answered as `internal`. The
 * `cause` is kept for the log and never sent to a client. Messages name the thing and the remedy;
 * they never hold a secret.
 */

/** Consequences of one error code, for each face of the product. */
export interface ErrorMeaning {
  /** HTTP status of the machine API and the Kubernetes-style API. */
  readonly http: number;
  /** `reason` of a Kubernetes `Status` object (Kubernetes API conventions, "Response Status Kind"). */
  readonly kubernetes: string;
  /** gRPC status code number (gRPC core, "statuscodes"). */
  readonly grpc: number;
  /** Exit status of a command line. */
  readonly exit: number;
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean;
  /** What the caller does next. */
  readonly user: string;
  /** What the operator does next. */
  readonly operator: string;
}

const meaning = (
  http: number,
  kubernetes: string,
  grpc: number,
  exit: number,
  retryable: boolean,
  user: string,
  operator: string,
): ErrorMeaning => ({ http, kubernetes, grpc, exit, retryable, user, operator });

/** Code to meaning; the only place where the faces' numbers meet. */
export const errorTable = {
  invalid_argument: meaning(400, "BadRequest", 3, 2, false, "Correct the named field.", "Nothing."),
  unauthenticated: meaning(
    401,
    "Unauthorized",
    16,
    4,
    false,
    "Sign in or renew the token.",
    "Check the issuer when many fail.",
  ),
  permission_denied: meaning(
    403,
    "Forbidden",
    7,
    4,
    false,
    "Ask for the named right.",
    "Grant it or leave it.",
  ),
  not_found: meaning(404, "NotFound", 5, 3, false, "Check name and project or namespace.", "Nothing."),
  already_exists: meaning(
    409,
    "AlreadyExists",
    6,
    5,
    false,
    "Pick another name or use what exists.",
    "Nothing.",
  ),
  conflict: meaning(409, "Conflict", 10, 5, true, "Read again and repeat the change.", "Nothing."),
  gone: meaning(
    410,
    "Expired",
    11,
    1,
    false,
    "Start again from a fresh list.",
    "Raise retention if it is frequent.",
  ),
  payload_too_large: meaning(413, "RequestEntityTooLarge", 8, 2, false, "Send less at once.", "Nothing."),
  unprocessable: meaning(422, "Invalid", 3, 2, false, "Correct the named fields.", "Nothing."),
  failed_precondition: meaning(
    412,
    "Conflict",
    9,
    5,
    false,
    "Bring the named thing into the named state.",
    "Nothing.",
  ),
  rate_limited: meaning(
    429,
    "TooManyRequests",
    8,
    6,
    true,
    "Wait for Retry-After.",
    "Raise the limit if it is legitimate.",
  ),
  cancelled: meaning(499, "Timeout", 1, 130, true, "Repeat if still wanted.", "Nothing."),
  internal: meaning(
    500,
    "InternalError",
    13,
    1,
    false,
    "Report it with the request id.",
    "Look the request id up in the log.",
  ),
  unsupported: meaning(501, "MethodNotAllowed", 12, 2, false, "Use what capabilities list.", "Nothing."),
  unavailable: meaning(
    503,
    "ServiceUnavailable",
    14,
    6,
    true,
    "Try again shortly.",
    "Look at the named dependency.",
  ),
  deadline_exceeded: meaning(
    504,
    "Timeout",
    4,
    6,
    true,
    "Try again, perhaps with a longer limit.",
    "Look for load or a lost dependency.",
  ),
  data_loss: meaning(
    500,
    "InternalError",
    15,
    7,
    false,
    "Report it.",
    "Run `kontinuum store verify` and restore.",
  ),
} as const satisfies Record<string, ErrorMeaning>;

/** The closed set of codes. */
export type ErrorCode = keyof typeof errorTable;

/** Extra facts of a failure. */
export interface ErrorOptions {
  /** The underlying failure: for logs only. */
  readonly cause?: unknown;
  /** Machine-readable details, free of secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** Earliest sensible retry, in milliseconds from now. */
  readonly retryAfterMs?: number;
}

/** A failure that somebody expected. */
export class CodedError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CodedError";
    this.code = code;
    this.details = options.details ?? {};
    this.retryAfterMs = options.retryAfterMs;
  }

  /** The row of the table for this code. */
  get meaning(): ErrorMeaning {
    return errorTable[this.code];
  }
}

/** True when `error` is a {@link CodedError}, optionally of one code. */
export function isCoded(error: unknown, code?: ErrorCode): error is CodedError {
  return error instanceof CodedError && (code === undefined || error.code === code);
}

/** Any thrown value as a coded error; what is not coded becomes `internal` with the value as cause. */
export function toCoded(error: unknown): CodedError {
  if (error instanceof CodedError) return error;
  return new CodedError("internal", "internal error", { cause: error });
}

/** The text of any thrown value, for logs and for conditions. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
