/**
 * Signing in against a real OpenID provider: the whole code flow with PKCE as a browser would do it, the token as a bearer
 * credential, and every way a login may go wrong.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { silentLog, SimulatedClock, systemClock, systemEdges, systemRandom } from "@kontinuum/std";
import { oidcAuthenticator } from "../../packages/kontinuum/src/login/authenticator.ts";
import { discoverIssuer, type Issuer } from "../../packages/kontinuum/src/login/issuer.ts";
import { createLogin, type Login } from "../../packages/kontinuum/src/login/login.ts";
import { cookieOf, sessionCookie } from "../../packages/kontinuum/src/login/session-cookie.ts";
import { startOidcProvider, type TestProvider } from "../services/oidc-provider.ts";

const redirectUrl = "http://127.0.0.1:1/app";
let provider: TestProvider;
let issuer: Issuer;
let login: Login;
const key = systemRandom.bytes(32);

before(async () => {
  provider = await startOidcProvider("kontinuum", redirectUrl);
  issuer = await discoverIssuer(
    { issuerUrl: provider.issuerUrl, clientId: "kontinuum", redirectUrl },
    systemEdges(),
  );
  login = createLogin({
    issuer,
    sessionKey: () => Promise.resolve(key),
    edges: { clock: systemClock, log: silentLog },
  });
});
after(() => provider.stop());

/** Cookies as a browser keeps them, by name. */
class Jar {
  readonly #cookies = new Map<string, string>();
  take(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const at = pair.indexOf("=");
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
      if (value === "" || /Max-Age=0/i.test(line) || /expires=Thu, 01 Jan 1970/i.test(line))
        this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
  }
  get header(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }
}

/** Follows the provider's redirects until it sends the browser back. */
async function atProvider(start: string): Promise<URL> {
  const jar = new Jar();
  let url = start;
  for (let hop = 0; hop < 12; hop++) {
    const response = await fetch(url, { redirect: "manual", headers: { cookie: jar.header } });
    jar.take(response);
    const location = response.headers.get("location");
    assert.ok(location, `the provider answered ${response.status}: ${await response.text()}`);
    url = new URL(location, url).href;
    if (url.startsWith(redirectUrl)) return new URL(url);
  }
  throw new Error("too many redirects");
}

async function signIn(): Promise<{ finished: Response; callback: URL; flow: string; jar: Jar }> {
  const jar = new Jar();
  const begun = await login.begin(false);
  jar.take(begun);
  const flow = jar.header;
  const callback = await atProvider(begun.headers.get("location") ?? "");
  const finished = await login.finish(callback, jar.header, false);
  jar.take(finished);
  return { finished, callback, flow, jar };
}

const errorOf = (response: Response): string =>
  new URL(response.headers.get("location") ?? "", "http://x").searchParams.get("error") ?? "";

test("the login leads to the provider with S256, a state and a nonce", async () => {
  const begun = await login.begin(true);
  const target = new URL(begun.headers.get("location") ?? "");
  assert.equal(target.origin, provider.issuerUrl);
  assert.equal(target.searchParams.get("code_challenge_method"), "S256");
  assert.ok((target.searchParams.get("state") ?? "").length >= 40);
  assert.ok((target.searchParams.get("nonce") ?? "").length >= 40);
  const [cookie = ""] = begun.headers.getSetCookie();
  for (const attribute of ["HttpOnly", "Secure", "SameSite=Lax", "Path=/app", "Max-Age=300"])
    assert.ok(cookie.includes(attribute), attribute);
});

test("a whole login ends in a session that names the person, and holds no token", async () => {
  provider.setUser({ email: "aino@example.com", groups: ["platform", "system:masters"] });
  const { finished, jar } = await signIn();
  assert.equal(finished.headers.get("location"), "/app/home", errorOf(finished));
  const user = await login.user(jar.header);
  assert.equal(user?.name, "aino@example.com");
  assert.deepEqual(user?.groups, ["platform", "system:authenticated"]);
  const cookie = cookieOf(jar.header, sessionCookie) ?? "";
  assert.equal(cookie.split(".").length, 5, "encrypted, not a signed token");
  assert.ok(cookie.length < 1024);
});

test("a callback is good once, for the browser that began it", async () => {
  const { callback, flow, jar } = await signIn();
  assert.match(errorOf(await login.finish(callback, jar.header, false)), /took too long|started elsewhere/);
  assert.match(
    errorOf(await login.finish(callback, flow, false)),
    /could not be completed/,
    "the code was used",
  );
  const other = new Jar();
  other.take(await login.begin(false));
  const mixed = await login.finish(callback, other.header, false);
  assert.match(errorOf(mixed), /does not belong/);
  assert.match(mixed.headers.getSetCookie().join(), /kontinuum_session=;.*Max-Age=0/);
});

test("what the provider refuses is said in words", async () => {
  const jar = new Jar();
  jar.take(await login.begin(false));
  const state = new URLSearchParams(
    Buffer.from(cookieOf(jar.header, "kontinuum_oidc_flow") ?? "", "base64url").toString(),
  ).get("state");
  const url = new URL(`${redirectUrl}?error=access_denied&state=${state ?? ""}`);
  assert.match(errorOf(await login.finish(url, jar.header, false)), /refused/);
});

test("an unverified address is refused", async () => {
  provider.setUser({ email: "mallory@example.com", groups: [], emailVerified: false });
  assert.match(errorOf((await signIn()).finished), /not verified/);
});

test("a session is not readable with another key, nor after its end", async () => {
  provider.setUser({ email: "aino@example.com", groups: [] });
  const { jar } = await signIn();
  const late = new SimulatedClock(Date.now() + 24 * 3_600_000);
  const others: Login[] = [
    createLogin({
      issuer,
      sessionKey: () => Promise.resolve(systemRandom.bytes(32)),
      edges: { clock: systemClock, log: silentLog },
    }),
    createLogin({ issuer, sessionKey: () => Promise.resolve(key), edges: { clock: late, log: silentLog } }),
  ];
  for (const other of others) assert.equal(await other.user(jar.header), undefined);
  assert.equal(await login.user(`${sessionCookie}=x.y.z`), undefined);
});

test("a bearer token that is none of ours is left to others, a wrong one is refused", async () => {
  const authenticator = oidcAuthenticator(issuer, systemClock);
  const ask = (bearer: string): ReturnType<typeof authenticator.authenticate> =>
    authenticator.authenticate({ bearer, headers: {}, address: "127.0.0.1" });
  assert.equal(await ask("opaque"), undefined);
  assert.equal(await ask("a.b.c"), "invalid");
});

test("an issuer that does not answer stops the start, with its name", async () => {
  await assert.rejects(
    discoverIssuer({ issuerUrl: "http://127.0.0.1:1", clientId: "k", redirectUrl }, systemEdges()),
    /127\.0\.0\.1:1 could not be discovered/,
  );
  await assert.rejects(
    discoverIssuer({ issuerUrl: "http://idp.example", clientId: "k", redirectUrl }, systemEdges()),
    /must be https/,
  );
});
