/**
 * Running one process: store, API server, controllers, and their order of starting and stopping.
 *
 * A hub (no placement) runs all controllers and serves the etcd face for zones. A zone's own server runs on the
 * hub's store, reports itself, and controls nothing: what it may write there would not allow it to.
 */
import { readFile } from "node:fs/promises";
import os from "node:os";
import { Client, combineControllers, type Controller } from "@kontinuum/controller";
import { createServer, type ApiServer, type ServerOptions } from "@kontinuum/kapi";
import { CodedError, messageOf, uuidv7, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import { adminAuthorizer } from "../auth/admin-authorizer.ts";
import type { Config } from "../config/config.ts";
import { redactConnectionString } from "../config/redact.ts";
import { adminRbacController } from "../domain/admin-rbac/admin-rbac.controller.ts";
import { addonController } from "../domain/addon/addon.controller.ts";
import { openHelm, type Helm } from "../domain/addon/helm.ts";
import type { DomainContext } from "../domain/domain-context.ts";
import { instanceResetController } from "../domain/instance-reset/instance-reset.controller.ts";
import { instanceController } from "../domain/instance/instance.controller.ts";
import { talosProbe } from "../domain/instance/instance.probe.ts";
import { instancePoolController } from "../domain/instancepool/instancepool.controller.ts";
import { processName } from "../domain/registry/process-name.ts";
import { Registration } from "../domain/registry/registration.ts";
import { heartbeatController, registryController } from "../domain/registry/registry.controller.ts";
import { talosClusterController } from "../domain/taloscluster/taloscluster.controller.ts";
import { defaultTimings, type Timings } from "../domain/timings.ts";
import { ZoneLeases } from "../domain/zone-lease/zone-leases.ts";
import { zoneController } from "../domain/zone/zone.controller.ts";
import { ZoneKeyring } from "../identity/zone-keyring.ts";
import { converters, crds, systemNamespace } from "../kinds/index.ts";
import {
  startMachineApi,
  wantsMachineApi,
  type MachineApi,
  type MachineApiOptions,
} from "../machines/machine-api.ts";
import { etcdProxy } from "../proxy/etcd-proxy.ts";
import { version } from "../version.ts";
import { openConsole, type Console } from "./console.ts";
import { openProcessStore } from "./process-store.ts";

/** Longest time a stop may take, milliseconds. */
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
  /** Leaves the registry, ends the controllers, then the server, then the store. */
  stop(): Promise<void>;
}

/** Serves until `signal` aborts. */
export async function serve(
  config: Config,
  options: ServeOptions & { readonly signal: AbortSignal },
): Promise<void> {
  const process = await startProcess(config, options);
  if (!options.signal.aborted) {
    await new Promise((resolve) => options.signal.addEventListener("abort", resolve, { once: true }));
  }
  options.edges.log.info("stops");
  await process.stop();
}

/** Starts a process; resolves when it answers. Whatever was opened before a failure is closed again. */
export async function startProcess(config: Config, options: ServeOptions): Promise<RunningProcess> {
  const { edges } = options;
  const store = await openProcessStore(config, edges);
  const wanted = wantsMachineApi(options.environment ?? {});
  let machineApi: MachineApi | undefined;
  let helm: Promise<Helm> | undefined;
  const closeHelm = async (): Promise<void> => {
    await helm?.then((one) => one.close()).catch(() => {});
  };
  try {
    const timings: Timings = { ...defaultTimings, ...options.timings };
    const registration = new Registration(
      {
        name: processName(os.hostname(), config.values.KONTINUUM_SERVER_NAME, edges),
        id: uuidv7(edges.clock, edges.random),
        version,
      },
      config,
      edges,
    );
    const leases = new ZoneLeases({
      edges,
      holder: () => registration.name,
      durationMs: timings.zoneLeaseMs,
    });
    const domain: DomainContext = { config, timings, leases };
    const keyring = config.placement ? undefined : new ZoneKeyring(edges.clock);
    const controllers: Controller[] = [heartbeatController(domain, registration)];
    if (keyring) {
      const openOnce = (): Promise<Helm> =>
        (helm ??= openHelm(config.values.KONTINUUM_HELM, process.env["PATH"] ?? "").catch(
          (error: unknown) => {
            // Somebody may install it meanwhile: the next addon asks again.
            helm = undefined;
            throw error;
          },
        ));
      const hubAuthorities = await readPem("KONTINUUM_SERVER_GRPC_CA_FILE", config.grpc.caFile);
      controllers.push(
        keyring,
        combineControllers("kontinuum", [
          registryController(domain, registration),
          instanceController(domain, talosProbe(edges)),
          instancePoolController(domain),
          talosClusterController(domain, edges.clock),
          instanceResetController(domain),
          addonController(domain, openOnce),
          zoneController(domain, { version, hubAuthorities }),
          ...(config.oidc ? [adminRbacController(domain)] : []),
        ]),
      );
    }
    const console = await openConsole({
      config,
      edges,
      store,
      version,
      processName: () => registration.name,
      server: () => server,
      ...(wanted ? { providers: async () => (machineApi ? [await machineApi.view()] : []) } : {}),
    });
    const server: ApiServer = createServer({
      ...(await serverOptions(config, console)),
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
    try {
      await server.start();
      if (wanted) {
        machineApi = await startMachineApi({
          environment: options.environment ?? {},
          edges,
          config,
          authenticators: console.authenticators,
          ...options.machines,
        });
      }
    } catch (error) {
      await server.stop(stopMs);
      throw error;
    }
    for (const warning of config.warnings) edges.log.warn(warning);
    edges.log.info("serves", {
      url: server.url,
      storage: redactConnectionString(config.values.KONTINUUM_SERVER_STORAGE),
      role: config.placement ? "Worker" : "ControlPlane",
    });
    return {
      server,
      store,
      machineApi: machineApi?.url,
      get name() {
        return registration.name;
      },
      async stop() {
        await deregister(registration, server, edges, timings.deregisterMs);
        await server.stop(stopMs);
        await closeHelm();
        await store.close();
      },
    };
  } catch (error) {
    await closeHelm();
    await store.close();
    throw error;
  }
}

async function serverOptions(
  config: Config,
  console: Console,
): Promise<Pick<ServerOptions, "auth" | "listen" | "systemNamespace">> {
  const { listen, tls, oidc } = config;
  return {
    systemNamespace,
    listen: {
      host: listen.host,
      port: listen.port,
      ...(tls
        ? {
            tls: {
              cert: await readPem("KONTINUUM_SERVER_TLS_CERT_FILE", tls.certFile),
              key: await readPem("KONTINUUM_SERVER_TLS_KEY_FILE", tls.keyFile),
            },
          }
        : {}),
    },
    // No authenticator and no authorizer: the server takes everybody as anonymous and guards the Host header.
    auth: oidc
      ? { authenticators: console.authenticators, authorizers: [adminAuthorizer(oidc.adminGroups)] }
      : { authenticators: [], authorizers: [] },
  };
}

async function readPem(variable: string, file: string): Promise<string> {
  if (file === "") return "";
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `${variable} names ${file}, which can't be read: ${messageOf(error)}`,
    );
  }
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
