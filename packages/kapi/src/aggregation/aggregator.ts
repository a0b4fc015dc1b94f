/**
 * Aggregated APIs: group versions another server answers, found through APIService objects.
 *
 * Each is probed regularly; what it last said of its resources stays in discovery (marked stale) while it is away.
 * Requests are authorized here, then passed on without buffering, with the user named in headers that only this
 * server's certificate may send.
 */
import http from "node:http";
import type { Duplex } from "node:stream";
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import { at, CodedError, isObject, messageOf, stringAt, type Edges, type JsonObject } from "@kontinuum/std";
import { CacheWorker } from "../controllers/cache-worker.ts";
import { call } from "../controllers/call.ts";
import { withCondition } from "../controllers/crd-conditions.ts";
import type { RemoteDiscovery } from "../discovery/documents.ts";
import type { DiscoveredResource, RemoteGroupVersion } from "../discovery/groups.ts";
import type { TargetClient, OutboundTarget } from "../outbound/target-client.ts";
import type { ServiceTargets } from "../outbound/service-target.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { timestamp } from "../registry/metadata.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import { StatusError } from "../status/status.ts";
import { entryObject } from "../watch-cache/entry.ts";
import { isIdentityHeader, identityHeaders, type FrontProxyIdentity } from "./front-proxy.ts";
import { stringifyJson } from "../json/json.ts";

/** Time between probes of a backend, and of one that is away. */
const probeMs = 30_000;
const awayMs = 3_000;
/** Longest wait for one probe. */
const probeTimeoutMs = 5_000;
const connectTimeoutMs = 10_000;

/** What the aggregator needs. */
export interface AggregatorOptions {
  readonly edges: Edges;
  readonly resources: ResourceSet;
  readonly store: ResourceStore;
  readonly transport: Transport;
  readonly client: TargetClient;
  readonly targets: ServiceTargets;
  readonly identity: () => Promise<FrontProxyIdentity>;
  /** Discovery documents must be made again. */
  readonly changed: () => void;
}

interface Backend {
  readonly group: string;
  readonly version: string;
  readonly spec: JsonObject;
  available: boolean;
  resources: readonly DiscoveredResource[];
  openapi: Buffer | undefined;
}

/** Hop-by-hop headers (RFC 9110, 7.6.1): never passed on. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
  "http2-settings",
]);

/** Proxies aggregated APIs and keeps their availability. */
export class Aggregator implements Controller, RemoteDiscovery {
  readonly name = "aggregator";
  readonly #options: AggregatorOptions;
  readonly #backends = new Map<string, Backend>();
  #worker: CacheWorker | undefined;

  constructor(options: AggregatorOptions) {
    this.#options = options;
  }

  /** Group versions served elsewhere, for discovery. */
  versions(): readonly RemoteGroupVersion[] {
    return [...this.#backends.values()].map(({ group, version, spec, available, resources }) => ({
      group,
      version,
      resources,
      stale: !available,
      groupPriority: Number(spec["groupPriorityMinimum"] ?? 1000),
      versionPriority: Number(spec["versionPriority"] ?? 100),
    }));
  }

  /** The OpenAPI v3 document of one of them, as last seen. */
  openapi(group: string, version: string): Buffer | undefined {
    return this.#backends.get(`${group}/${version}`)?.openapi;
  }

  /** Groups whose backend does not answer now. */
  unreachable(): readonly string[] {
    return [...this.#backends.values()]
      .filter(({ available }) => !available)
      .map(({ group, version }) => `${group}/${version}`);
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const { edges, store } = this.#options;
    const { clock, log } = edges;
    const worker = new CacheWorker({
      name: this.name,
      clock,
      log,
      reconcile: (name) => this.#reconcile(name),
    });
    this.#worker = worker;
    await store.cache.load();
    const unfollow = worker.follow(store.cache, ({ key }) => [key.slice(store.prefix.length)]);
    try {
      await worker.run(signal);
    } finally {
      unfollow();
    }
  }

  async #reconcile(name: string): Promise<number | undefined> {
    const { store } = this.#options;
    const entry = store.cache.get(store.key("", name));
    const object = entry && entry.error === undefined ? entryObject(entry) : undefined;
    const spec = object && isObject(object["spec"]) ? object["spec"] : undefined;
    if (!object || !spec || !isObject(spec["service"])) {
      this.#forget(name);
      if (object && spec)
        await this.#writeCondition(name, object, true, "Local", "Local APIServices are always available");
      return undefined;
    }
    const group = stringAt(spec, "group") ?? "";
    const version = stringAt(spec, "version") ?? "";
    const id = `${group}/${version}`;
    const present = this.#backends.get(id);
    const backend: Backend = {
      group,
      version,
      spec,
      available: present?.available ?? false,
      resources: present?.resources ?? [],
      openapi: present?.openapi,
    };
    this.#backends.set(id, backend);
    try {
      await this.#probe(backend);
      await this.#writeCondition(name, object, true, "Passed", "all checks passed");
    } catch (error) {
      if (backend.available) {
        backend.available = false;
        this.#options.changed();
      }
      const reason = error instanceof CodedError ? error.details["reason"] : undefined;
      const target = `https://${stringAt(spec, "service", "name") ?? ""}.${stringAt(spec, "service", "namespace") ?? ""}.svc`;
      await this.#writeCondition(
        name,
        object,
        false,
        typeof reason === "string" ? reason : "FailedDiscoveryCheck",
        typeof reason === "string"
          ? messageOf(error)
          : `failing or missing response from ${target}/apis/${id}: ${messageOf(error)}`,
      );
      return awayMs;
    }
    return probeMs;
  }

  #forget(name: string): void {
    // The name of an APIService is <version>.<group>.
    const dot = name.indexOf(".");
    if (this.#backends.delete(`${name.slice(dot + 1)}/${name.slice(0, dot)}`)) this.#options.changed();
  }

  async #target(backend: Backend, path: string): Promise<OutboundTarget> {
    const { targets, identity } = this.#options;
    const namespace = stringAt(backend.spec, "service", "namespace") ?? "";
    const name = stringAt(backend.spec, "service", "name") ?? "";
    const port = at(backend.spec, "service", "port");
    const bundle = stringAt(backend.spec, "caBundle");
    const address = await targets.address(namespace, name, typeof port === "number" ? port : 443);
    const { cert, key } = await identity();
    return {
      ...address,
      path,
      serverName: `${name}.${namespace}.svc`,
      ca: bundle === undefined || bundle === "" ? undefined : Buffer.from(bundle, "base64").toString("utf8"),
      insecure: backend.spec["insecureSkipTLSVerify"] === true,
      identity: { cert, key },
    };
  }

  async #probe(backend: Backend): Promise<void> {
    const { client, changed } = this.#options;
    const root = `/apis/${backend.group}/${backend.version}`;
    const headers = {
      [identityHeaders.user]: "system:kube-aggregator",
      [identityHeaders.group]: "system:masters",
    };
    const list = await client.call(await this.#target(backend, root), { timeoutMs: probeTimeoutMs, headers });
    const resources = readResources(list, backend.group, backend.version);
    const openapi = await client
      .call(await this.#target(backend, `/openapi/v3${root}`), { timeoutMs: probeTimeoutMs, headers })
      .then((document) => Buffer.from(stringifyJson(document)))
      .catch(() => undefined);
    const same = backend.available && stringifyJson(resources) === stringifyJson(backend.resources);
    backend.available = true;
    backend.resources = resources;
    backend.openapi = openapi ?? backend.openapi;
    if (!same) changed();
  }

  async #writeCondition(
    name: string,
    object: JsonObject,
    available: boolean,
    reason: string,
    message: string,
  ): Promise<void> {
    const { transport, edges } = this.#options;
    const status = isObject(object["status"]) ? object["status"] : {};
    const present = Array.isArray(status["conditions"]) ? status["conditions"] : [];
    const input = {
      type: "Available",
      status: available ? ("True" as const) : ("False" as const),
      reason,
      message,
    };
    const conditions = withCondition(present, input, timestamp(edges.clock.now()));
    if (stringifyJson(conditions) === stringifyJson(present)) return;
    await call(
      transport,
      "PATCH",
      `/apis/apiregistration.k8s.io/v1/apiservices/${encodeURIComponent(name)}/status`,
      { status: { conditions } },
    );
  }

  /** Passes a request on when its group version is served elsewhere. */
  async proxy(context: RequestContext): Promise<boolean> {
    const backend = this.#backendOf(context.info.path);
    if (!backend) return false;
    if (!backend.available) throw new StatusError(503, "ServiceUnavailable", "service unavailable");
    await this.#forward(context, backend);
    return true;
  }

  /** Whether another server answers this path. */
  answers(path: string): boolean {
    return this.#backendOf(path) !== undefined;
  }

  #backendOf(path: string): Backend | undefined {
    if (this.#backends.size === 0) return undefined;
    const [root, group = "", version = ""] = path.split("/").slice(1);
    if (root !== "apis" || version === "" || this.#options.resources.hasGroupVersion(group, version))
      return undefined;
    return this.#backends.get(`${group}/${version}`);
  }

  async #forward(context: RequestContext, backend: Backend): Promise<void> {
    const { request, response, user, tunnel } = context;
    const { client } = this.#options;
    const target = await this.#target(backend, request.url);
    let socket;
    try {
      socket = await client.connect(target, connectTimeoutMs);
    } catch (error) {
      // Whoever asks next should know at once: look now, not at the next turn.
      this.#worker?.mark(`${backend.version}.${backend.group}`);
      throw new StatusError(503, "ServiceUnavailable", `error trying to reach service: ${messageOf(error)}`);
    }
    const headers: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(request.headers)) {
      if (value !== undefined && !name.startsWith(":") && !hopByHop.has(name) && !isIdentityHeader(name))
        headers[name] = value;
    }
    headers[identityHeaders.user] = user.name;
    if (user.uid !== undefined) headers[identityHeaders.uid] = user.uid;
    headers[identityHeaders.group] = [...user.groups];
    for (const [key, values] of Object.entries(user.extra ?? {}))
      headers[`${identityHeaders.extra}${encodeURIComponent(key)}`] = [...values];
    headers["host"] = target.serverName ?? target.host;
    if (tunnel) Object.assign(headers, { connection: "Upgrade", upgrade: tunnel.protocol });
    const out = http.request({
      createConnection: () => socket,
      method: request.method,
      path: target.path,
      headers,
    });
    const cut = (): void => void out.destroy();
    context.signal.addEventListener("abort", cut, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        out.on("error", reject);
        out.on("upgrade", (answer, back, first) => {
          // Nobody but a client with a tunnel asks for another protocol.
          if (!tunnel) return reject(new CodedError("unavailable", "the protocol was changed unasked"));
          context.onStarted?.();
          if (first.length > 0) back.unshift(first);
          void joined(tunnel.open(answer.rawHeaders), back).then(resolve);
        });
        out.on("response", (answer) => {
          const back: Record<string, string | readonly string[]> = {};
          for (const [name, value] of Object.entries(answer.headers))
            if (value !== undefined && !hopByHop.has(name)) back[name] = value;
          response.writeHead(answer.statusCode ?? 502, back);
          response.flushHeaders();
          context.onStarted?.();
          answer.on("data", (chunk: Buffer) => {
            if (!response.write(chunk)) answer.pause();
          });
          response.on("drain", () => answer.resume());
          answer.on("end", () => {
            response.end();
            resolve();
          });
          answer.on("error", reject);
        });
        void (async () => {
          for await (const chunk of request.body) out.write(chunk);
          out.end();
        })().catch(reject);
      });
    } catch (error) {
      if (response.headersSent) response.destroy();
      else
        throw new StatusError(
          503,
          "ServiceUnavailable",
          `error trying to reach service: ${messageOf(error)}`,
        );
    } finally {
      context.signal.removeEventListener("abort", cut);
      socket.destroy();
    }
  }
}

/** Passes bytes and ends both ways; resolves once the client is gone. One that breaks off takes the other along. */
function joined(client: Duplex, back: Duplex): Promise<void> {
  return new Promise((resolve) => {
    back.on("error", () => client.destroy());
    back.on("close", () => {
      if (!back.readableEnded) client.destroy();
    });
    client.on("error", () => back.destroy());
    client.on("close", () => {
      back.destroy();
      resolve();
    });
    client.pipe(back);
    back.pipe(client);
  });
}

/** Resources of an `APIResourceList`, with their subresources. */
function readResources(list: unknown, group: string, version: string): readonly DiscoveredResource[] {
  const items = at(list, "resources");
  if (stringAt(list, "kind") !== "APIResourceList" || !Array.isArray(items))
    throw new CodedError("unavailable", "the backend did not answer with an APIResourceList");
  const strings = (value: unknown): readonly string[] =>
    Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
  const kindOf = (item: JsonObject) => ({
    group: stringAt(item, "group") ?? group,
    version: stringAt(item, "version") ?? version,
    kind: stringAt(item, "kind") ?? "",
  });
  const all = items.filter(isObject);
  return all
    .filter((item) => !(stringAt(item, "name") ?? "").includes("/"))
    .map((item) => {
      const plural = stringAt(item, "name") ?? "";
      return {
        plural,
        singular: stringAt(item, "singularName") || (stringAt(item, "kind") ?? "").toLowerCase(),
        kind: stringAt(item, "kind") ?? "",
        namespaced: item["namespaced"] === true,
        verbs: strings(item["verbs"]),
        shortNames: strings(item["shortNames"]),
        categories: strings(item["categories"]),
        subresources: all
          .filter((other) => (stringAt(other, "name") ?? "").startsWith(`${plural}/`))
          .map((other) => ({
            name: (stringAt(other, "name") ?? "").slice(plural.length + 1),
            verbs: strings(other["verbs"]),
            kind: kindOf(other),
          })),
      };
    });
}
