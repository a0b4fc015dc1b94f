/**
 * Bearer tokens of the provider as an authenticator of the API server. A token that is wrong is refused with 401, never
 * taken for anonymous; verified ones are remembered until they expire, at most a minute.
 */
import { createHash } from "node:crypto";
import type { Authenticator, Credentials, UserInfo } from "@kontinuum/kapi";
import { isCoded, type Clock } from "@kontinuum/std";
import { LRUCache } from "lru-cache";
import { verifyIdToken } from "./id-token.ts";
import type { Issuer } from "./issuer.ts";

const rememberedTokens = 2048;
const rememberMs = 60_000;

/** The authenticator. */
export function oidcAuthenticator(issuer: Issuer, clock: Clock): Authenticator {
  // Keyed by digest, so that a memory dump of the cache holds no token.
  const verified = new LRUCache<string, { readonly user: UserInfo; readonly untilMs: number }>({
    max: rememberedTokens,
  });
  return {
    name: "oidc",
    async authenticate({ bearer }: Credentials) {
      if (bearer === undefined || bearer.split(".").length !== 3) return undefined;
      const digest = createHash("sha256").update(bearer).digest("base64");
      const known = verified.get(digest);
      if (known && known.untilMs > clock.now()) return known.user;
      try {
        const { user, expiresAtMs } = await verifyIdToken(bearer, issuer, clock);
        verified.set(digest, { user, untilMs: Math.min(expiresAtMs, clock.now() + rememberMs) });
        return user;
      } catch (error) {
        if (isCoded(error, "unauthenticated")) return "invalid";
        throw error;
      }
    },
  };
}
