/**
 * SQLite's result codes as typed failures (sqlite.org, "Result and Error Codes").
 */
import { CodedError, isObject } from "@kontinuum/std";
import { fault } from "../../faults.ts";

/** Primary result codes that mean something to us. */
const primary = { busy: 5, readonly: 8, io: 10, corrupt: 11, full: 13, cantopen: 14, notadb: 26 } as const;

/** The primary result code of a thrown value, when SQLite threw it. */
function codeOf(error: unknown): number | undefined {
  if (!isObject(error) || error["code"] !== "ERR_SQLITE_ERROR") return undefined;
  const code = error["errcode"];
  return typeof code === "number" ? code & 0xff : undefined;
}

/** Whether the device failed in a way after which nothing written may be trusted to be durable. */
export function isDeviceFailure(error: unknown): boolean {
  return codeOf(error) === primary.io;
}

/** Whether another process holds the file. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === primary.busy;
}

/** Turns what SQLite threw into a failure for callers; other values pass unchanged. */
export function sqliteFault(error: unknown, path: string): unknown {
  const cause = error;
  switch (codeOf(error)) {
    case undefined:
      return error;
    case primary.full:
      return fault(
        "no_space",
        `the disk of ${path} is full: nothing was written; free some space and try again`,
        {
          cause,
        },
      );
    case primary.readonly:
      return new CodedError(
        "failed_precondition",
        `${path} cannot be written: check the mount and its permissions`,
        {
          cause,
        },
      );
    case primary.cantopen:
      return new CodedError(
        "failed_precondition",
        `${path} cannot be opened: check that its folder exists and may be written`,
        {
          cause,
        },
      );
    case primary.corrupt:
    case primary.notadb:
      return fault("corrupt", `${path} is damaged or not a SQLite database: restore it from a backup`, {
        cause,
      });
    case primary.busy:
      return fault("lost", `${path} is in use by another process`, { cause });
    default:
      return fault("lost", `reading or writing ${path} failed: check the disk`, { cause });
  }
}
