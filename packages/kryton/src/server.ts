/**
 * A whole machine API: everything wired together, with a start and an end.
 *
 * `krytond` serves one alone; `kontinuum serve` embeds one. The store is given and shared; all else
 * belongs to this server and ends with it.
 */
import { CodedError, messageOf, OutboundClient, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import type { Hono } from "hono";
import { ApiKeyAuthenticator } from "./auth/api-keys.ts";
import type { Authenticator } from "./auth/authenticator.ts";
import { disabledAuthenticator } from "./auth/disabled.ts";
import { FailureLimit } from "./auth/failure-limit.ts";
import { openProxyAuthenticator } from "./auth/proxy.ts";
import { KeyUse } from "./auth/key-use.ts";
import { TicketKeys } from "./auth/ticket-keys.ts";
import { Tickets } from "./auth/tickets.ts";
import { builtInCatalog, loadCatalog } from "./catalog/catalog.ts";
import { ImageInventory } from "./catalog/inventory.ts";
import { ConsoleSockets } from "./console/sockets.ts";
import type { Config } from "./config/config.ts";
import { Doctor } from "./doctor/doctor.ts";
import { GoldenBuilds } from "./golden/builds.ts";
import { GoldenSource } from "./golden/golden-source.ts";
import { EventFile } from "./events/event-file.ts";
import { EventLog } from "./events/event-log.ts";
import { StreamHub } from "./events/stream-hub.ts";
import { Keeper } from "./housekeeping/keeper.ts";
import { createHandler } from "./http/app.ts";
import { Idempotency } from "./http/idempotency.ts";
import { closeServer, createServer, listen, listenersOf, readTls } from "./http/listener.ts";
import type { AppEnv } from "./http/pages.ts";
import { Pipeline } from "./http/pipeline.ts";
import { RateLimit } from "./http/rate-limit.ts";
import { routeNamer } from "./http/route-names.ts";
import { allRoutes } from "./http/routes.ts";
import type { Services } from "./http/services.ts";
import { replayReply } from "./http/replay.ts";
import { Metrics } from "./metrics/metrics.ts";
import type { CatalogImage } from "./model/image.ts";
import { Observer } from "./observer/observer.ts";
import { machineRecordSchema } from "./operations/record.ts";
import { OperationRunner } from "./operations/runner.ts";
import type { Provider } from "./provider-contract/contract.ts";
import { createProvider } from "./provider-contract/registry.ts";
import type { DemoHook } from "./providers/demo/hook.ts";
import { MachineService } from "./service/machines.ts";
import { OperationService } from "./service/operations.ts";
import { SnapshotService } from "./service/snapshots.ts";
import { readSecrets } from "./service/guest-secrets.ts";
import { RuntimeSettings } from "./settings/runtime-settings.ts";
import { importSettings, mirrorSettings, ownsFiles } from "./settings/settings-file.ts";
import { KubernetesStorage } from "./cluster/cluster-storage.ts";
import { readClusterAccess } from "./cluster/cluster-config.ts";
import { Kubernetes } from "./cluster/kubernetes.ts";
import { StorageSetup } from "./storage-setup/setup.ts";
import { Documents } from "./store/documents.ts";
import { keys } from "./store/keyspace.ts";
import { Leadership } from "./store/leadership.ts";
import type { Sealer } from "./store/sealer.ts";
import { ReplicaSession } from "./store/session.ts";
import { Expiry } from "./ttl/expiry.ts";
import { Webhooks } from "./webhooks/webhooks.ts";

/** What a server is made from. */
export interface KrytonOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly config: Config;
  readonly sealer: Sealer;
  /** Recognises callers instead of what the configuration says. */
  readonly authenticator?: Authenticator;
  /** Projects instead of the configured ones; asked at each request. */
  readonly projects?: () => readonly string[];
  /** Images beside the catalog's. */
  readonly extraImages?: readonly CatalogImage[];
  /** A provider of the embedding program's own, instead of the configured one. */
  readonly provider?: Provider;
  /** Boots something behind demo machines. */
  readonly onMachine?: DemoHook;
  /** Pages beside the API, given what they may use. */
  readonly pages?: (services: Services) => Hono<AppEnv>;
}

/** A machine API that can be started once and stopped. */
export interface Kryton {
  /** Starts everything; resolves when requests are served. Fails with `unavailable` when the address is in use. */
  start(): Promise<void>;
  /** Stops taking requests, drains, interrupts what runs (it goes on elsewhere), frees everything. */
  stop(): Promise<void>;
  /** Where it is reached; known after `start`. */
  readonly url: string;
  /** For an embedding program: what routes and pages use. */
  readonly services: Services;
}

/** Builds a server. Fails with `invalid_argument` for what the configuration should not say. */
export async function createKryton(options: KrytonOptions): Promise<Kryton> {
  const { store, edges, config, sealer } = options;
  for (const warning of config.warnings) edges.log.warn(warning);
  const catalog =
    config.imagesFile === "" ? builtInCatalog(options.extraImages) : await loadCatalog(config.imagesFile);
  const provider =
    options.provider ??
    (await createProvider({ store, edges, config, catalog, onMachine: options.onMachine }));
  const authenticator = options.authenticator ?? (await openAuthenticator(config, edges));
  const tls = await readTls(config);
  const access = await readClusterAccess(config.env);
  const api = access && new Kubernetes(access);
  const documents = new Documents(store, edges.log);
  const metrics = new Metrics();
  const ownListeners = new Set<string>();
  let mirrored = Promise.resolve();
  const session = new ReplicaSession(store, edges);
  const projects = options.projects ?? (() => config.projects);
  const outbound = new OutboundClient(edges.network, edges.clock, {
    allow: config.outboundAllow,
    ownListeners: () => [...ownListeners],
  });
  const settings: RuntimeSettings = new RuntimeSettings({
    store,
    edges,
    sealer,
    config,
    projects,
    onChange: (current) => {
      webhooks.reconcile();
      provider.cluster?.useClass(current.storageClass);
      provider.cluster?.useImageNamespace(current.imageNamespace);
    },
    onWrite: (current) => {
      // One after the other, so that the newest is what remains.
      if (ownsFiles(config)) mirrored = mirrored.then(() => mirrorSettings(config, current, edges));
    },
  });
  const defaultProject = (): string => settings.current.defaultProject;
  const runner = new OperationRunner({
    store,
    edges,
    session,
    tools: {
      provider,
      clock: edges.clock,
      documents,
      image: (id) => catalog.get(id),
      secrets: (machineId) => readSecrets(documents, sealer, machineId),
      machine: async (project, id) =>
        (await documents.get(keys.machine(project, id), machineRecordSchema))?.value,
    },
    onEnd: (operation) => metrics.outcome(operation.kind, operation.state),
  });
  const golden = new GoldenBuilds(config.goldenDir, edges);
  // On KubeVirt only a published data source makes an image ready: a disk on this host says nothing about the cluster.
  const sources =
    provider.name === "kubevirt" ? [] : [new GoldenSource(golden, config.projectRoot, edges.clock)];
  const inventory = new ImageInventory({ catalog, provider: provider.name, sources });
  const machines = new MachineService({
    store,
    edges,
    session,
    runner,
    provider,
    catalog,
    sealer,
    available: (entry) => inventory.available(entry),
    quota: (project) => config.quotas.get(project) ?? config.quotas.get("*"),
  });
  const events = new EventLog(store, edges, config.eventsRetention);
  const streams = new StreamHub(events, edges);
  const leadership = new Leadership(store, edges, session);
  const setup =
    api &&
    new StorageSetup({
      store,
      edges,
      leadership,
      settings,
      api,
      folder: config.storageManifests,
      env: config.env,
    });
  const webhooks = new Webhooks({
    store,
    edges,
    log: events,
    leadership,
    outbound,
    sealer,
    secret: config.webhookSecret,
    secretUrl: config.webhookUrl,
    settings: () => settings.current,
    onAttempt: (ok) =>
      metrics.count(
        ok ? "kryton_webhook_deliveries_total" : "kryton_webhook_failures_total",
        ok ? "Events delivered to webhooks." : "Attempts to deliver an event that failed.",
      ),
  });
  const tickets = new Tickets({
    edges,
    keys: new TicketKeys(store, edges, sealer),
    holds: (issuer) => authenticator.stillValid(issuer),
    secure: () => tls !== undefined || config.publicUrl.startsWith("https://"),
  });
  const keyUse = new KeyUse(store, edges);
  authenticator.onUse?.((name) => keyUse.used(name));
  const snapshots = new SnapshotService({ store, edges, provider, machines });
  const services: Services = {
    store,
    edges,
    config,
    provider,
    authenticator,
    keyUse,
    tickets,
    inventory,
    machines,
    snapshots,
    operations: new OperationService({ store, edges }),
    runner,
    events,
    streams,
    doctor: new Doctor({ edges, config, authMode: authenticator.mode, provider, catalog, projects }),
    metrics,
    settings,
    webhooks,
    golden,
    outbound,
    cluster: provider.cluster ?? (api && new KubernetesStorage(api)),
    setup,
    goldenImages: () => Promise.resolve(false),
    projects,
    defaultProject,
  };
  const routes = allRoutes(services);
  metrics.routeName = routeNamer(routes);
  metrics.gauge({ name: "kryton_event_streams", help: "Open event streams.", read: () => streams.size });
  metrics.gauge({
    name: "kryton_operations_waiting",
    help: "Operations that wait or run.",
    read: () => runner.board.total,
  });
  metrics.gauge({
    name: "kryton_operations_running",
    help: "Operations running in this replica.",
    read: () => runner.running,
  });
  const pipeline = new Pipeline({
    edges,
    authenticator,
    tickets,
    failures: new FailureLimit(edges.clock),
    rateLimit: new RateLimit(edges.clock, config.rateLimitRps, config.rateLimitBurst),
    idempotency: new Idempotency(store, edges, session),
    allowedHosts: config.allowedHosts,
    projects,
    defaultProject,
    replay: (route, project, accepted) => replayReply(machines, snapshots, route, project, accepted),
  });
  const handler = await createHandler({
    routes,
    pipeline,
    prelude: { edges, metrics, corsOrigins: config.corsOrigins },
    pages: options.pages?.(services),
  });
  const server = createServer(tls, handler);
  const consoles = new ConsoleSockets(services, pipeline);
  server.on("upgrade", (incoming, socket, head) => void consoles.upgrade(incoming, socket, head));
  authenticator.onChange?.(() => streams.recheck());

  const expiry = new Expiry({
    store,
    edges,
    leadership,
    machines,
    intervalMs: config.reconcileIntervalMs,
    onExpired: () =>
      metrics.count("kryton_machines_expired_total", "Machines deleted because their time was over."),
  });
  const observer = new Observer({ store, edges, leadership, provider, projects });
  const eventFile = config.eventsFile === "" ? undefined : new EventFile(config.eventsFile, edges);
  await eventFile?.import(store).catch((error: unknown) => {
    if (error instanceof CodedError) throw error;
    throw new CodedError("invalid_argument", `KRYTON_EVENTS_FILE: ${messageOf(error)}`);
  });
  const keeper = new Keeper({ store, edges, leadership, retention: config.eventsRetention });
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];
  let url = "";

  return {
    services,
    get url() {
      return url;
    },
    async start() {
      await provider.open?.();
      const ready = Promise.withResolvers<void>();
      loops.push(events.run(ready.resolve, stopping.signal));
      await settings.seed(ownsFiles(config) ? await importSettings(config, settings, edges) : {});
      await Promise.all([ready.promise, runner.start()]);
      streams.start();
      eventFile?.follow(events);
      loops.push(
        expiry.run(stopping.signal),
        keeper.run(stopping.signal),
        observer.run(stopping.signal),
        webhooks.run(stopping.signal),
        settings.run(stopping.signal),
        keyUse.run(stopping.signal),
        ...(setup ? [setup.run(stopping.signal)] : []),
      );
      url = await listen(server, config, tls !== undefined);
      for (const address of listenersOf(server)) ownListeners.add(address);
    },
    async stop() {
      const closed = closeServer(server, config.shutdownTimeoutMs, edges);
      streams.stop();
      consoles.stop();
      await closed;
      stopping.abort();
      await runner.stop();
      await session.stop();
      await Promise.allSettled([...loops, mirrored]);
      await eventFile?.stop();
      authenticator.close?.();
      await api?.close();
      await provider.close?.();
    },
  };
}

async function openAuthenticator(config: Config, edges: Edges): Promise<Authenticator> {
  switch (config.authMode) {
    case "disabled":
      return disabledAuthenticator;
    case "apikey":
      return ApiKeyAuthenticator.open(config.apiKeysFile, edges);
    case "proxy":
      return openProxyAuthenticator(config.proxySecretFile);
  }
}
