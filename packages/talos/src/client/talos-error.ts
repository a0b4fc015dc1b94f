/**
 * Failures of a call to a node, each with the one question a controller asks: what now?
 *
 * `retry` may succeed by itself soon; `wait` succeeds once the node has moved on; `person` needs a
 * decision or a correction; `fatal` will never succeed as asked. The reason says what was seen. The
 * mapping looks at the TLS failure before the gRPC code, because a node that wants a certificate and
 * a node with another CA both look like a broken stream to gRPC.
 */
import { Code, ConnectError } from "@connectrpc/connect";
import { CodedError, isCoded, messageOf, type ErrorCode } from "@kontinuum/std";

/** What to do about a failure. */
export type TalosErrorClass = "retry" | "wait" | "person" | "fatal";

/** What was seen. A closed set. */
export type TalosErrorReason =
  | "unreachable"
  | "timeout"
  | "cancelled"
  | "certificate_required"
  | "untrusted_certificate"
  | "identity_changed"
  | "not_ready"
  | "refused"
  | "denied"
  | "already_done"
  | "not_found"
  | "unsupported"
  | "failed"
  | "protocol";

/** Longest text of a node that is carried on in an error. */
const nodeTextLimit = 2000;

const reasons: Readonly<Record<TalosErrorReason, readonly [TalosErrorClass, ErrorCode]>> = {
  unreachable: ["retry", "unavailable"],
  timeout: ["retry", "deadline_exceeded"],
  cancelled: ["retry", "cancelled"],
  certificate_required: ["person", "unauthenticated"],
  untrusted_certificate: ["wait", "unavailable"],
  identity_changed: ["person", "failed_precondition"],
  not_ready: ["wait", "failed_precondition"],
  refused: ["person", "invalid_argument"],
  denied: ["person", "permission_denied"],
  already_done: ["fatal", "already_exists"],
  not_found: ["fatal", "not_found"],
  unsupported: ["fatal", "unsupported"],
  failed: ["retry", "unavailable"],
  protocol: ["fatal", "data_loss"],
};

/** A failed call to a node. */
export class TalosError extends CodedError {
  readonly reason: TalosErrorReason;
  readonly class: TalosErrorClass;
  /** The gRPC status code, when the node answered with one. */
  readonly grpcCode: number | undefined;

  constructor(
    reason: TalosErrorReason,
    message: string,
    options: { readonly cause?: unknown; readonly grpcCode?: number } = {},
  ) {
    const [kind, code] = reasons[reason];
    super(code, message, { cause: options.cause, details: { reason, class: kind } });
    this.name = "TalosError";
    this.reason = reason;
    this.class = kind;
    this.grpcCode = options.grpcCode;
  }
}

/** True for a {@link TalosError}, optionally of one reason. */
export function isTalosError(error: unknown, reason?: TalosErrorReason): error is TalosError {
  return error instanceof TalosError && (reason === undefined || error.reason === reason);
}

const byGrpcCode: ReadonlyMap<Code, TalosErrorReason> = new Map([
  [Code.Canceled, "cancelled"],
  [Code.Unknown, "failed"],
  [Code.InvalidArgument, "refused"],
  [Code.DeadlineExceeded, "timeout"],
  [Code.NotFound, "not_found"],
  [Code.AlreadyExists, "already_done"],
  [Code.PermissionDenied, "denied"],
  [Code.Unauthenticated, "denied"],
  [Code.ResourceExhausted, "failed"],
  [Code.FailedPrecondition, "not_ready"],
  [Code.Aborted, "failed"],
  [Code.OutOfRange, "refused"],
  [Code.Unimplemented, "unsupported"],
  [Code.Internal, "failed"],
  [Code.Unavailable, "unreachable"],
  [Code.DataLoss, "protocol"],
]);

/** What one failed call was about. */
export interface CallContext {
  /** `<address>:<port>`, with ` for <node>` when routed. */
  readonly target: string;
  /** Method name, such as `Version`. */
  readonly method: string;
  /** Why the connection under the call ended, when it did. */
  readonly connectionFailure: unknown;
  /** True when that connection is gone although nobody on our side ended the call. */
  readonly lost: boolean;
  /** True when our own deadline ended the call. */
  readonly expired: boolean;
  /** The deadline, for the message. */
  readonly timeoutMs: number;
}

/** Any failure of a call as a {@link TalosError}. */
export function talosErrorOf(error: unknown, context: CallContext): TalosError {
  if (error instanceof TalosError) return error;
  const what = `${context.method} on ${context.target}`;
  if (context.expired) {
    return new TalosError("timeout", `${what}: no answer within ${context.timeoutMs} ms`, { cause: error });
  }
  const chain = [...causes(error), ...causes(context.connectionFailure)];
  for (const cause of chain) {
    if (cause instanceof TalosError) return cause;
    const seen = tlsReasonOf(cause);
    if (seen) return new TalosError(seen, `${what}: ${tlsText[seen]}`, { cause: error });
  }
  for (const cause of chain) {
    if (isCoded(cause, "deadline_exceeded")) {
      return new TalosError("timeout", `${what}: ${cause.message}`, { cause: error });
    }
    if (isCoded(cause, "unavailable") || isConnectionLoss(cause)) {
      return new TalosError("unreachable", `${what}: ${cause.message}`, { cause: error });
    }
  }
  const cancelled = error instanceof ConnectError && error.code === Code.Canceled;
  if (context.lost && (cancelled || !(error instanceof ConnectError))) {
    return new TalosError("unreachable", `${what}: the connection was lost`, { cause: error });
  }
  if (error instanceof ConnectError) {
    const reason = byGrpcCode.get(error.code) ?? "failed";
    const text = error.rawMessage.slice(0, nodeTextLimit);
    return new TalosError(reason, `${what}: ${text || Code[error.code]}`, {
      cause: error,
      grpcCode: error.code,
    });
  }
  return new TalosError("failed", `${what}: ${messageOf(error).slice(0, nodeTextLimit)}`, { cause: error });
}

const tlsText = {
  certificate_required: "the node demands a client certificate, so it is configured already",
  untrusted_certificate:
    "the node's certificate is not signed by the cluster's CA: it is in maintenance mode or belongs to another cluster",
} as const;

/** Cause chains are short; the bound only guards against a ring. */
const causeDepthMax = 8;

function causes(error: unknown): Error[] {
  const chain: Error[] = [];
  let current = error;
  while (current instanceof Error && chain.length < causeDepthMax) {
    chain.push(current);
    current = current.cause;
  }
  return chain;
}

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

/** Node's names for TLS alerts 116 and 42, and for the ways a chain can fail to verify. */
function tlsReasonOf(error: Error): keyof typeof tlsText | undefined {
  const code = codeOf(error);
  if (/ALERT_CERTIFICATE_REQUIRED|ALERT_BAD_CERTIFICATE|ALERT_HANDSHAKE_FAILURE/.test(code)) {
    return "certificate_required";
  }
  const unverified =
    /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|INVALID_CA|ERR_TLS_CERT_ALTNAME)/.test(code) ||
    /ALERT_(UNKNOWN_CA|CERTIFICATE_UNKNOWN)/.test(code);
  return unverified ? "untrusted_certificate" : undefined;
}

const lossCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_STREAM_CANCEL",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_SSL_WRONG_VERSION_NUMBER",
]);

function isConnectionLoss(error: Error): boolean {
  return lossCodes.has(codeOf(error));
}
