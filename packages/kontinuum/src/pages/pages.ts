/**
 * The web pages of `kontinuum serve`: which address shows what, and how errors look.
 *
 * Pages read and write through the same API as every client, with the rights of whoever looks. What is not under
 * `/`, `/app` or the assets falls through to the API.
 */
import { Client, namespaces, type Transport } from "@kontinuum/controller";
import type { HttpRoute, UserInfo } from "@kontinuum/kapi";
import { CodedError, isCoded, messageOf, toCoded, type Edges } from "@kontinuum/std";
import { assetAt, assetPrefix, empty, html, page, pageHeaders, section } from "@kontinuum/web";
import { Hono, type Context } from "hono";
import type { IncomingMessage } from "node:http";
import { systemNamespace, type Instance, type TalosCluster, type Zone, zoneKind } from "../kinds/index.ts";
import { listHref, objectHref } from "./addresses.ts";
import { clusterPage, clustersPage } from "./cluster.page.ts";
import type { Visit } from "./frame.ts";
import { instanceAddPage, instancePage, instancesPage } from "./instance.page.ts";
import { hubKubeconfig, type OidcClient } from "./kubeconfig.ts";
import { forbiddenText, type Login } from "../login/login.ts";
import { sessionCookie, setCookie } from "../login/session-cookie.ts";
import { signInPage } from "./sign-in.page.ts";
import { connectPage, registryPage } from "./registry.page.ts";
import { isLoopbackHost, isSameOrigin, originOf, sendWebResponse, toWebRequest } from "./route-adapter.ts";
import { topologyPage, type ProviderView } from "./topology.page.ts";
import { readWorld, type World } from "./world.ts";
import { zoneAddPage, zonePage, zoneRemovePage, zonesPage } from "./zone.page.ts";

/** What the pages are given. */
export interface PageOptions {
  readonly edges: Edges;
  /** A connection to this server as the given user. */
  transport(user: UserInfo): Transport;
  /** Signing in with a browser; absent: everybody is anonymous. */
  readonly login?: Login;
  readonly oidc?: OidcClient;
  /** PEM of the hub's own authority, when it serves with a certificate of it. */
  readonly authorities?: () => string;
  readonly processName: () => string;
  readonly version: string;
  /** Lines about the store for the picture, e.g. `SQLite`, `revision 42`. */
  store(): Promise<readonly string[]>;
  /** The machine providers of this hub. */
  providers(): Promise<readonly ProviderView[]>;
  /** Address of the machine API, when this process serves it. */
  readonly machineApi?: string;
  /** Adds a zone; the same operation the command line uses. */
  addZone(client: Client, input: AddZoneInput): Promise<Zone>;
  /** Registers a machine. */
  addInstance(
    client: Client,
    input: { readonly namespace: string; readonly address: string },
  ): Promise<Instance>;
  /** The stored kubeconfig of a cluster, or `undefined` while there is none. */
  clusterKubeconfig(client: Client, cluster: TalosCluster): Promise<string | undefined>;
}

/** What the form that adds a zone asks for. */
export interface AddZoneInput {
  readonly region: string;
  readonly zone: string;
  readonly talosAddress: string;
  readonly domain?: string;
  readonly talosVersion?: string;
  readonly kubernetesVersion?: string;
}

/** Who everybody is where nobody signs in. */
const anonymousUser: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };

interface PageEnv {
  readonly client: Client;
  readonly visit: Visit;
  readonly request: IncomingMessage;
}

type PageContext = Context<{ Bindings: PageEnv }>;

const base = "/app/kontinuum.sh/namespaces/:ns";

/** The route to give to the API server. */
export function createPages(options: PageOptions): HttpRoute {
  const app = buildApp(options);
  return async (request, response) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    if (path.startsWith(assetPrefix)) {
      const asset = assetAt(path);
      response.writeHead(asset ? 200 : 404, {
        "content-type": asset?.contentType ?? "text/plain; charset=utf-8",
        "cache-control": asset ? "public, max-age=31536000, immutable" : "no-store",
        "x-content-type-options": "nosniff",
      });
      response.end(asset?.body ?? "no such asset\n");
      return true;
    }
    if (path === "/" && (request.headers.accept ?? "").includes("text/html")) {
      response.writeHead(302, { location: "/app" });
      response.end();
      return true;
    }
    if (path !== "/app" && !path.startsWith("/app/")) return false;
    const answer = await answerPage(app, request, options);
    await sendWebResponse(answer, response);
    return true;
  };
}

/** What a client must trust that comes the way this request came: the hub's own authority, when no proxy stood between. */
function ownAuthorities(request: IncomingMessage, { authorities }: PageOptions): string | undefined {
  const direct = "encrypted" in request.socket && request.headers["x-forwarded-proto"] === undefined;
  return direct ? authorities?.() : undefined;
}

/** Runs a request through the pages; a failure becomes a page, never a stack trace. */
async function answerPage(app: PageApp, request: IncomingMessage, options: PageOptions): Promise<Response> {
  try {
    if (!options.login && !isLoopbackHost(originOf(request).host)) {
      throw new CodedError("permission_denied", "while nobody signs in, the pages answer to localhost only");
    }
    const unsafe = request.method !== "GET" && request.method !== "HEAD";
    if (unsafe && !isSameOrigin(request)) {
      throw new CodedError("permission_denied", "this form was sent by a page of another site");
    }
    const signIn = options.login && (await signInRoute(options.login, request, options));
    return signIn ?? (await app.run(await toWebRequest(request), request));
  } catch (error) {
    const coded = toCoded(error);
    if (options.login && coded.code === "permission_denied" && request.method === "GET") {
      return forget(request, forbiddenText);
    }
    if (coded.code === "internal")
      options.edges.log.error("page failed", { path: request.url, error: messageOf(coded.cause ?? coded) });
    return failed(coded);
  }
}

/** The addresses that exist only where people sign in; `undefined`: the visitor is signed in and this is another page. */
async function signInRoute(
  login: Login,
  request: IncomingMessage,
  options: PageOptions,
): Promise<Response | undefined> {
  const origin = originOf(request);
  const url = new URL(request.url ?? "/app", `${origin.scheme}://${origin.host}`);
  const secure = origin.scheme === "https" || !/^(localhost|127\.|\[::1\])/.test(origin.host);
  if (url.pathname === "/app/login") return login.begin(secure);
  if (url.pathname === "/app/logout") return login.end(secure, url.searchParams.get("everywhere") === "1");
  const isCallback = url.searchParams.has("code") || url.searchParams.has("state");
  if (url.pathname === "/app" && isCallback) return login.finish(url, request.headers.cookie, secure);
  const user = await login.user(request.headers.cookie);
  if (user) return undefined;
  if (url.pathname !== "/app") return new Response(null, { status: 302, headers: { location: "/app" } });
  const error = url.searchParams.get("error");
  return respond(
    signInPage({
      host: origin.host,
      issuer: options.oidc?.issuerUrl ?? "the identity provider",
      version: options.version,
      ...(error ? { error } : {}),
    }),
  );
}

/** Ends the session and says why on the sign-in page. */
function forget(request: IncomingMessage, text: string): Response {
  const cookie = setCookie(sessionCookie, "", 0, originOf(request).scheme === "https");
  return new Response(null, {
    status: 302,
    headers: { location: `/app?error=${encodeURIComponent(text)}`, "set-cookie": cookie },
  });
}

const respond = (body: string, status = 200): Response =>
  new Response(body, { status, headers: pageHeaders });

function failed(error: CodedError): Response {
  const denied = error.code === "permission_denied" || error.code === "unauthenticated";
  const title = denied ? "You can't see this page" : "This page could not be shown";
  return respond(
    page({
      title: `${title} - Kontinuum`,
      body: html`<main class="content">
        ${section({
          title,
          body: empty({
            title: `${error.message}.`,
            text: error.meaning.user,
            action: html`<p>
              <a class="button plain" href="/app">Go to the start</a> <code>${error.code.toUpperCase()}</code>
            </p>`,
          }),
        })}
      </main>`,
    }),
    error.code === "internal" ? 500 : error.code === "unavailable" ? 502 : error.meaning.http,
  );
}

interface PageApp {
  run(request: Request, raw: IncomingMessage): Promise<Response>;
}

async function visitOf(
  options: PageOptions,
  client: Client,
  user: UserInfo,
  request: IncomingMessage,
): Promise<Visit> {
  const path = request.url ?? "/app";
  const namespace = /^\/app\/kontinuum\.sh\/namespaces\/([^/?]+)/.exec(path)?.[1];
  const tenants = await client
    .list(namespaces)
    .then((list) => list.items.map((item) => item.metadata.name).sort())
    .catch(() => []);
  return {
    namespace: namespace === undefined ? systemNamespace : decodeURIComponent(namespace),
    namespaces: tenants,
    user: options.login ? user.name : "",
    anonymous: options.login === undefined,
    nowMs: options.edges.clock.now(),
    foot: `${options.processName()} · ${options.version}`,
    path,
  };
}

function find<T extends { metadata: { name: string } }>(
  list: readonly T[],
  name: string | undefined,
): T | undefined {
  return list.find((item) => item.metadata.name === name);
}

function buildApp(options: PageOptions): PageApp {
  const app = new Hono<{ Bindings: PageEnv }>();
  const kubeconfig = (c: PageContext): string =>
    hubKubeconfig(originOf(c.env.request), options.oidc, ownAuthorities(c.env.request, options));
  const world = (c: PageContext): Promise<World> => readWorld(c.env.client, c.env.visit.namespace);

  app.get("/app", (c) => c.redirect("/app/home"));
  app.get("/app/home", (c) => c.redirect(listHref(systemNamespace, "instances")));
  app.get("/app/topology", async (c) =>
    respond(topologyPage(c.env.visit, await world(c), await options.store(), await options.providers())),
  );
  app.get("/app/connect", (c) => respond(connectPage(c.env.visit, kubeconfig(c), options.machineApi)));
  app.get("/app/registry/kubeconfig", (c) => download("kontinuum-kubeconfig.yaml", kubeconfig(c)));

  app.get(`${base}/kontinuums`, async (c) => respond(registryPage(c.env.visit, await world(c))));
  app.get(`${base}/zones`, async (c) => respond(zonesPage(c.env.visit, await world(c))));
  app.get(`${base}/talosclusters`, async (c) => respond(clustersPage(c.env.visit, await world(c))));
  app.get(`${base}/instances`, async (c) => respond(instancesPage(c.env.visit, await world(c))));

  zoneRoutes(app, options, world);
  instanceRoutes(app, options, world);
  clusterRoutes(app, options, world);

  // A page that does not exist climbs to its parent, and the parent of all is the start.
  app.notFound((c) => {
    const parent = new URL(c.req.url).pathname.replace(/\/[^/]*$/, "");
    const climbs = parent.startsWith("/app/") || parent === "/app";
    return climbs ? c.redirect(parent) : failed(new CodedError("not_found", "there is no such page"));
  });
  app.onError((error) => {
    throw error;
  });

  return {
    async run(request, raw) {
      const user = options.login ? await options.login.user(raw.headers.cookie) : anonymousUser;
      if (!user) throw new CodedError("unauthenticated", "you are not signed in");
      const client = new Client(options.transport(user), {
        edges: options.edges,
        userAgent: "kontinuum-console",
      });
      const visit = await visitOf(options, client, user, raw);
      return app.fetch(request, { client, visit, request: raw });
    },
  };
}

type Routes = Hono<{ Bindings: PageEnv }>;
type ReadWorld = (c: PageContext) => Promise<World>;

function zoneRoutes(app: Routes, options: PageOptions, world: ReadWorld): void {
  app.get("/app/zones/add", async (c) => respond(zoneAddPage(c.env.visit, await world(c), { values: {} })));
  app.post("/app/zones/add", async (c) => {
    const values = await formOf(c);
    try {
      const zone = await options.addZone(c.env.client, {
        region: values["region"] ?? "",
        zone: values["zone"] ?? "",
        talosAddress: values["talos-address"] ?? "",
        ...(values["domain"] ? { domain: values["domain"] } : {}),
        ...(values["talos-version"] ? { talosVersion: values["talos-version"] } : {}),
        ...(values["kubernetes-version"] ? { kubernetesVersion: values["kubernetes-version"] } : {}),
      });
      return c.redirect(objectHref(systemNamespace, "zones", zone.metadata.name), 303);
    } catch (error) {
      if (!isCoded(error)) throw error;
      return respond(zoneAddPage(c.env.visit, await world(c), { values, error: `${error.message}.` }), 422);
    }
  });
  app.get(`${base}/zones/:name`, async (c) => {
    const all = await world(c);
    const zone = find(all.zones, c.req.param("name"));
    return zone ? respond(zonePage(c.env.visit, all, zone)) : c.notFound();
  });
  app.get(`${base}/zones/:name/remove`, async (c) => {
    const all = await world(c);
    const zone = find(all.zones, c.req.param("name"));
    return zone ? respond(zoneRemovePage(c.env.visit, all, zone, { values: {} })) : c.notFound();
  });
  app.post(`${base}/zones/:name/remove`, async (c) => {
    const all = await world(c);
    const zone = find(all.zones, c.req.param("name"));
    if (!zone) return c.notFound();
    const values = await formOf(c);
    const { name, namespace, uid } = zone.metadata;
    if (values["confirm"] !== name) {
      const form = { values, error: `The name typed is not ${name}.` };
      return respond(zoneRemovePage(c.env.visit, all, zone, form), 422);
    }
    await c.env.client.delete(
      zoneKind.resource,
      { name, ...(namespace === undefined ? {} : { namespace }) },
      uid === undefined ? {} : { preconditions: { uid } },
    );
    return c.redirect(listHref(systemNamespace, "zones"), 303);
  });
}

function instanceRoutes(app: Routes, options: PageOptions, world: ReadWorld): void {
  app.get(`${base}/instances/add`, (c) => respond(instanceAddPage(c.env.visit, "")));
  app.post(`${base}/instances/add`, async (c) => {
    const { address = "" } = await formOf(c);
    const { namespace } = c.env.visit;
    try {
      const instance = await options.addInstance(c.env.client, { namespace, address });
      return c.redirect(objectHref(namespace, "instances", instance.metadata.name), 303);
    } catch (error) {
      if (!isCoded(error)) throw error;
      return respond(instanceAddPage(c.env.visit, address, `${error.message}.`), 422);
    }
  });
  app.get(`${base}/instances/:name`, async (c) => {
    const all = await world(c);
    const instance = find(all.instances, c.req.param("name"));
    return instance ? respond(instancePage(c.env.visit, all, instance)) : c.notFound();
  });
}

function clusterRoutes(app: Routes, options: PageOptions, world: ReadWorld): void {
  app.get(`${base}/talosclusters/:name`, async (c) => {
    const all = await world(c);
    const cluster = find(all.clusters, c.req.param("name"));
    if (!cluster) return c.notFound();
    const kubeconfig = await options.clusterKubeconfig(c.env.client, cluster);
    return respond(clusterPage(c.env.visit, all, cluster, kubeconfig !== undefined));
  });
  app.get(`${base}/talosclusters/:name/kubeconfig`, async (c) => {
    const all = await world(c);
    const cluster = find(all.clusters, c.req.param("name"));
    const kubeconfig = cluster && (await options.clusterKubeconfig(c.env.client, cluster));
    if (!cluster || kubeconfig === undefined) return c.notFound();
    return download(`${cluster.metadata.name}-kubeconfig.yaml`, kubeconfig);
  });
}

function download(name: string, text: string): Response {
  return new Response(text, {
    headers: {
      "content-type": "application/yaml",
      "content-disposition": `attachment; filename="${name.replace(/[^A-Za-z0-9.-]/g, "_")}"`,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
  });
}

/** The fields of an url-encoded form as trimmed text; of a repeated field the last counts. */
async function formOf(c: PageContext): Promise<Record<string, string>> {
  const form = new URLSearchParams(await c.req.text());
  return Object.fromEntries([...form].map(([name, value]) => [name, value.trim()]));
}
