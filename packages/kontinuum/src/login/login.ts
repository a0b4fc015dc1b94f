/**
 * Signing in with a browser: authorization code with PKCE, a state and a nonce, each used once.
 *
 * The address `/app` is also where the provider sends the browser back to. Every failure clears the session and
 * leads to `/app?error=…`, where it is shown as a sentence.
 *
 * Source: OpenID Connect Core 1.0 section 3.1; RFC 7636 (PKCE).
 */
import type { UserInfo } from "@kontinuum/kapi";
import { CodedError, isCoded, messageOf, type Edges } from "@kontinuum/std";
import * as oidc from "openid-client";
import { verifyIdToken } from "./id-token.ts";
import type { Issuer } from "./issuer.ts";
import {
  cookieOf,
  flowCookie,
  flowSeconds,
  openSession,
  sealSession,
  sessionCookie,
  sessionSecondsLimit,
  setCookie,
} from "./session-cookie.ts";

const scope = "openid profile email groups";

/** What the login needs. */
export interface LoginOptions {
  readonly issuer: Issuer;
  /** Sealing key of sessions, shared by all replicas. */
  sessionKey(): Promise<Uint8Array>;
  readonly edges: Pick<Edges, "clock" | "log">;
}

/** The steps of a browser's login; each takes and gives plain HTTP parts. */
export interface Login {
  /** Who sends this request, or `undefined`. */
  user(cookieHeader: string | undefined): Promise<UserInfo | undefined>;
  /** `GET /app/login` */
  begin(secure: boolean): Promise<Response>;
  /** `GET /app?code=…` and the provider's errors. */
  finish(url: URL, cookieHeader: string | undefined, secure: boolean): Promise<Response>;
  /** `/app/logout`; `everywhere` also ends the session at the provider, where it offers that. */
  end(secure: boolean, everywhere: boolean): Response;
}

/** A session that was refused by the API: what the sign-in page then says. */
export const forbiddenText = "You are signed in, but not permitted to use this hub. Ask an administrator.";

/** Makes the login of one provider. */
export function createLogin({ issuer, sessionKey, edges }: LoginOptions): Login {
  return {
    async user(cookieHeader) {
      const cookie = cookieOf(cookieHeader, sessionCookie);
      return cookie === undefined ? undefined : openSession(cookie, await sessionKey(), edges.clock);
    },
    async begin(secure) {
      const verifier = oidc.randomPKCECodeVerifier();
      const state = oidc.randomState();
      const nonce = oidc.randomNonce();
      const target = oidc.buildAuthorizationUrl(issuer.configuration, {
        redirect_uri: issuer.options.redirectUrl,
        scope,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        state,
        nonce,
      });
      const flow = Buffer.from(new URLSearchParams({ state, nonce, verifier }).toString()).toString(
        "base64url",
      );
      return redirect(target.href, [setCookie(flowCookie, flow, flowSeconds, secure)]);
    },
    async finish(url, cookieHeader, secure) {
      // The flow's cookie is used once, whatever comes of it.
      const spent = setCookie(flowCookie, "", 0, secure);
      try {
        const { user, expiresAtMs } = await exchange(issuer, url, cookieOf(cookieHeader, flowCookie), edges);
        const cookie = await sealSession(user, expiresAtMs, await sessionKey(), edges.clock);
        const seconds = Math.min(
          sessionSecondsLimit,
          Math.max(0, Math.floor((expiresAtMs - edges.clock.now()) / 1000)),
        );
        return redirect("/app/home", [spent, setCookie(sessionCookie, cookie, seconds, secure)]);
      } catch (error) {
        edges.log.warn("a login failed", {
          reason: messageOf(isCoded(error) ? (error.cause ?? error) : error),
        });
        const text = isCoded(error) ? error.message : "The login failed. Try again.";
        return redirect(`/app?error=${encodeURIComponent(text)}`, [
          spent,
          setCookie(sessionCookie, "", 0, secure),
        ]);
      }
    },
    end(secure, everywhere) {
      const provider = everywhere ? issuer.endSessionEndpoint : undefined;
      return redirect(provider ?? "/app", [setCookie(sessionCookie, "", 0, secure)]);
    },
  };
}

function redirect(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ location, "cache-control": "no-store" });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(null, { status: 302, headers });
}

const failure = (text: string, cause?: unknown): CodedError =>
  new CodedError("unauthenticated", text, { cause });

/** Exchanges the code of a callback for an ID token and verifies it. Messages are what the sign-in page shows. */
async function exchange(
  issuer: Issuer,
  url: URL,
  flowValue: string | undefined,
  { clock }: Pick<Edges, "clock">,
): Promise<{ user: UserInfo; expiresAtMs: number }> {
  const flow = new URLSearchParams(Buffer.from(flowValue ?? "", "base64url").toString("utf8"));
  const [state, nonce, verifier] = ["state", "nonce", "verifier"].map((name) => flow.get(name) ?? "");
  if (!state || !nonce || !verifier)
    throw failure("The login took too long or was started elsewhere. Try again.");
  const refusedBy = url.searchParams.get("error");
  if (refusedBy !== null) throw failure("The identity provider refused the login.", new Error(refusedBy));
  if (url.searchParams.get("state") !== state)
    throw failure("The login does not belong to this browser. Try again.");
  // The provider compares this address with the registered one, which may differ from what a proxy shows us.
  const callback = new URL(issuer.options.redirectUrl);
  callback.search = url.search;
  let idToken: string | undefined;
  try {
    const tokens = await oidc.authorizationCodeGrant(issuer.configuration, callback, {
      pkceCodeVerifier: verifier,
      expectedState: state,
      expectedNonce: nonce,
      idTokenExpected: true,
    });
    idToken = tokens.id_token;
  } catch (cause) {
    const isNonce = cause instanceof Error && /nonce/i.test(cause.message);
    throw failure(
      isNonce ? "The login was answered twice. Try again." : "The login could not be completed. Try again.",
      cause,
    );
  }
  if (idToken === undefined) throw failure("The identity provider sent no ID token.");
  return verifyIdToken(idToken, issuer, clock);
}
