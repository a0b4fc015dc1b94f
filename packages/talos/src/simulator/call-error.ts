/**
 * Failures as a Talos node words them, with the gRPC codes it uses.
 */
import { Code, ConnectError } from "@connectrpc/connect";
import { isCoded, type ErrorCode } from "@kontinuum/std";

/** Anything a handler of Talos returns as a plain error. */
export const unknownError = (message: string): ConnectError => new ConnectError(message, Code.Unknown);
/** A request that can't be understood or is refused by validation. */
export const invalidArgument = (message: string): ConnectError =>
  new ConnectError(message, Code.InvalidArgument);
/** The node is not in a state for it. */
export const failedPrecondition = (message: string): ConnectError =>
  new ConnectError(message, Code.FailedPrecondition);
/** The caller may not. */
export const permissionDenied = (message: string): ConnectError =>
  new ConnectError(message, Code.PermissionDenied);
/** The node does not do this. */
export const unimplemented = (message: string): ConnectError => new ConnectError(message, Code.Unimplemented);
/** It is done already. */
export const alreadyExists = (message: string): ConnectError => new ConnectError(message, Code.AlreadyExists);
/** There is no such thing. */
export const notFound = (message: string): ConnectError => new ConnectError(message, Code.NotFound);
/** Nobody answers. */
export const unavailable = (message: string): ConnectError => new ConnectError(message, Code.Unavailable);
/** The deadline of the call has passed. */
export const deadlineExceeded = (message: string): ConnectError =>
  new ConnectError(message, Code.DeadlineExceeded);

const wireCodes: Readonly<Partial<Record<ErrorCode, Code>>> = {
  cancelled: Code.Canceled,
  failed_precondition: Code.FailedPrecondition,
  invalid_argument: Code.InvalidArgument,
  not_found: Code.NotFound,
  unavailable: Code.Unavailable,
};

/** A failure as it goes over the wire: those of the simulation have codes of their own. */
export function wireError(error: unknown): unknown {
  const code = isCoded(error) ? wireCodes[error.code] : undefined;
  return isCoded(error) && code !== undefined ? new ConnectError(error.message, code) : error;
}
