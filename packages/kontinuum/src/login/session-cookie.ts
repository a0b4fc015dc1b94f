/**
 * The browser's session: who signed in, sealed into a cookie that only this hub can read.
 *
 * The cookie is a JSON Web Encryption (RFC 7516, direct key, A256GCM) of name, groups and expiry. The provider's own tokens
 * never leave the server, so a stolen cookie is no bearer token for the API, and its size does not grow with the token.
 * Every replica reads the same key, so any of them may answer.
 */
import type { UserInfo } from "@kontinuum/kapi";
import type { Clock } from "@kontinuum/std";
import { EncryptJWT, jwtDecrypt, type JWTPayload } from "jose";

/** Name of the session's cookie. */
export const sessionCookie = "kontinuum_session";
/** Name of the cookie that holds one login under way. */
export const flowCookie = "kontinuum_oidc_flow";
/** Life of a login under way, seconds. */
export const flowSeconds = 300;
/** Longest life of a session, seconds, whatever the provider's token says. */
export const sessionSecondsLimit = 12 * 3600;

/** Bytes of the sealing key. */
export const sessionKeyBytes = 32;

const audience = "kontinuum-console";

/** Seals a session until `expiresAtMs`. */
export function sealSession(
  user: UserInfo,
  expiresAtMs: number,
  key: Uint8Array,
  clock: Clock,
): Promise<string> {
  const now = Math.floor(clock.now() / 1000);
  const until = Math.min(Math.floor(expiresAtMs / 1000), now + sessionSecondsLimit);
  return new EncryptJWT({ groups: [...user.groups], uid: user.uid ?? "" })
    .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
    .setSubject(user.name)
    .setAudience(audience)
    .setIssuedAt(now)
    .setExpirationTime(until)
    .encrypt(key);
}

/** Opens a session; `undefined` when there is none, it expired or it was not made here. */
export async function openSession(
  cookie: string | undefined,
  key: Uint8Array,
  clock: Clock,
): Promise<UserInfo | undefined> {
  if (cookie === undefined || cookie.length > 8192) return undefined;
  let payload: JWTPayload;
  try {
    ({ payload } = await jwtDecrypt(cookie, key, {
      audience,
      keyManagementAlgorithms: ["dir"],
      contentEncryptionAlgorithms: ["A256GCM"],
      requiredClaims: ["sub", "exp"],
      currentDate: new Date(clock.now()),
    }));
  } catch {
    // Expired, forged, or sealed with a key that was replaced: whoever it is signs in again.
    return undefined;
  }
  const { sub = "", groups, uid } = payload;
  return {
    name: sub,
    groups: Array.isArray(groups) ? groups.filter((group): group is string => typeof group === "string") : [],
    ...(typeof uid === "string" && uid !== "" ? { uid } : {}),
  };
}

/** One cookie of a request, or `undefined`. */
export function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const part of (header ?? "").split(";")) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return undefined;
}

/** A `Set-Cookie` value. `Secure` is left out only for a clear-text origin on this machine, where it could not work. */
export function setCookie(name: string, value: string, seconds: number, secure: boolean): string {
  return `${name}=${value}; Path=/app; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure ? "; Secure" : ""}`;
}
