/**
 * The server: all rooms put together, started and stopped in order.
 *
 * Start: caches of what every request needs, definitions registered, the port, bootstrap objects, the server's own
 * controllers, then the embedder's. Stop: the embedder's controllers (the port is still up for their last
 * writes), the server's own, watches, the port. The store stays open; its owner closes it.
 */
import type { Controller, Transport } from "@kontinuum/controller";
import { CodedError, listenerAddresses, messageOf, systemEdges, type Edges } from "@kontinuum/std";
import { AdmissionChain, type AdmissionPlugin } from "./admission/admission.ts";
import { ValidatingPolicies } from "./admission/policies.ts";
import { Webhooks } from "./admission/webhooks.ts";
import { conversionOf } from "./controllers/conversion-calls.ts";
import { ownControllers } from "./controllers/own-controllers.ts";
import { makeOutbound, type Outbound } from "./outbound/outbound.ts";
import { Metrics } from "./pipeline/metrics.ts";
import { CoreObjects } from "./registry/core-objects.ts";
import { limitRanger } from "./admission/limit-ranger.ts";
import { namespaceLifecycle } from "./admission/namespace-lifecycle.ts";
import { resourceQuota } from "./admission/resource-quota.ts";
import { serviceAddresses } from "./admission/service-addresses.ts";
import { Access, accessDenied, allowAll, attributesOf } from "./auth/access.ts";
import { clientCertificates, requestHeader } from "./auth/authenticators.ts";
import { Identity, mastersGroup } from "./auth/identity.ts";
import type { ApiServer, Authorizer, ServerOptions, UserInfo } from "./contract.ts";
import { CrdLifecycle } from "./controllers/crd-lifecycle.ts";
import { ensureCrds } from "./controllers/ensure-crds.ts";
import { bootstrapNamespaces, bootstrapRbac } from "./controllers/bootstrap.ts";
import { crdGuard } from "./controllers/crd-guard.ts";
import { escalationGuard } from "./auth/escalation.ts";
import { Rbac } from "./auth/rbac.ts";
import { reviewHandlers } from "./auth/reviews.ts";
import { ServiceAccountTokens } from "./auth/service-account-tokens.ts";
import { tokenRequestHandler } from "./auth/token-request.ts";
import { podHandlers } from "./registry/pod-subresources.ts";
import { DiscoveryDocuments } from "./discovery/documents.ts";
import { builtinResources } from "./kinds/index.ts";
import { makeAggregation, type Aggregation } from "./aggregation/aggregation.ts";
import { entrances } from "./listener/entrances.ts";
import { plainDocuments } from "./pipeline/documents.ts";
import { healthChecks } from "./pipeline/health.ts";
import { servedResources } from "./registry/served-resources.ts";
import { Listener } from "./listener/listener.ts";
import { Audit } from "./pipeline/audit.ts";
import { serverUser } from "./pipeline/context.ts";
import { hostGuard } from "./pipeline/guard.ts";
import { defaultLimits, InFlight } from "./pipeline/in-flight.ts";
import { inProcessTransport } from "./pipeline/in-process.ts";
import { Pipeline } from "./pipeline/pipeline.ts";
import { router } from "./pipeline/route.ts";
import type { RegistryDeps } from "./registry/deps.ts";
import { RegistryHandler } from "./registry/handler.ts";
import { ResourceSet } from "./registry/resource-set.ts";
import { ObjectStorage } from "./registry/storage.ts";
import type { ResourceDefinition } from "./resource.ts";

/** Time {@link ApiServer.stop} takes at most unless told otherwise. */
const defaultStopMs = 10_000;
/** Seconds an event lives after its last write. */
const eventTtlSeconds = 3600;

/** Makes a server. Nothing runs or listens before `start`. */
export function createServer(options: ServerOptions): ApiServer {
  return new Server(options);
}

const notProxied = Promise.resolve(false);

type State = "new" | "starting" | "running" | "stopping" | "stopped";

class Server implements ApiServer {
  readonly loopback: UserInfo = { name: serverUser, groups: [mastersGroup, "system:authenticated"] };
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
  readonly #objects: CoreObjects;
  readonly #aggregation: Aggregation | undefined;
  readonly #metrics: Metrics;
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
    this.#objects = new CoreObjects(this.#resources, this.#storage);
    const outbound = makeOutbound(
      this.#edges,
      this.#objects,
      options.outboundAllowed ?? [],
      options.resolveService,
      () => (this.port === 0 ? [] : listenerAddresses(options.listen?.host ?? "127.0.0.1", this.port)),
    );
    this.#metrics = new Metrics({
      watches: () => this.#storage.watches,
      objects: () => this.#storage.counts,
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
      requestHeader(options.listen?.tls?.requestHeaderNames ?? []),
      clientCertificates(),
      ...options.auth.authenticators,
      ...(this.#tokens ? [this.#tokens] : []),
    ];
    const deps: RegistryDeps = {
      edges: this.#edges,
      resources: this.#resources,
      storage: this.#storage,
      admission: new AdmissionChain([
        namespaceLifecycle((name, certain) => this.#objects.namespace(name, certain)),
        serviceAddresses({
          services: () => this.#objects.list("", "services"),
          random: this.#edges.random,
          clock,
        }),
        limitRanger((namespace) => this.#objects.list("", "limitranges", namespace)),
        ...this.#dynamicAdmission(outbound, access),
        resourceQuota({
          resources: this.#resources,
          storage: this.#storage,
          transport: () => this.transport(this.loopback),
        }),
      ]),
      guards: [crdGuard(() => this.#crds), ...(rbac ? [escalationGuard(rbac, access)] : [])],
      ttlSeconds: (resource) =>
        resource.kind === "Event" && resource.origin === "builtin"
          ? (options.eventTtlSeconds ?? eventTtlSeconds)
          : 0,
      authorize: async (context, verb) => {
        const attributes = attributesOf(context.user, context.info, verb);
        const { decision, reason } = await access.authorize(attributes);
        if (decision !== "allow") throw accessDenied(attributes, reason);
      },
    };
    const now = (): number => clock.now();
    const special = new Map([...podHandlers(deps), ...reviewHandlers({ access, rbac, authenticators, now })]);
    if (this.#tokens)
      special.set("serviceaccounts/token", tokenRequestHandler(this.#tokens, this.#objects.read, now));
    this.#registry = new RegistryHandler(deps, special);
    this.#aggregation = makeAggregation({
      edges: this.#edges,
      resources: this.#resources,
      storage: this.#storage,
      transport: own,
      outbound,
      systemNamespace: this.#systemNamespace,
      changed: () => this.#discovery.invalidate(),
    });
    const aggregator = this.#aggregation?.aggregator;
    this.#discovery = new DiscoveryDocuments(this.#resources, {
      versions: () => aggregator?.versions() ?? [],
      openapi: (group, version) => aggregator?.openapi(group, version),
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
      observe: (context, seconds) => {
        const { group, version, resource } = context.info;
        this.#metrics.observe(context, this.#resources.get(group, version, resource) !== undefined, seconds);
      },
      route: router({
        registry: this.#registry,
        discovery: this.#discovery,
        health: healthChecks(
          async () => void (await options.storage.revision()),
          () => this.#state === "running",
        ),
        proxy: (context) => aggregator?.proxy(context) ?? notProxied,
        documents: plainDocuments(this.#metrics, this.#tokens, () => this.url),
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
          conversion: (manifest) =>
            conversionOf(manifest, options.converters ?? {}, outbound, this.#edges.random),
        })
      : undefined;
    const handlers = entrances({
      ...options,
      log,
      elsewhere: (path) => aggregator?.answers(path) ?? false,
      run: (context) => this.#pipeline.run(context),
    });
    this.#listener = options.listen ? new Listener(options.listen, handlers, clock, log) : undefined;
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
    return `${listen.tls && listen.tls.alsoPlain !== true ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${this.port}`;
  }

  useCertificate(pair: { readonly cert: string; readonly key: string }): void {
    this.#listener?.useCertificate(pair);
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
      this.#aggregation?.publish(this.#options.listen?.tls?.clientCa);
      this.#own = this.#run(
        ownControllers({
          edges: this.#edges,
          resources: this.#resources,
          storage: this.#storage,
          transport,
          objects: this.#objects,
          crds: this.#crds,
          aggregator: this.#aggregation?.aggregator,
          tokens: this.#tokens,
          authority: this.#options.rootCa ?? this.#options.listen?.tls?.cert ?? "",
          rbac: this.#rbac !== undefined,
        }),
        this.#stopOwn.signal,
      );
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

  /** Webhooks and policies, where their configurations are served. */
  #dynamicAdmission({ client, targets }: Outbound, access: Authorizer): readonly AdmissionPlugin[] {
    const serves = (plural: string): boolean =>
      this.#serves("admissionregistration.k8s.io", plural) !== undefined;
    const shared = {
      resources: this.#resources,
      storage: this.#storage,
      access,
      namespace: (name: string) => this.#objects.namespace(name, false),
    };
    const caller = { client, targets, random: this.#edges.random };
    return [
      ...(serves("validatingadmissionpolicies") ? [new ValidatingPolicies(shared)] : []),
      ...(serves("mutatingwebhookconfigurations") || serves("validatingwebhookconfigurations")
        ? [new Webhooks({ ...shared, caller })]
        : []),
    ];
  }

  #makeTokens(transport: Transport): ServiceAccountTokens {
    return new ServiceAccountTokens({
      transport,
      read: this.#objects.read,
      namespace: this.#systemNamespace,
      issuer: this.#options.serviceAccountIssuer ?? "https://kubernetes.default.svc",
      clock: this.#edges.clock,
      random: this.#edges.random,
    });
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
}
