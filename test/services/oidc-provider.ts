/**
 * A real OpenID provider (the `oidc-provider` package) on loopback, with one public client and users that sign in by
 * name alone. Its notices are kept out of the output.
 */
import { createServer } from "node:http";
import Provider from "oidc-provider";

/** A user of the provider. */
export interface TestUser {
  readonly email: string;
  readonly groups: readonly string[];
  readonly emailVerified?: boolean;
}

/** A running provider. */
export interface TestProvider {
  readonly issuerUrl: string;
  /** Whoever signs in next. */
  setUser(user: TestUser): void;
  stop(): Promise<void>;
}

/** Starts a provider that knows one client with one redirect address. */
export async function startOidcProvider(clientId: string, redirectUrl: string): Promise<TestProvider> {
  let user: TestUser = { email: "nobody@example.com", groups: [] };
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const issuerUrl = `http://127.0.0.1:${address.port}`;
  const warn = console.warn;
  const info = console.info;
  console.warn = () => {};
  console.info = () => {};
  const provider = new Provider(issuerUrl, {
    clients: [
      {
        client_id: clientId,
        token_endpoint_auth_method: "none",
        redirect_uris: [redirectUrl],
        grant_types: ["authorization_code"],
        response_types: ["code"],
        application_type: "native",
      },
    ],
    scopes: ["openid", "profile", "email", "groups"],
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"], profile: [] },
    conformIdTokenClaims: false,
    ttl: {
      AccessToken: 300,
      IdToken: 300,
      Interaction: 300,
      Session: 300,
      Grant: 300,
      AuthorizationCode: 60,
    },
    pkce: { required: () => true },
    cookies: { keys: ["test-only"] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        email: user.email,
        email_verified: user.emailVerified ?? true,
        groups: [...user.groups],
      }),
    }),
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  });
  console.warn = warn;
  console.info = info;
  const callback = provider.callback();
  server.on("request", (request, response) => {
    if (!request.url?.startsWith("/interaction/")) return void callback(request, response);
    // Login, then consent: both are answered at once, as if the person had pressed the button.
    void (async () => {
      const { prompt, params, session } = await provider.interactionDetails(request, response);
      if (prompt.name === "login") {
        await provider.interactionFinished(request, response, { login: { accountId: user.email } });
        return;
      }
      const grant = new provider.Grant({
        accountId: session?.accountId ?? user.email,
        clientId: String(params["client_id"]),
      });
      grant.addOIDCScope("openid profile email groups");
      await provider.interactionFinished(
        request,
        response,
        { consent: { grantId: await grant.save() } },
        { mergeWithLastSubmission: true },
      );
    })().catch((error: unknown) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  });
  return {
    issuerUrl,
    setUser: (next) => {
      user = next;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
