/**
 * etcd's own words for failures. Clients compare these texts, so they are part of the wire contract
 * (etcd public documentation, `api/v3rpc/rpctypes`). One table serves both directions: the face turns a
 * reason into text and code, the remote store turns text back into the reason.
 */
import { Code, ConnectError } from "@connectrpc/connect";
import { CodedError, errorTable, isCoded, isObject, type ErrorCode } from "@kontinuum/std";
import { fault, reasonOf, type FaultReason } from "../faults.ts";

interface Wire {
  readonly code: Code;
  readonly text: string;
}

/** What goes over the wire for each reason. */
const wire: Readonly<Record<FaultReason, Wire>> = {
  empty_key: { code: Code.InvalidArgument, text: "etcdserver: key is not provided" },
  key_not_found: { code: Code.InvalidArgument, text: "etcdserver: key not found" },
  value_provided: { code: Code.InvalidArgument, text: "etcdserver: value is provided" },
  lease_provided: { code: Code.InvalidArgument, text: "etcdserver: lease is provided" },
  duplicate_key: { code: Code.InvalidArgument, text: "etcdserver: duplicate key given in txn request" },
  too_many_ops: { code: Code.InvalidArgument, text: "etcdserver: too many operations in txn request" },
  future_revision: {
    code: Code.OutOfRange,
    text: "etcdserver: mvcc: required revision is a future revision",
  },
  invalid_range: { code: Code.InvalidArgument, text: "etcdserver: invalid sort option" },
  compacted: { code: Code.OutOfRange, text: "etcdserver: mvcc: required revision has been compacted" },
  lease_not_found: { code: Code.NotFound, text: "etcdserver: requested lease not found" },
  lease_exists: { code: Code.FailedPrecondition, text: "etcdserver: lease already exists" },
  lease_ttl: { code: Code.OutOfRange, text: "etcdserver: too large lease TTL" },
  request_too_large: { code: Code.InvalidArgument, text: "etcdserver: request is too large" },
  no_space: { code: Code.ResourceExhausted, text: "etcdserver: mvcc: database space exceeded" },
  overloaded: { code: Code.ResourceExhausted, text: "etcdserver: too many requests" },
  closed: { code: Code.Unavailable, text: "etcdserver: server stopped" },
  lost: { code: Code.Unavailable, text: "etcdserver: no leader" },
  timeout: { code: Code.Unavailable, text: "etcdserver: request timed out" },
  corrupt: { code: Code.DataLoss, text: "etcdserver: corrupt cluster" },
};

/** Texts for failures that the caller's rules make. */
const byCode: Partial<Record<ErrorCode, Wire>> = {
  permission_denied: { code: Code.PermissionDenied, text: "etcdserver: permission denied" },
  unauthenticated: { code: Code.Unauthenticated, text: "etcdserver: invalid auth token" },
  rate_limited: { code: Code.ResourceExhausted, text: "etcdserver: too many requests" },
};

const reasonByText: ReadonlyMap<string, FaultReason> = new Map([
  ...Object.entries(wire).flatMap(([reason, { text }]): [string, FaultReason][] => {
    const known = Object.keys(wire).find((key): key is FaultReason => key === reason);
    return known ? [[text, known]] : [];
  }),
  // What a real cluster says beside what we say.
  ["etcdserver: leader changed", "lost"],
  ["etcdserver: not healthy for reconfiguration", "lost"],
  ["etcdserver: request timed out, possibly due to previous leader failure", "timeout"],
  ["etcdserver: request timed out, possibly due to connection lost", "timeout"],
  ["etcdserver: request timed out, waiting for the applied index took too long", "timeout"],
]);

/** A failure as etcd would answer it. */
export function toWire(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  const reason = reasonOf(error);
  const known = reason ? wire[reason] : isCoded(error) ? byCode[error.code] : undefined;
  if (known) return new ConnectError(known.text, known.code);
  if (isCoded(error)) {
    const code = grpcCode(errorTable[error.code].grpc);
    return new ConnectError(error.message, code);
  }
  return new ConnectError("internal error", Code.Internal);
}

function grpcCode(value: number): Code {
  const codes: readonly Code[] = Object.values(Code).filter((code): code is Code => typeof code === "number");
  return codes.find((code) => code === value) ?? Code.Internal;
}

/** A failure of a remote etcd as one of ours. `details` are added, for instance the compact revision. */
export function fromWire(error: unknown, details: Readonly<Record<string, unknown>> = {}): CodedError {
  if (isCoded(error)) return error;
  const cause = ConnectError.from(error);
  const reason = reasonByText.get(cause.rawMessage);
  const options = { cause, details };
  if (reason === "overloaded" || reason === "lost" || reason === "closed")
    return fault(reason, `the store cannot serve at the moment: ${cause.rawMessage}`, options);
  if (reason) return fault(reason, cause.rawMessage, options);
  switch (cause.code) {
    case Code.Canceled:
      // Reset by the other side or by the end of its connection: nobody here cancelled anything.
      if (cause.rawMessage.startsWith("http/2"))
        return fault(
          "lost",
          "the connection to the store was lost; whether the request was done is unknown",
          options,
        );
      return new CodedError(
        "cancelled",
        "the request was cancelled; whether it was done is unknown",
        options,
      );
    case Code.DeadlineExceeded:
      return fault("timeout", "the store did not answer in time", options);
    case Code.Unauthenticated:
      return new CodedError(
        "unauthenticated",
        `the store refused the credentials: ${cause.rawMessage}`,
        options,
      );
    case Code.PermissionDenied:
      return new CodedError("permission_denied", `the store refused: ${cause.rawMessage}`, options);
    case Code.ResourceExhausted:
      // Sent by gRPC itself for a message above the server's limit.
      return /larger than|too large/.test(cause.rawMessage)
        ? fault("request_too_large", cause.rawMessage, options)
        : fault("overloaded", cause.rawMessage, options);
    case Code.InvalidArgument:
      return new CodedError("invalid_argument", cause.rawMessage, options);
    case Code.Unimplemented:
      return new CodedError("unsupported", `the store does not offer this: ${cause.rawMessage}`, options);
    default:
      return fault("lost", `the store cannot be reached: ${rootText(cause)}`, options);
  }
}

function rootText(error: ConnectError): string {
  const { cause } = error;
  return isObject(cause) && typeof cause["code"] === "string" ? cause["code"] : error.rawMessage;
}
