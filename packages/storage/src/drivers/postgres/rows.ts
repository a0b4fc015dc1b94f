/**
 * Rows from PostgreSQL as typed values. 64-bit numbers arrive as text.
 */
import type { KeyValue, LeaseId } from "../../contract.ts";
import { fault } from "../../faults.ts";
import type { Row } from "./connections.ts";

function damaged(what: string): never {
  throw fault(
    "corrupt",
    `the database holds a ${what} of the wrong type: run verify and restore from a backup`,
  );
}

/** A column that is a whole number. */
export function integer(value: unknown): number {
  const number = typeof value === "string" ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) ? number : damaged("number");
}

/** A column that is a number with a fraction. */
export function real(value: unknown): number {
  return typeof value === "number" ? value : damaged("number");
}

/** A column that is bytes. */
export function bytes(value: unknown): Buffer {
  return Buffer.isBuffer(value) ? value : damaged("bytea");
}

/** A column that is a lease id as text. */
export function leaseId(value: unknown): LeaseId {
  return typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : damaged("lease id");
}

/** Columns `from`… of a row as a pair; `undefined` when an outer join found none. */
export function pairAt(row: Row, from: number): KeyValue | undefined {
  if (row[from] === null) return undefined;
  return {
    key: bytes(row[from]),
    modRevision: integer(row[from + 1]),
    createRevision: integer(row[from + 2]),
    version: integer(row[from + 3]),
    lease: leaseId(row[from + 4]),
    value: bytes(row[from + 5]),
  };
}
