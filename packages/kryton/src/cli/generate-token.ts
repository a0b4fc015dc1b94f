/**
 * API tokens and their digests: pure helpers of `krytonctl`.
 */
import { createHash } from "node:crypto";
import type { Random } from "@kontinuum/std";

/** A new token: 32 random bytes, unpadded base64url, 43 characters. */
export function generateToken(random: Random): string {
  return Buffer.from(random.bytes(32)).toString("base64url");
}

/** The digest of a token as a keys file holds it. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token, "utf8").digest("hex");
}
