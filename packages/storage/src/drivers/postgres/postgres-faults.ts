/**
 * Failures of PostgreSQL as typed ones (its documentation, appendix "PostgreSQL Error Codes").
 */
import { CodedError, isCoded, isObject, messageOf } from "@kontinuum/std";
import { fault } from "../../faults.ts";

/** Classes and codes after which the same call may succeed once the database is back. */
const passing = [/^08/, /^53/, /^57P/, /^57014$/, /^55P03$/, /^40/, /^25P03$/];

/** The code of an error that the server sent. A socket's own codes can look alike (EPIPE): those have no severity. */
function sqlState(error: unknown): string | undefined {
  if (!isObject(error) || typeof error["severity"] !== "string") return undefined;
  const { code } = error;
  return typeof code === "string" ? code : undefined;
}

/** Whether the connection or the database was lost, as opposed to a statement being wrong. */
export function isPassing(error: unknown): boolean {
  const state = sqlState(error);
  // Without a state it is the socket that failed.
  return state === undefined ? !isCoded(error) : passing.some((pattern) => pattern.test(state));
}

/** Turns what the client threw into a failure for callers; coded ones pass unchanged. */
export function postgresFault(error: unknown): CodedError {
  if (isCoded(error)) return error;
  const cause = error;
  const state = sqlState(error);
  switch (state) {
    case "57014":
    case "55P03":
      return fault("timeout", "PostgreSQL did not answer in time: it is overloaded or another writer hangs", {
        cause,
      });
    case "53100":
      return fault(
        "no_space",
        "the disk of PostgreSQL is full: nothing was written; free some space and try again",
        {
          cause,
        },
      );
    case "25006":
      return new CodedError(
        "failed_precondition",
        "PostgreSQL is read-only (a standby?): connect to the primary",
        {
          cause,
        },
      );
    case "28P01":
    case "28000":
      return new CodedError("unauthenticated", "PostgreSQL refused user or password of the storage URL", {
        cause,
      });
    case "3D000":
      return new CodedError(
        "failed_precondition",
        "the database of the storage URL does not exist: create it",
        {
          cause,
        },
      );
    case "42501":
      return new CodedError(
        "permission_denied",
        "the user of the storage URL may not create or change its tables",
        {
          cause,
        },
      );
    case "XX001":
    case "XX002":
      return fault("corrupt", "PostgreSQL reports damaged data: restore it from a backup", { cause });
    default:
      if (state !== undefined && !isPassing(error))
        return new CodedError("internal", `PostgreSQL refused a statement (${state})`, { cause });
      return fault("lost", `PostgreSQL cannot be reached: ${networkText(error)}`, { cause });
  }
}

function networkText(error: unknown): string {
  const code = isObject(error) ? error["code"] : undefined;
  return typeof code === "string" ? code : messageOf(error);
}
