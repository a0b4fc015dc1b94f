/**
 * Who an ID token speaks for: RS256, our client as audience, `email` as the name, `groups` as the groups.
 *
 * Source: OpenID Connect Core 1.0, sections 2 and 3.1.3.7; claim rules of the product's contract.
 */
import type { UserInfo } from "@kontinuum/kapi";
import { CodedError, type Clock } from "@kontinuum/std";
import { errors, jwtVerify, type JWTPayload } from "jose";
import type { Issuer } from "./issuer.ts";

/** A verified token. */
export interface VerifiedIdToken {
  readonly user: UserInfo;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
  readonly claims: JWTPayload;
}

/** Longest token that is looked at, characters. */
const tokenLengthLimit = 64 * 1024;
const leewaySeconds = 10;

/**
 * Verifies a token. Fails with `unauthenticated` when it is wrong, with `unavailable` when the provider's keys can't be
 * had.
 */
export async function verifyIdToken(token: string, issuer: Issuer, clock: Clock): Promise<VerifiedIdToken> {
  if (token.length > tokenLengthLimit) throw new CodedError("unauthenticated", "the token is too long");
  const { issuerUrl, clientId } = issuer.options;
  let claims: JWTPayload;
  try {
    ({ payload: claims } = await jwtVerify(token, issuer.keys, {
      algorithms: ["RS256"],
      issuer: issuer.configuration.serverMetadata().issuer,
      audience: clientId,
      requiredClaims: ["exp", "iat", "sub"],
      clockTolerance: leewaySeconds,
      currentDate: new Date(clock.now()),
    }));
  } catch (cause) {
    if (cause instanceof errors.JWKSTimeout || (cause instanceof TypeError && /fetch/.test(cause.message))) {
      throw new CodedError("unavailable", `the keys of ${issuerUrl} can't be fetched`, {
        cause,
        retryAfterMs: 2000,
      });
    }
    throw new CodedError("unauthenticated", "the token is not a valid ID token of this server", { cause });
  }
  return { user: userOf(claims), expiresAtMs: (claims.exp ?? 0) * 1000, claims };
}

function userOf(claims: JWTPayload): UserInfo {
  const { email, email_verified: verified, groups } = claims;
  if (typeof email !== "string" || email === "")
    throw new CodedError("unauthenticated", "the token has no email claim");
  if (verified === false)
    throw new CodedError("unauthenticated", `the address ${email} is not verified at the provider`);
  // Names with this prefix belong to the system: a provider must not be able to give them out.
  const list = (Array.isArray(groups) ? groups : [groups]).filter(
    (group): group is string => typeof group === "string" && group !== "",
  );
  if (email.startsWith("system:"))
    throw new CodedError("unauthenticated", "the email claim names a system user");
  return {
    name: email,
    groups: [...list.filter((group) => !group.startsWith("system:")), "system:authenticated"],
    ...(claims.sub === undefined ? {} : { uid: claims.sub }),
  };
}
