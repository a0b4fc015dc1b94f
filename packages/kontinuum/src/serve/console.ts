/**
 * The console of a process: pages, browser login and bearer tokens of the provider, wired to the running server.
 *
 * With an issuer everybody signs in; without one everybody is anonymous. Pages act with the rights of whoever looks;
 * only the sealing key of sessions is read as the server itself.
 */
import { Client, secrets } from "@kontinuum/controller";
import type { ApiServer, Authenticator, HttpRoute } from "@kontinuum/kapi";
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import type { Config } from "../config/config.ts";
import { redactConnectionString } from "../config/redact.ts";
import { addInstance } from "../domain/instance/instance.add.ts";
import { clusterSecretName, kubeconfigText } from "../domain/taloscluster/cluster-secrets.ts";
import { addZone } from "../domain/zone/zone.add.ts";
import { systemNamespace } from "../kinds/index.ts";
import { oidcAuthenticator } from "../login/authenticator.ts";
import { discoverIssuer } from "../login/issuer.ts";
import { createLogin, type Login } from "../login/login.ts";
import { sessionKey } from "../login/session-key.ts";
import { createPages } from "../pages/pages.ts";
import type { ProviderView } from "../pages/topology.page.ts";

/** What the console is made of. */
export interface ConsoleOptions {
  readonly config: Config;
  readonly edges: Edges;
  readonly store: Store;
  readonly version: string;
  /** Name this process registered under. */
  readonly processName: () => string;
  /** The server, once it was made. */
  readonly server: () => ApiServer;
  /** PEM of the hub's own authority, when it serves with a certificate of it. */
  readonly authorities?: () => string;
  /** Machine providers of this process. Default: none. */
  readonly providers?: () => Promise<readonly ProviderView[]>;
  /** Address of the machine API of this process. */
  readonly machineApi?: string;
}

/** What the API server is given. */
export interface Console {
  readonly route: HttpRoute;
  readonly authenticators: readonly Authenticator[];
}

/** How long a sealing key is used before it is read again: a deleted key signs everybody out within this time. */
const keyUseMs = 30_000;

/** Prepares the console. With an issuer configured, fails with `unavailable` when it can't be discovered. */
export async function openConsole(options: ConsoleOptions): Promise<Console> {
  const { config, edges, store } = options;
  const issuer = config.oidc && (await discoverIssuer(config.oidc, edges));
  const login = issuer && createLogin({ issuer, sessionKey: sealingKey(options), edges });
  return {
    route: createPages({
      edges,
      transport: (user) => options.server().transport(user),
      ...signIn(login, config),
      processName: options.processName,
      version: options.version,
      store: async () => [
        storeName(config.values.KONTINUUM_SERVER_STORAGE),
        `revision ${(await store.revision()).toLocaleString("en-US")}`,
      ],
      providers: options.providers ?? (() => Promise.resolve([])),
      ...(options.authorities ? { authorities: options.authorities } : {}),
      ...(options.machineApi === undefined ? {} : { machineApi: options.machineApi }),
      addZone: (client, input) => addZone(client, edges.network, input),
      addInstance: (client, input) => addInstance(client, edges.network, input),
      clusterKubeconfig: async (client, cluster) => {
        const name = clusterSecretName(cluster);
        const secret = await client.find(secrets, { namespace: systemNamespace, name });
        return secret && kubeconfigText(secret);
      },
    }),
    authenticators: issuer ? [oidcAuthenticator(issuer, edges.clock)] : [],
  };
}

function signIn(
  login: Login | undefined,
  config: Config,
): { login?: Login; oidc?: { issuerUrl: string; clientId: string } } {
  return { ...(login ? { login } : {}), ...(config.oidc ? { oidc: config.oidc } : {}) };
}

/** The sealing key, read at most every {@link keyUseMs}. */
function sealingKey({ edges, server }: ConsoleOptions): () => Promise<Uint8Array> {
  let key: Promise<Uint8Array> | undefined;
  let readAt = 0;
  return () => {
    const now = edges.clock.monotonic();
    if (key === undefined || now - readAt > keyUseMs) {
      readAt = now;
      const client = new Client(server().transport(server().loopback), {
        edges,
        userAgent: "kontinuum-console",
      });
      key = sessionKey(client, edges.random);
      key.catch(() => {
        key = undefined;
      });
    }
    return key;
  };
}

/** What people call the store; the target without credentials. */
function storeName(url: string): string {
  const scheme = url.split("://")[0] ?? "";
  const names: Readonly<Record<string, string>> = {
    sqlite: "SQLite",
    postgres: "PostgreSQL",
    postgresql: "PostgreSQL",
    etcd: "etcd",
    memory: "Memory",
    grpc: "the hub's store",
  };
  return names[scheme] ?? redactConnectionString(url);
}
