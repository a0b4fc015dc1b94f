/**
 * Running one process: store, API server, controllers, machine API, and their order of starting and stopping.
 *
 * What is opened is closed in reverse, whether a later part fails to start or the process is told to stop. A hub
 * (no placement) keeps the store in order, runs the controllers and serves the etcd face for zones; a zone's own
 * server works on the hub's store and reports itself. What only a hub or a machine API needs is loaded only there.
 */
import os from "node:os";
import { Client, type Controller } from "@kontinuum/controller";
import { createServer, type ApiServer } from "@kontinuum/kapi";
import { messageOf, uuidv7, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import type { HubAuthority } from "../authority/hub-authority.ts";
import { servingNames } from "../authority/serving-names.ts";
import type { Config } from "../config/config.ts";
import { redactConnectionString } from "../config/redact.ts";
import type { DomainContext } from "../domain/domain-context.ts";
import { processName } from "../domain/registry/process-name.ts";
import { Registration } from "../domain/registry/registration.ts";
import { heartbeatController } from "../domain/registry/registry.controller.ts";
import { defaultTimings, type Timings } from "../domain/timings.ts";
import { ZoneLeases } from "../domain/zone-lease/zone-leases.ts";
import { ZoneKeyring } from "../identity/zone-keyring.ts";
import { converters, crds } from "../kinds/index.ts";
import type { MachineApi, MachineApiOptions } from "../machines/machine-api.ts";
import { etcdProxy } from "../proxy/etcd-proxy.ts";
import { version } from "../version.ts";
import { openConsole } from "./console.ts";
import { LazyHelm } from "./lazy-helm.ts";
import { openProcessStore } from "./process-store.ts";
import { hubAuthorities, serverOptions } from "./server-options.ts";

/** Longest time a stop of the server may take, milliseconds. */
const stopMs = 10_000;

/** What a process is started with besides its configuration. */
export interface ServeOptions {
  readonly edges: Edges;
  /** Other intervals than the published ones: demo and tests. */
  readonly timings?: Partial<Timings>;
  /** `KRYTON_…` variables; a provider among them starts the machine API. Default: none. */
  readonly environment?: MachineApiOptions["environment"];
  /** What stands behind the demo provider's machines. */
  readonly machines?: Pick<MachineApiOptions, "onMachine" | "extraImages">;
}

/** A process at work. */
export interface RunningProcess {
  readonly server: ApiServer;
  readonly store: Store;
  /** Name it registered under. */
  readonly name: string;
  /** Address of the machine API, when this process serves it. */
  readonly machineApi: string | undefined;
  /** PEM of the hub's own authority, when it serves with a certificate of it. */
  readonly authorities: string | undefined;
  /** Leaves the registry, ends the controllers, then the machine API, the server and the store. */
  stop(): Promise<void>;
}

/** Serves until `signal` aborts; `onServing` is told once it answers. */
export async function serve(
  config: Config,
  options: ServeOptions & {
    readonly signal: AbortSignal;
    readonly onServing?: (process: RunningProcess) => void;
  },
): Promise<void> {
  const process = await startProcess(config, options);
  options.onServing?.(process);
  if (!options.signal.aborted) {
    await new Promise((resolve) => options.signal.addEventListener("abort", resolve, { once: true }));
  }
  options.edges.log.info("stops");
  await process.stop();
}

/** Starts a process; resolves when it answers. Whatever was opened before a failure is closed again. */
export async function startProcess(config: Config, options: ServeOptions): Promise<RunningProcess> {
  const { edges, environment = {} } = options;
  await using opened = new AsyncDisposableStack();
  const store = opened.adopt(await openProcessStore(config, edges), (one) => one.close());
  const timings: Timings = { ...defaultTimings, ...options.timings };
  const registration = newRegistration(config, edges);
  const leases = new ZoneLeases({ edges, holder: () => registration.name, durationMs: timings.zoneLeaseMs });
  const domain: DomainContext = { config, timings, leases };
  const hasProvider = Boolean(environment["KRYTON_PROVIDER"]);
  let machineApi: MachineApi | undefined;
  const authority = await openAuthority(config, store, edges);
  const console = await openConsole({
    config,
    edges,
    store,
    version,
    processName: () => registration.name,
    server: () => server,
    ...(authority ? { authorities: () => authority.bundle } : {}),
    ...(hasProvider ? { providers: async () => (machineApi ? [await machineApi.view()] : []) } : {}),
  });
  const controllers: Controller[] = [heartbeatController(domain, registration)];
  const keyring = config.placement ? undefined : new ZoneKeyring(edges.clock);
  if (keyring) {
    const helm = opened.adopt(new LazyHelm(config), (one) => one.close());
    const { domainControllers } = await import("./domain-controllers.ts");
    const authorities = await hubAuthorities(config, authority);
    controllers.push(keyring, domainControllers(domain, registration, helm, edges, authorities));
  }
  if (authority) controllers.push(authority.renewal((pair) => server.useCertificate(pair)));
  const server: ApiServer = createServer({
    ...(await serverOptions(config, console, authority)),
    storage: store,
    edges,
    controllers,
    routes: [console.route],
    // Machines of this process go away when nobody looks at them any more, and their zones' servers can still say goodbye.
    preShutdown: [async () => machineApi?.stop()],
    converters,
    // The hub keeps the store in order; a zone finds it so and may not change it.
    ...(keyring ? { crds, grpc: etcdProxy({ store, keyring, edges }) } : { housekeeping: false }),
  });
  opened.defer(() => server.stop(stopMs));
  await server.start();
  opened.defer(() => deregister(registration, server, edges, timings.deregisterMs));
  if (hasProvider) {
    const { authenticators } = console;
    const { startMachineApi } = await import("../machines/machine-api.ts");
    const transport = server.transport(server.loopback);
    const shared = { environment, edges, config, authenticators, transport };
    machineApi = await startMachineApi({ ...shared, ...options.machines });
  }
  announce(config, server, edges);
  const running = opened.move();
  return {
    server,
    store,
    machineApi: machineApi?.url,
    authorities: authority?.bundle,
    get name() {
      return registration.name;
    },
    stop: () => running.disposeAsync(),
  };
}

/** A hub's own authority, unless the operator brought a certificate. */
async function openAuthority(config: Config, store: Store, edges: Edges): Promise<HubAuthority | undefined> {
  if (config.placement || config.tls) return undefined;
  const { HubAuthority } = await import("../authority/hub-authority.ts");
  return HubAuthority.open(store, servingNames(config), edges);
}

function newRegistration(config: Config, edges: Edges): Registration {
  const name = processName(os.hostname(), config.values.KONTINUUM_SERVER_NAME, edges);
  return new Registration({ name, id: uuidv7(edges.clock, edges.random), version }, config, edges);
}

function announce(config: Config, server: ApiServer, { log }: Edges): void {
  for (const warning of config.warnings) log.warn(warning);
  log.info("serves", {
    url: server.url,
    storage: redactConnectionString(config.values.KONTINUUM_SERVER_STORAGE),
    role: config.placement ? "Worker" : "ControlPlane",
  });
}

/** Before anything else stops, so that nobody is sent to a process that is going away. */
async function deregister(
  registration: Registration,
  server: ApiServer,
  edges: Edges,
  limitMs: number,
): Promise<void> {
  const client = new Client(server.transport(server.loopback), { edges, userAgent: "kontinuum/heartbeat" });
  const leave = registration.deregister(client).catch((error: unknown) => {
    edges.log.warn("could not leave the registry; others remove the entry when it is stale", {
      reason: messageOf(error),
    });
  });
  const late = new AbortController();
  await Promise.race([leave, edges.clock.sleep(limitMs, late.signal).catch(() => {})]);
  late.abort();
}
