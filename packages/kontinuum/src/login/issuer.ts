/**
 * The OpenID provider of this hub: discovered once at start, within ten seconds, or the start fails.
 *
 * Source: OpenID Connect Discovery 1.0.
 */
import { CodedError, messageOf, type Edges } from "@kontinuum/std";
import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from "jose";
import * as oidc from "openid-client";
import { issuerFetch } from "./issuer-fetch.ts";

/** How to reach the provider. */
export interface IssuerOptions {
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly redirectUrl: string;
}

/** A discovered provider. */
export interface Issuer {
  readonly options: IssuerOptions;
  /** What openid-client needs for the browser's login. */
  readonly configuration: oidc.Configuration;
  /** The provider's keys, fetched on use and kept; refreshed when an unknown key is seen. */
  readonly keys: JWTVerifyGetKey;
  /** Where a sign-out at the provider begins, if it offers one. */
  readonly endSessionEndpoint: string | undefined;
}

const discoverySeconds = 10;
/** How long keys are kept before they are fetched again. */
const keyLifeMs = 10 * 60_000;

/** Discovers the provider. Fails with `unavailable`, naming the issuer. */
export async function discoverIssuer(
  options: IssuerOptions,
  edges: Pick<Edges, "network" | "clock">,
): Promise<Issuer> {
  const server = new URL(options.issuerUrl);
  // Clear text is for a provider on this machine; anything else has to be https.
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(server.hostname);
  if (server.protocol !== "https:" && !local) {
    throw new CodedError(
      "invalid_argument",
      `KONTINUUM_OIDC_ISSUER_URL must be https, not ${options.issuerUrl}`,
    );
  }
  const call = issuerFetch(options.issuerUrl, edges);
  let configuration: oidc.Configuration;
  try {
    configuration = await oidc.discovery(server, options.clientId, undefined, oidc.None(), {
      timeout: discoverySeconds,
      [oidc.customFetch]: call,
      ...(local ? { execute: [oidc.allowInsecureRequests] } : {}),
    });
  } catch (cause) {
    throw new CodedError(
      "unavailable",
      `KONTINUUM_OIDC_ISSUER_URL: ${options.issuerUrl} could not be discovered (${reasonOf(cause)}); it must serve /.well-known/openid-configuration`,
      { cause },
    );
  }
  const metadata = configuration.serverMetadata();
  if (metadata.jwks_uri === undefined) {
    throw new CodedError("unavailable", `the issuer ${options.issuerUrl} publishes no keys (jwks_uri)`);
  }
  return {
    options,
    configuration,
    keys: createRemoteJWKSet(new URL(metadata.jwks_uri), {
      timeoutDuration: discoverySeconds * 1000,
      cacheMaxAge: keyLifeMs,
      [customFetch]: call,
    }),
    endSessionEndpoint: metadata.end_session_endpoint,
  };
}

/** The innermost reason: "fetch failed" alone helps nobody. */
function reasonOf(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  return messageOf(inner);
}
