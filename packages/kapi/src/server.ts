/**
 * The server: all rooms put together, started and stopped in order.
 *
 * Start: caches of what every request needs, definitions registered, the port, bootstrap objects, the server's own
 * controllers, then the embedder's. Stop: the embedder's controllers (the port is still up for their last
 * writes), the server's own, watches, the port. The store stays open; its owner closes it.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { Controller, Transport } from "@kontinuum/controller";
import { CodedError, messageOf, stringAt, systemEdges, type Edges, type JsonObject } from "@kontinuum/std";
import { AdmissionChain } from "./admission/admission.ts";
import { namespaceLifecycle } from "./admission/namespace-lifecycle.ts";
import { serviceAddresses } from "./admission/service-addresses.ts";
import { Access, accessDenied, allowAll, attributesOf } from "./auth/access.ts";
import { clientCertificates, requestHeader } from "./auth/authenticators.ts";
import { Identity, mastersGroup } from "./auth/identity.ts";
import type { ApiServer, Authorizer, HttpResponse, ServerOptions, UserInfo } from "./contract.ts";
import { CrdLifecycle } from "./controllers/crd-lifecycle.ts";
import { ensureCrds } from "./controllers/ensure-crds.ts";
import { bootstrapNamespaces, bootstrapRbac } from "./controllers/bootstrap.ts";
import { crdGuard } from "./controllers/crd-guard.ts";
import { GarbageCollector } from "./controllers/garbage-collector.ts";
import { NamespaceContents } from "./controllers/namespace-contents.ts";
import { NamespaceDeletion } from "./controllers/namespace-deletion.ts";
import { RoleAggregation } from "./controllers/role-aggregation.ts";
import { TokenSecrets } from "./controllers/token-secrets.ts";
import { escalationGuard } from "./auth/escalation.ts";
import { Rbac } from "./auth/rbac.ts";
import { reviewHandlers } from "./auth/reviews.ts";
import { ServiceAccountTokens, type ObjectReader } from "./auth/service-account-tokens.ts";
import { tokenRequestHandler } from "./auth/token-request.ts";
import { WebSocketWatches } from "./pipeline/web-socket.ts";
import { podHandlers } from "./registry/pod-subresources.ts";
import type { WireRequest } from "./wire/request.ts";
import { DiscoveryDocuments } from "./discovery/documents.ts";
import { builtinResources } from "./kinds/index.ts";
import { Listener } from "./listener/listener.ts";
import type { Peer } from "./listener/peer.ts";
import { Audit } from "./pipeline/audit.ts";
import { RequestContext } from "./pipeline/context.ts";
import { hostGuard } from "./pipeline/guard.ts";
import type { HealthCheck } from "./pipeline/health.ts";
import { defaultLimits, InFlight } from "./pipeline/in-flight.ts";
import { inProcessTransport } from "./pipeline/in-process.ts";
import { Pipeline } from "./pipeline/pipeline.ts";
import { router } from "./pipeline/route.ts";
import type { RegistryDeps } from "./registry/deps.ts";
import { RegistryHandler } from "./registry/handler.ts";
import { ResourceSet } from "./registry/resource-set.ts";
import { ObjectStorage } from "./registry/storage.ts";
import type { ResourceDefinition } from "./resource.ts";
import { entryObject } from "./watch-cache/entry.ts";

/** Time {@link ApiServer.stop} takes at most unless told otherwise. */
const defaultStopMs = 10_000;
/** Seconds an event lives after its last write. */
const eventTtlSeconds = 3600;

/** Makes a server. Nothing runs or listens before `start`. */
export function createServer(options: ServerOptions): ApiServer {
  return new Server(options);
}

type State = "new" | "starting" | "running" | "stopping" | "stopped";

class Server implements ApiServer {
  readonly loopback: UserInfo = { name: "system:apiserver", groups: [mastersGroup, "system:authenticated"] };
  readonly #options: ServerOptions;
  readonly #edges: Edges;
  readonly #resources = new ResourceSet();
  readonly #storage: ObjectStorage;
  readonly #registry: RegistryHandler;
  readonly #discovery: DiscoveryDocuments;
  readonly #pipeline: Pipeline;
  readonly #crds: CrdLifecycle | undefined;
  readonly #listener: Listener | undefined;
  readonly #rbac: Rbac | undefined;
  readonly #tokens: ServiceAccountTokens | undefined;
  readonly #systemNamespace: string;
  readonly #webSockets = new WebSocketWatches();
  readonly #stopEmbedded = new AbortController();
  readonly #stopOwn = new AbortController();
  #embedded: Promise<unknown> = Promise.resolve();
  #own: Promise<unknown> = Promise.resolve();
  #state: State = "new";

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#edges = systemEdges(options.edges);
    const { clock, log } = this.#edges;
    const builtin = builtinResources();
    const served = servedResources(builtin, options.kinds);
    this.#resources.add(served);
    this.#storage = new ObjectStorage({
      store: options.storage,
      resources: this.#resources,
      builtin,
      clock,
      log,
    });
    const open = options.auth.authenticators.length === 0 && options.listen?.tls?.clientCa === undefined;
    const rbac = (options.rbac ?? true) ? new Rbac(this.#resources, this.#storage) : undefined;
    this.#rbac = rbac;
    const access = new Access(this.#authorizers(open, rbac));
    const own = this.transport(this.loopback);
    this.#systemNamespace = options.systemNamespace ?? "kontinuum-system";
    this.#tokens =
      this.#serves("", "serviceaccounts") && this.#serves("", "secrets") ? this.#makeTokens(own) : undefined;
    const authenticators = [
      requestHeader([]),
      clientCertificates(),
      ...options.auth.authenticators,
      ...(this.#tokens ? [this.#tokens] : []),
    ];
    const deps: RegistryDeps = {
      edges: this.#edges,
      resources: this.#resources,
      storage: this.#storage,
      admission: new AdmissionChain([
        namespaceLifecycle((name, certain) => this.#namespace(name, certain)),
        serviceAddresses({ services: () => this.#services(), random: this.#edges.random, clock }),
      ]),
      guards: [crdGuard(() => this.#crds), ...(rbac ? [escalationGuard(rbac, access)] : [])],
      ttlSeconds: (resource) =>
        resource.kind === "Event" && resource.origin === "builtin"
          ? (options.eventTtlSeconds ?? eventTtlSeconds)
          : 0,
      authorizeCreate: async (context) => {
        const attributes = attributesOf(context.user, context.info, "create");
        const { decision, reason } = await access.authorize(attributes);
        if (decision !== "allow") throw accessDenied(attributes, reason);
      },
    };
    const now = (): number => clock.now();
    const special = new Map([...podHandlers(deps), ...reviewHandlers({ access, rbac, authenticators, now })]);
    if (this.#tokens)
      special.set("serviceaccounts/token", tokenRequestHandler(this.#tokens, this.#read, now));
    this.#registry = new RegistryHandler(deps, special);
    this.#discovery = new DiscoveryDocuments(this.#resources, {
      versions: () => [],
      openapi: () => undefined,
    });
    this.#discovery.now = () => clock.now();
    const identity = new Identity({
      authenticators,
      anonymous: options.auth.anonymous ?? true,
      clock,
    });
    this.#pipeline = new Pipeline({
      edges: this.#edges,
      guard: open ? hostGuard(options.allowedHosts ?? []) : undefined,
      identity,
      access,
      inFlight: new InFlight(defaultLimits),
      audit: new Audit(options.audit, clock),
      route: router({
        registry: this.#registry,
        discovery: this.#discovery,
        health: this.#healthChecks(),
        proxy: () => Promise.resolve(false),
        documents: this.#documents(),
      }),
    });
    const crdResource = this.#resources.get("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    this.#crds = crdResource
      ? new CrdLifecycle({
          edges: this.#edges,
          resources: this.#resources,
          storage: this.#storage,
          crdResource,
          transport: own,
          terminating: (value) => (this.#discovery.terminating = value),
          conversion: (manifest) => {
            const convert = options.converters?.[stringAt(manifest, "metadata", "name") ?? ""];
            if (!convert) return undefined;
            return {
              call: (review) => Promise.resolve(convert(review)),
              newUid: () => this.#edges.random.uuid(),
            };
          },
        })
      : undefined;
    this.#listener = options.listen ? this.#makeListener(options.listen) : undefined;
  }

  get port(): number {
    return this.#listener?.port ?? 0;
  }

  get url(): string {
    const { listen } = this.#options;
    if (!listen || !this.#listener) return "";
    const host =
      listen.host === undefined || listen.host === "0.0.0.0" || listen.host === "::" || listen.host === ""
        ? "127.0.0.1"
        : listen.host;
    return `${listen.tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${this.port}`;
  }

  transport(user: UserInfo): Transport {
    return inProcessTransport((context) => this.#pipeline.run(context), user);
  }

  async start(): Promise<void> {
    if (this.#state !== "new") throw new CodedError("failed_precondition", "the server was already started");
    this.#state = "starting";
    const transport = this.transport(this.loopback);
    await this.#crds?.load();
    await this.#rbac?.load();
    await this.#listener?.start();
    if (this.#options.housekeeping ?? true) {
      await bootstrapNamespaces(transport, this.#resources, this.#systemNamespace);
      if (this.#rbac) await bootstrapRbac(transport, this.#resources);
      this.#own = this.#run(this.#ownControllers(transport), this.#stopOwn.signal);
    } else {
      // Definitions come and go under a server that only follows, too.
      this.#own = this.#run(this.#crds ? [this.#crds] : [], this.#stopOwn.signal);
    }
    if (this.#options.crds && this.#crds)
      await ensureCrds(transport, this.#crds, this.#options.crds, this.#edges);
    this.#embedded = this.#run(this.#options.controllers ?? [], this.#stopEmbedded.signal);
    this.#state = "running";
  }

  #serves(group: string, plural: string): ResourceDefinition | undefined {
    return this.#resources.get(group, "v1", plural);
  }

  /** Who decides about access: everybody may do everything only where nobody is told apart. */
  #authorizers(open: boolean, rbac: Rbac | undefined): readonly Authorizer[] {
    const { authorizers } = this.#options.auth;
    if (open && authorizers.length === 0) return [allowAll];
    if (!rbac && authorizers.length === 0) {
      this.#edges.log.warn(
        "authentication is on but nothing authorizes: every authenticated user may do everything",
      );
      return [allowAll];
    }
    return [...(rbac ? [rbac] : []), ...authorizers];
  }

  get #authority(): string {
    return this.#options.rootCa ?? this.#options.listen?.tls?.cert ?? "";
  }

  #makeTokens(transport: Transport): ServiceAccountTokens {
    return new ServiceAccountTokens({
      transport,
      read: this.#read,
      namespace: this.#systemNamespace,
      issuer: this.#options.serviceAccountIssuer ?? "https://kubernetes.default.svc",
      clock: this.#edges.clock,
      random: this.#edges.random,
    });
  }

  /** Reads a core object from its cache, else from the store. */
  readonly #read: ObjectReader = async (plural, namespace, name) => {
    const resource = this.#serves("", plural);
    if (!resource) return undefined;
    const store = this.#storage.of(resource);
    const key = store.key(resource.namespaced ? namespace : "", name);
    await store.cache.load();
    const entry = store.cache.get(key) ?? (await store.read(key));
    return entry && entry.error === undefined ? entryObject(entry) : undefined;
  };

  #ownControllers(transport: Transport): readonly Controller[] {
    const edges = this.#edges;
    const resources = this.#resources;
    const storage = this.#storage;
    const controllers: Controller[] = [new GarbageCollector({ edges, resources, storage, transport })];
    if (this.#crds) controllers.push(this.#crds);
    const namespaces = this.#serves("", "namespaces");
    if (namespaces) {
      controllers.push(
        new NamespaceDeletion(
          { edges, resources, storage, transport, unreachableGroups: () => [] },
          namespaces,
        ),
      );
      controllers.push(new NamespaceContents(edges, resources, storage, transport, this.#authority));
    }
    const clusterRoles = this.#serves("rbac.authorization.k8s.io", "clusterroles");
    if (clusterRoles && this.#rbac)
      controllers.push(new RoleAggregation(edges, clusterRoles, storage.of(clusterRoles), transport));
    const secrets = this.#serves("", "secrets");
    const accounts = this.#serves("", "serviceaccounts");
    if (this.#tokens && secrets && accounts) {
      controllers.push(
        new TokenSecrets({
          edges,
          secrets: storage.of(secrets),
          accounts: storage.of(accounts),
          transport,
          tokens: this.#tokens,
          read: this.#read,
          authority: this.#authority,
        }),
      );
    }
    return controllers;
  }

  #documents(): ReadonlyMap<string, () => Promise<{ readonly contentType: string; readonly body: string }>> {
    const tokens = this.#tokens;
    const documents = new Map<
      string,
      () => Promise<{ readonly contentType: string; readonly body: string }>
    >();
    if (!tokens) return documents;
    documents.set("/openid/v1/jwks", async () => ({
      contentType: "application/jwk-set+json",
      body: JSON.stringify(await tokens.jwks()),
    }));
    documents.set("/.well-known/openid-configuration", () =>
      Promise.resolve({
        contentType: "application/json",
        body: JSON.stringify(tokens.openidConfiguration(this.url)),
      }),
    );
    return documents;
  }

  async stop(deadlineMs: number = defaultStopMs): Promise<void> {
    if (this.#state === "new") throw new CodedError("failed_precondition", "the server was not started");
    if (this.#state === "stopped" || this.#state === "stopping") return;
    this.#state = "stopping";
    const { clock, log } = this.#edges;
    const until = clock.monotonic() + deadlineMs;
    const left = (): number => Math.max(0, until - clock.monotonic());
    // The wait ends with the stop: a sleep left over would keep the process alive to the deadline.
    const stopped = new AbortController();
    const bounded = (work: Promise<unknown>): Promise<unknown> =>
      Promise.race([work, clock.sleep(left(), stopped.signal).catch(() => {})]);
    this.#stopEmbedded.abort();
    await bounded(this.#embedded);
    for (const hook of this.#options.preShutdown ?? []) {
      await bounded(
        hook().catch((error: unknown) =>
          log.error("a pre-shutdown hook failed", { reason: messageOf(error) }),
        ),
      );
    }
    this.#stopOwn.abort();
    await bounded(this.#own);
    this.#listener?.drain();
    // Ends every watch at its last sent version: clients go on elsewhere without listing again.
    await bounded(this.#storage.close());
    await this.#listener?.close(left());
    stopped.abort();
    this.#state = "stopped";
  }

  #run(controllers: readonly Controller[], signal: AbortSignal): Promise<unknown> {
    const { log } = this.#edges;
    const transport = this.transport(this.loopback);
    return Promise.all(
      controllers.map((controller) =>
        controller.run({ transport, edges: this.#edges, signal }).catch((error: unknown) => {
          log.error("a controller ended", { controller: controller.name, reason: messageOf(error) });
        }),
      ),
    );
  }

  /** Reads a namespace for admission. */
  async #namespace(name: string, certain: boolean): Promise<JsonObject | undefined> {
    const resource = this.#resources.get("", "v1", "namespaces");
    // A server without namespaces has nothing to check against.
    if (!resource) return { metadata: { name } };
    const store = this.#storage.of(resource);
    await store.cache.load();
    const entry = certain ? await store.read(store.key("", name)) : store.cache.get(store.key("", name));
    return entry?.error === undefined && entry ? entryObject(entry) : undefined;
  }

  /** All stored services, for the allocation of their addresses. */
  async #services(): Promise<readonly JsonObject[]> {
    const resource = this.#resources.get("", "v1", "services");
    if (!resource) return [];
    const { cache } = this.#storage.of(resource);
    await cache.load();
    return [...cache.list()].filter((entry) => entry.error === undefined).map((entry) => entryObject(entry));
  }

  #healthChecks(): Record<"livez" | "readyz" | "healthz", ReadonlyMap<string, HealthCheck>> {
    const store: HealthCheck = async () => void (await this.#options.storage.revision());
    const live = new Map<string, HealthCheck>([
      ["ping", () => {}],
      ["etcd", store],
    ]);
    const ready = new Map<string, HealthCheck>([
      ...live,
      [
        "shutdown",
        () => {
          if (this.#state !== "running") throw new Error("not ready");
        },
      ],
    ]);
    return { livez: live, healthz: live, readyz: ready };
  }

  #makeListener(listen: NonNullable<ServerOptions["listen"]>): Listener {
    const { grpc } = this.#options;
    const handleGrpc = grpc
      ? connectNodeAdapter({ routes: grpc, connect: false, grpcWeb: false })
      : undefined;
    return new Listener(
      listen,
      {
        request: (request, response, peer, secure) => void this.#serve(request, response, peer, secure),
        grpc: handleGrpc ? (request, response) => handleGrpc(request, response as never) : undefined,
        upgrade: (request, socket, head, peer, secure) => this.#upgrade(request, socket, head, peer, secure),
      },
      this.#edges.clock,
      this.#edges.log,
    );
  }

  async #serve(request: IncomingMessage, response: HttpResponse, peer: Peer, secure: boolean): Promise<void> {
    try {
      for (const route of this.#options.routes ?? []) if (await route(request, response)) return;
    } catch (error) {
      this.#edges.log.error("a route failed", { path: request.url, reason: messageOf(error) });
      if (!response.headersSent) response.writeHead(500, { "content-type": "text/plain; charset=utf-8" });
      response.end("internal error\n");
      return;
    }
    const context = new RequestContext({
      request: { ...wireRequest(request, peer, secure), body: request },
      response,
    });
    context.refusedCertificate = peer.refused ?? false;
    await this.#pipeline.run(context);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, peer: Peer, secure: boolean): void {
    try {
      for (const route of this.#options.upgrades ?? []) if (route(request, socket, head)) return;
    } catch (error) {
      this.#edges.log.error("an upgrade route failed", { path: request.url, reason: messageOf(error) });
      return void socket.destroy();
    }
    const run = (context: RequestContext): Promise<void> => {
      context.refusedCertificate = peer.refused ?? false;
      return this.#pipeline.run(context);
    };
    this.#webSockets
      .serve(wireRequest(request, peer, secure), request, socket, head, run)
      .catch((error: unknown) => {
        this.#edges.log.warn("an upgrade failed", { reason: messageOf(error) });
        socket.destroy();
      });
  }
}

function wireRequest(request: IncomingMessage, peer: Peer, secure: boolean): Omit<WireRequest, "body"> {
  return {
    method: request.method ?? "GET",
    url: request.url ?? "/",
    headers: request.headers,
    address: request.socket.remoteAddress ?? "",
    secure,
    ...(peer.certificate ? { certificate: peer.certificate } : {}),
  };
}

/** The built-in resources an embedder asked for; what the server itself cannot do without is always there. */
function servedResources(
  builtin: readonly ResourceDefinition[],
  kinds: readonly string[] | undefined,
): readonly ResourceDefinition[] {
  if (!kinds) return builtin;
  const asked = new Set(kinds);
  const nameOf = ({ group, plural }: ResourceDefinition): string =>
    group === "" ? plural : `${plural}.${group}`;
  for (const kind of kinds) {
    if (!builtin.some((resource) => nameOf(resource) === kind)) {
      throw new CodedError(
        "invalid_argument",
        `there is no built-in kind ${JSON.stringify(kind)}: write <plural> or <plural>.<group>`,
      );
    }
  }
  return builtin.filter((resource) => asked.has(nameOf(resource)));
}
