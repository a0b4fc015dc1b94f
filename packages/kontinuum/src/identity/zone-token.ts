/**
 * The tokens a zone shows to the hub: a JSON Web Token (RFC 7519) signed with the zone's Ed25519 key.
 *
 * Claims: `iss` = `sub` = name of the Zone object, `aud` = {@link tokenAudience}, `iat`, `exp` at most
 * {@link tokenLifetimeSeconds} later.
 */
import type { KeyObject } from "node:crypto";
import { CodedError, isDnsSubdomain, type Clock } from "@kontinuum/std";
import { decodeJwt, errors, jwtVerify, SignJWT } from "jose";

/** Audience of every zone token. */
export const tokenAudience = "kontinuum-etcd-proxy";
/** Longest life of a token, seconds. */
export const tokenLifetimeSeconds = 300;
/** How far the clocks of hub and zone may differ, seconds. */
export const tokenLeewaySeconds = 10;
/** Longest token that is looked at, characters. */
const tokenLengthLimit = 4096;

/** Signs a token for `zone`, valid from now for {@link tokenLifetimeSeconds}. */
export function signZoneToken(zone: string, privateKey: KeyObject, clock: Clock): Promise<string> {
  const now = Math.floor(clock.now() / 1000);
  return new SignJWT()
    .setProtectedHeader({ alg: "EdDSA" })
    .setIssuer(zone)
    .setSubject(zone)
    .setAudience(tokenAudience)
    .setIssuedAt(now)
    .setExpirationTime(now + tokenLifetimeSeconds)
    .sign(privateKey);
}

const refused = (reason: string, cause?: unknown): CodedError =>
  new CodedError("unauthenticated", `the zone token is not valid: ${reason}`, { cause });

/** The Zone a token claims to come from, before anything is verified. Fails with `unauthenticated`. */
export function claimedZone(token: string): string {
  if (token.length > tokenLengthLimit) throw refused("it is too long");
  let issuer: unknown;
  try {
    issuer = decodeJwt(token).iss;
  } catch (cause) {
    throw refused("it is not a JSON Web Token", cause);
  }
  if (typeof issuer !== "string" || !isDnsSubdomain(issuer))
    throw refused("its issuer is not the name of a zone");
  return issuer;
}

/** A verified token. */
export interface VerifiedToken {
  readonly zone: string;
  /** Index of the key that signed it, in the order given. */
  readonly keyIndex: number;
  /** End of its life, milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/** Verifies a token against the keys a zone may sign with. Fails with `unauthenticated`. */
export async function verifyZoneToken(
  token: string,
  keys: readonly KeyObject[],
  clock: Clock,
): Promise<VerifiedToken> {
  const zone = claimedZone(token);
  const now = clock.now();
  for (const [keyIndex, key] of keys.entries()) {
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: ["EdDSA"],
        issuer: zone,
        subject: zone,
        audience: tokenAudience,
        requiredClaims: ["exp", "iat"],
        clockTolerance: tokenLeewaySeconds,
        currentDate: new Date(now),
      });
      const { exp = 0, iat = 0 } = payload;
      if (exp - iat > tokenLifetimeSeconds) throw refused(`it lives longer than ${tokenLifetimeSeconds} s`);
      if (iat * 1000 > now + tokenLeewaySeconds * 1000) throw refused("it was issued in the future");
      return { zone, keyIndex, expiresAtMs: exp * 1000 };
    } catch (error) {
      if (error instanceof CodedError) throw error;
      // A token of the other key of the pair: try that one.
      if (error instanceof errors.JWSSignatureVerificationFailed) continue;
      if (error instanceof errors.JWTExpired) throw refused("it has expired", error);
      throw refused("its claims or its form are wrong", error);
    }
  }
  throw refused("no current key of this zone signed it");
}
