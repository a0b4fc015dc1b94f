/**
 * Rows from SQLite as typed values. Anything of another shape is damage and is said to be.
 */
import type { KeyValue } from "../../contract.ts";
import { fault } from "../../faults.ts";

function damaged(what: string): never {
  throw fault(
    "corrupt",
    `the database holds a ${what} of the wrong type: run verify and restore from a backup`,
  );
}

/** The columns of a row, or `undefined` when there is none. */
export function columns(row: unknown): readonly unknown[] | undefined {
  if (row === undefined) return undefined;
  return Array.isArray(row) ? row : damaged("row");
}

/** A column that is a number. */
export function integer(value: unknown): number {
  return typeof value === "number" ? value : damaged("number");
}

/** A column that is bytes. */
export function bytes(value: unknown): Buffer {
  if (!(value instanceof Uint8Array)) return damaged("blob");
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

/** The first column of the only row, as a number. */
export function scalar(row: unknown): number {
  return integer(columns(row)?.[0]);
}

/** A pair with its log id, from the columns that `Statements` names. */
export function decodePair(row: unknown): { readonly id: number; readonly kv: KeyValue } {
  const [id, key, rev, created, version, lease, value] = columns(row) ?? damaged("row");
  return {
    id: integer(id),
    kv: {
      key: bytes(key),
      value: bytes(value),
      createRevision: integer(created),
      modRevision: integer(rev),
      version: integer(version),
      lease: lease === null ? 0n : typeof lease === "string" ? BigInt(lease) : damaged("lease"),
    },
  };
}
