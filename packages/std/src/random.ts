/**
 * Randomness as a parameter. Only this module asks the operating system for it.
 */
import { randomBytes, randomUUID } from "node:crypto";

/** A source of random bytes and what is made of them. */
export interface Random {
  /** `count` random bytes. */
  bytes(count: number): Uint8Array;
  /** A number in `[0, 1)`. */
  float(): number;
  /** An integer in `[0, below)`. */
  integer(below: number): number;
  /** An RFC 9562 version 4 UUID. */
  uuid(): string;
}

function fromBytes(bytes: (count: number) => Uint8Array): Random {
  const float = (): number => {
    const b = Buffer.from(bytes(7));
    return (b.readUIntBE(0, 6) * 32 + ((b[6] ?? 0) >> 3)) / 2 ** 53;
  };
  return {
    bytes,
    float,
    integer: (below) => Math.floor(float() * below),
    uuid: () => formatUuid(bytes(16), 4),
  };
}

/** Formats 16 bytes as a UUID of the given version (RFC 9562). */
export function formatUuid(raw: Uint8Array, version: 4 | 7): string {
  const b = Buffer.from(raw);
  b[6] = ((b[6] ?? 0) & 0x0f) | (version << 4);
  b[8] = ((b[8] ?? 0) & 0x3f) | 0x80;
  const hex = b.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const poolSize = 4096;
let pool: Buffer = Buffer.alloc(0);
let used = 0;

/** Small requests share one call to the system: an identifier for every request costs next to nothing. */
function pooledBytes(count: number): Uint8Array {
  if (count > 64) return randomBytes(count);
  if (used + count > pool.length) {
    pool = randomBytes(poolSize);
    used = 0;
  }
  const out = Buffer.from(pool.subarray(used, used + count));
  pool.fill(0, used, used + count);
  used += count;
  return out;
}

/** The operating system's random source. */
export const systemRandom: Random = { ...fromBytes(pooledBytes), uuid: () => randomUUID() };

/** A reproducible source (SplitMix64). For simulations and tests only: never for keys of a real system. */
export function seededRandom(seed: number | bigint): Random {
  let state = BigInt.asUintN(64, BigInt(seed));
  const next = (): bigint => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  };
  return fromBytes((count) => {
    const out = Buffer.alloc(Math.ceil(count / 8) * 8);
    for (let i = 0; i < out.length; i += 8) out.writeBigUInt64LE(next(), i);
    return out.subarray(0, count);
  });
}
