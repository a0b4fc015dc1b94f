/**
 * Arrays as PostgreSQL receives them in binary: a third of the bytes of their text form, and nothing to parse on either
 * side. A statement casts the parameter (`$1::bytea[]`), and the client sends a `Buffer` as binary.
 *
 * The form is that of `array_recv` in PostgreSQL's public source: dimensions, a null flag, the element type, length and
 * lower bound of the one dimension, then each element with its length.
 */
import type { LeaseId } from "../../contract.ts";

/** Object ids of element types, fixed by PostgreSQL's catalog. */
const types = { bytea: 17, int8: 20, int4: 23 } as const;
const headerBytes = 20;

function start(type: keyof typeof types, count: number, bytes: number): Buffer {
  const empty = count === 0;
  const array = Buffer.allocUnsafe(empty ? 12 : headerBytes + bytes);
  array.writeInt32BE(empty ? 0 : 1, 0);
  array.writeInt32BE(0, 4);
  array.writeInt32BE(types[type], 8);
  if (empty) return array;
  array.writeInt32BE(count, 12);
  array.writeInt32BE(1, 16);
  return array;
}

/** A `bytea[]`. */
export function byteaArray(values: readonly Buffer[]): Buffer {
  let bytes = 0;
  for (const value of values) bytes += 4 + value.length;
  const array = start("bytea", values.length, bytes);
  let at = headerBytes;
  for (const value of values) {
    at = array.writeInt32BE(value.length, at);
    at += value.copy(array, at);
  }
  return array;
}

/** An `int8[]` of safe integers. */
export function int8Array(values: readonly number[]): Buffer {
  const array = start("int8", values.length, values.length * 12);
  let at = headerBytes;
  for (const value of values) {
    at = array.writeInt32BE(8, at);
    at = array.writeInt32BE(Math.floor(value / 2 ** 32), at);
    at = array.writeUInt32BE(value >>> 0, at);
  }
  return array;
}

/** An `int8[]` of lease ids. */
export function leaseArray(ids: readonly LeaseId[]): Buffer {
  const array = start("int8", ids.length, ids.length * 12);
  let at = headerBytes;
  for (const id of ids) {
    at = array.writeInt32BE(8, at);
    at = array.writeBigInt64BE(id, at);
  }
  return array;
}

/** An `int4[]`. */
export function int4Array(values: readonly number[]): Buffer {
  const array = start("int4", values.length, values.length * 8);
  let at = headerBytes;
  for (const value of values) {
    at = array.writeInt32BE(4, at);
    at = array.writeInt32BE(value, at);
  }
  return array;
}
