/**
 * The machine API inside this process: served beside the Kubernetes-style API when a provider is chosen.
 *
 * It has a port of its own, because both APIs own `/api/v1`. With `KRYTON_AUTH_MODE` unset it takes the callers the API
 * server knows: administrators' groups are admins of every project. Projects are labelled namespaces. Without an issuer everybody is, as they are
 * in the API server, and then it stays on loopback.
 */
import path from "node:path";
import type { Transport } from "@kontinuum/controller";
import type { Authenticator as ApiAuthenticator } from "@kontinuum/kapi";
import {
  createKryton,
  openSealer,
  readConfig,
  type AuthRequest,
  type Authenticator,
  type CatalogImage,
  type DemoHook,
  type Environment,
  type Kryton,
  type Principal,
} from "@kontinuum/kryton";
import { CodedError, ensureFolder, type Edges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import type { Config } from "../config/config.ts";
import { openProjects, type Projects } from "./projects.ts";

/** What the machine API is made with. */
export interface MachineApiOptions {
  /** `KRYTON_…` variables. */
  readonly environment: Environment;
  readonly edges: Edges;
  readonly config: Config;
  /** The API server's own. */
  readonly authenticators: readonly ApiAuthenticator[];
  /** The API server as itself: projects are namespaces of it. */
  readonly transport: Transport;
  readonly onMachine?: DemoHook;
  readonly extraImages?: readonly CatalogImage[];
}

/** A machine API at work. */
export interface MachineApi {
  readonly url: string;
  /** What the console shows of the provider. */
  view(): Promise<{
    readonly name: string;
    readonly detail: string;
    readonly healthy: boolean;
    readonly machines: number;
  }>;
  stop(): Promise<void>;
}

/** Most machines of a project that are counted for the console. */
const countedMachines = 1000;

/** Longest wait for a provider's health, milliseconds. */
const healthMs = 2000;
const defaultAddress = "127.0.0.1:8081";

/** Starts it. Fails with `invalid_argument` for what does not go together. */
export async function startMachineApi(options: MachineApiOptions): Promise<MachineApi> {
  const { environment, edges, config: hub } = options;
  const mode = environment["KRYTON_AUTH_MODE"] ?? "";
  if (mode === "disabled" && hub.oidc) {
    throw new CodedError(
      "invalid_argument",
      "KRYTON_AUTH_MODE=disabled is refused while KONTINUUM_OIDC_ISSUER_URL is set: unset it to use the same sign-in",
    );
  }
  const config = readConfig({ ...environment, KRYTON_ADDR: environment["KRYTON_ADDR"] || defaultAddress });
  const sqlite = /^sqlite:\/\/([^?]+)/.exec(config.storage)?.[1];
  if (sqlite !== undefined)
    await ensureFolder(path.dirname(decodeURIComponent(sqlite)), { setting: "KRYTON_STORAGE" });
  const store = await openStore(config.storage, edges);
  let kryton: Kryton | undefined;
  let projects: Projects | undefined;
  try {
    const known = await openProjects(options.transport, config.projects, edges);
    projects = known;
    const sealer = await openSealer(
      { file: config.encryptionKeyFile, storage: config.storage },
      store,
      edges,
    );
    kryton = await createKryton({
      store,
      edges,
      config,
      sealer,
      projects: () => known.list(),
      ...(mode === "" && hub.oidc
        ? { authenticator: sharedSignIn(options.authenticators, hub.oidc.adminGroups) }
        : {}),
      ...(options.onMachine ? { onMachine: options.onMachine } : {}),
      ...(options.extraImages ? { extraImages: options.extraImages } : {}),
    });
    await kryton.start();
  } catch (error) {
    await kryton?.stop();
    await projects?.close();
    await store.close();
    throw error;
  }
  const running = kryton;
  const followed = projects;
  return {
    url: running.url,
    async view() {
      const { services } = running;
      const signal = AbortSignal.timeout(healthMs);
      const healthy = await services.provider.health({ signal, progress: () => {} }).then(
        () => true,
        () => false,
      );
      let machines = 0;
      for (const project of services.projects()) {
        const page = await services.machines.list(
          project,
          { limit: countedMachines, after: undefined },
          { labels: [], state: undefined },
        );
        machines += page.items.length;
      }
      return { name: config.provider, detail: running.url, healthy, machines };
    },
    async stop() {
      await running.stop();
      await followed.close();
      await store.close();
    },
  };
}

/** Callers as the API server's authenticators know them. Who is no administrator holds no project. */
export function sharedSignIn(
  authenticators: readonly ApiAuthenticator[],
  adminGroups: readonly string[],
): Authenticator {
  return {
    mode: "oidc",
    async authenticate(request: AuthRequest): Promise<Principal | undefined> {
      const bearer = /^Bearer (\S+)$/.exec(request.header("authorization") ?? "")?.[1];
      if (bearer === undefined) return undefined;
      for (const authenticator of authenticators) {
        const user = await authenticator.authenticate({
          bearer,
          headers: {},
          address: request.remoteAddress,
        });
        if (user === "invalid") return undefined;
        if (!user) continue;
        const isAdmin = user.groups.some((group) => adminGroups.includes(group));
        return { name: user.name, role: isAdmin ? "admin" : "viewer", projects: isAdmin ? ["*"] : [] };
      }
      return undefined;
    },
    // Tokens are short-lived and can't be recalled: a stream lives no longer than its connection.
    stillValid: () => true,
  };
}
