/**
 * The failures of a store, each with a reason that machines can tell apart.
 *
 * The `code` says what a caller may do; `details.reason` says which rule was broken, so that the
 * etcd face can answer with etcd's own text and a remote store can turn that text back. Nothing else
 * in the package makes a `CodedError` for these cases.
 */
import { CodedError, isCoded, type ErrorCode } from "@kontinuum/std";
import type { LeaseId, Revision } from "./contract.ts";

/** The closed set of reasons and the code each one carries. */
export const faultCodes = {
  empty_key: "invalid_argument",
  key_not_found: "invalid_argument",
  value_provided: "invalid_argument",
  lease_provided: "invalid_argument",
  duplicate_key: "invalid_argument",
  too_many_ops: "invalid_argument",
  future_revision: "invalid_argument",
  invalid_range: "invalid_argument",
  compacted: "gone",
  lease_not_found: "not_found",
  lease_exists: "already_exists",
  lease_ttl: "invalid_argument",
  request_too_large: "payload_too_large",
  no_space: "unavailable",
  overloaded: "unavailable",
  closed: "unavailable",
  lost: "unavailable",
  timeout: "deadline_exceeded",
  corrupt: "data_loss",
} as const satisfies Record<string, ErrorCode>;

/** Why a store refused. */
export type FaultReason = keyof typeof faultCodes;

/** A store's failure with its reason. */
export function fault(
  reason: FaultReason,
  message: string,
  options: { readonly cause?: unknown; readonly details?: Readonly<Record<string, unknown>> } = {},
): CodedError {
  return new CodedError(faultCodes[reason], message, {
    ...(options.cause === undefined ? {} : { cause: options.cause }),
    details: { ...options.details, reason },
  });
}

/** The reason of a failure, when it has one of ours. */
export function reasonOf(error: unknown): FaultReason | undefined {
  if (!isCoded(error)) return undefined;
  const reason = error.details["reason"];
  return typeof reason === "string" && isReason(reason) ? reason : undefined;
}

function isReason(text: string): text is FaultReason {
  return Object.hasOwn(faultCodes, text);
}

/** History below `compactRevision` is gone. */
export function compacted(asked: Revision, compactRevision: Revision): CodedError {
  return fault(
    "compacted",
    `revision ${asked} was compacted (oldest is ${compactRevision}): start again from a fresh read`,
    { details: { compactRevision } },
  );
}

/** A revision that does not exist yet. */
export function futureRevision(asked: Revision, newest: Revision): CodedError {
  return fault("future_revision", `revision ${asked} is in the future (newest is ${newest})`, {
    details: { revision: newest },
  });
}

/** A lease that does not exist (any more). */
export function leaseNotFound(id: LeaseId): CodedError {
  return fault("lease_not_found", `lease ${leaseText(id)} does not exist: it expired or was revoked`);
}

/** The store was closed under the caller. */
export function storeClosed(): CodedError {
  return fault("closed", "the store is closed");
}

/** A lease id as etcd's tools print it: 16 hexadecimal digits. */
export function leaseText(id: LeaseId): string {
  return BigInt.asUintN(64, id).toString(16).padStart(16, "0");
}
