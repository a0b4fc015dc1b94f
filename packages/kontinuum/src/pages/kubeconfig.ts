/**
 * The kubeconfig of this hub, as the console hands it out (contract: names, contexts, when verification is skipped).
 */
import { stringify } from "yaml";

/** Where a request came in, by its own headers. */
export interface Origin {
  readonly scheme: "http" | "https";
  /** Host with port. */
  readonly host: string;
}

/** OpenID Connect settings that clients need. */
export interface OidcClient {
  readonly issuerUrl: string;
  readonly clientId: string;
}

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "[::1]" || /^127(\.\d+){3}$/.test(host);

/**
 * A kubeconfig for the server at `origin`. It holds no secret: with OIDC the client signs in by itself. `authorities` (PEM)
 * are those of the server's own certificate, when the request came straight to it; absent, the client trusts its
 * system's, and nothing is verified of https on loopback.
 *
 * Where nobody signs in, kubectl asks for a password whenever it speaks TLS. Such a server answers its own machine only,
 * in clear text too, so the kubeconfig says http.
 */
export function hubKubeconfig(origin: Origin, oidc: OidcClient | undefined, authorities?: string): string {
  const isOpen = oidc === undefined && authorities !== undefined;
  const scheme = isOpen ? "http" : origin.scheme;
  const host = origin.host.replace(/:\d+$/, "");
  const name = `kontinuum-${host}`;
  const skip = authorities === undefined && scheme === "https" && isLoopback(host);
  const context = oidc ? `oidc@${name}` : name;
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name,
        cluster: {
          server: `${scheme}://${origin.host}`,
          ...(authorities === undefined || isOpen
            ? {}
            : { "certificate-authority-data": Buffer.from(authorities).toString("base64") }),
          ...(skip ? { "insecure-skip-tls-verify": true } : {}),
        },
      },
    ],
    contexts: [{ name: context, context: { cluster: name, user: oidc ? name : "" } }],
    "current-context": context,
    users: oidc
      ? [
          {
            name,
            user: {
              exec: {
                apiVersion: "client.authentication.k8s.io/v1beta1",
                command: "kubectl",
                args: [
                  "oidc-login",
                  "get-token",
                  `--oidc-issuer-url=${oidc.issuerUrl}`,
                  `--oidc-client-id=${oidc.clientId}`,
                  "--oidc-extra-scope=email",
                  "--oidc-extra-scope=groups",
                ],
                interactiveMode: "Never",
              },
            },
          },
        ]
      : [],
  });
}
