/**
 * Plain documents at fixed paths: metrics, and what others need to check service account tokens.
 */
import type { ServiceAccountTokens } from "../auth/service-account-tokens.ts";
import type { Metrics } from "./metrics.ts";

/** A document by path. */
export type Documents = ReadonlyMap<
  string,
  () => Promise<{ readonly contentType: string; readonly body: string }>
>;

/** The documents of a server that is reached at `url()`. */
export function plainDocuments(
  metrics: Metrics,
  tokens: ServiceAccountTokens | undefined,
  url: () => string,
): Documents {
  const metricsText = async () => ({ contentType: metrics.contentType, body: await metrics.text() });
  if (!tokens) return new Map([["/metrics", metricsText]]);
  return new Map([
    ["/metrics", metricsText],
    [
      "/openid/v1/jwks",
      async () => ({ contentType: "application/jwk-set+json", body: JSON.stringify(await tokens.jwks()) }),
    ],
    [
      "/.well-known/openid-configuration",
      () =>
        Promise.resolve({
          contentType: "application/json",
          body: JSON.stringify(tokens.openidConfiguration(url())),
        }),
    ],
  ]);
}
