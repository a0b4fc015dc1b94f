/**
 * A private server for one test file: TLS, token users, a real kubectl, and a plain HTTPS client that sees every
 * header. The store is SQLite in a temporary folder unless another is given.
 */
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import * as x509 from "@peculiar/x509";
import { createServer, staticTokens, type ApiServer, type ServerOptions } from "@kontinuum/kapi";
import { at, systemEdges, type JsonObject } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import { findKubectl } from "../services/kubernetes-tools.ts";
import { run, skipUnless, waitFor, type Ran } from "../services/service.ts";

/** Token of a member of `system:masters`, and of the plain user `u`. */
export const adminToken = "conformance-admin";
export const userToken = "conformance-user";

/** Why the kubectl tests are left out, or false. */
export const skip = skipUnless(await findKubectl());

/** A self-signed certificate for loopback, as PEM. */
export async function selfSigned(): Promise<{ cert: string; key: string }> {
  x509.cryptoProvider.set(webcrypto as never);
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=localhost",
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + 86_400_000),
    keys: keys as never,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: "ip", value: "127.0.0.1" },
        { type: "dns", value: "localhost" },
      ]),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  const lines = pkcs8.match(/.{1,64}/g)?.join("\n") ?? "";
  return {
    cert: certificate.toString("pem"),
    key: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
  };
}

/** What came back. */
export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly bytes: Buffer;
  readonly text: string;
  /** The parsed body; undefined when it is no JSON. */
  readonly json: unknown;
  /** A value inside the parsed body. */
  at(...path: readonly (string | number)[]): unknown;
}

/** Options of a request. */
export interface Ask {
  readonly token?: string | null;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly type?: string;
}

/** One event of a watch. */
export interface Event {
  readonly type: string;
  readonly object: JsonObject;
}

/** An open watch. */
export interface OpenWatch {
  readonly events: Event[];
  readonly status: number;
  ended: boolean;
  close(): void;
  /** Waits for an event. */
  next(what: (event: Event) => boolean, timeoutMs?: number): Promise<Event>;
}

/** The running server with its clients. */
export class Cluster {
  readonly server: ApiServer;
  readonly store: Store;
  readonly folder: string;
  readonly ca: string;
  readonly #agent: https.Agent;

  private constructor(server: ApiServer, store: Store, folder: string, ca: string) {
    this.server = server;
    this.store = store;
    this.folder = folder;
    this.ca = ca;
    this.#agent = new https.Agent({ ca, keepAlive: true, maxSockets: 64 });
  }

  static async start(options: Partial<ServerOptions> = {}, storeUrl?: string): Promise<Cluster> {
    const folder = await mkdtemp(path.join(os.tmpdir(), "kapi-conformance-"));
    const edges = systemEdges();
    const store =
      options.storage ?? (await openStore(storeUrl ?? `sqlite://${path.join(folder, "store.db")}`, edges));
    const { cert, key } = options.listen?.tls ?? (await selfSigned());
    const server = createServer({
      storage: store,
      edges,
      auth: {
        authenticators: [
          staticTokens([
            { token: adminToken, user: { name: "admin", groups: ["system:masters"] } },
            { token: userToken, user: { name: "u", groups: [] } },
          ]),
        ],
        authorizers: [],
      },
      listen: { port: 0, tls: { cert, key } },
      ...options,
    });
    await server.start();
    const cluster = new Cluster(server, store, folder, cert);
    await writeFile(path.join(folder, "ca.crt"), cert);
    await writeFile(path.join(folder, "kubeconfig"), cluster.#kubeconfig(adminToken), { mode: 0o600 });
    return cluster;
  }

  #kubeconfig(token: string): string {
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "c",
          cluster: { server: this.server.url, "certificate-authority": path.join(this.folder, "ca.crt") },
        },
      ],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: { token } }],
      "current-context": "c",
    };
    return JSON.stringify(config);
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.server.stop(5000);
    await this.store.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Environment for programs that read a kubeconfig. */
  get env(): NodeJS.ProcessEnv {
    return {
      PATH: process.env["PATH"],
      HOME: this.folder,
      KUBECONFIG: path.join(this.folder, "kubeconfig"),
      KUBECACHEDIR: path.join(this.folder, "cache"),
    };
  }

  /** Runs kubectl with an argument array. */
  async k(args: readonly string[], input?: string): Promise<Ran> {
    const kubectl = await findKubectl();
    if (typeof kubectl !== "string") throw new Error(kubectl.missing);
    return run(kubectl, args, {
      env: this.env,
      ...(input === undefined ? {} : { input }),
      timeoutMs: 60_000,
    });
  }

  /** Runs kubectl and fails unless it succeeds; answers what it printed. */
  async ok(args: readonly string[], input?: string): Promise<string> {
    const ran = await this.k(args, input);
    if (ran.code !== 0)
      throw new Error(`kubectl ${args.join(" ")}: exit ${String(ran.code)}: ${ran.stderr}${ran.stdout}`);
    return ran.stdout;
  }

  /** A new namespace. */
  async namespace(name: string): Promise<string> {
    await this.ok(["create", "namespace", name]);
    return name;
  }

  /** Sends a request and reads the whole answer. */
  ask(method: string, url: string, ask: Ask = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = this.#request(method, url, ask, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const bytes = Buffer.concat(chunks);
          const text = bytes.toString("utf8");
          let json: unknown;
          try {
            json = JSON.parse(text);
          } catch {
            json = undefined;
          }
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            bytes,
            text,
            json,
            at: (...path) => at(json, ...path),
          });
        });
      });
      request.on("error", reject);
    });
  }

  #request(
    method: string,
    url: string,
    ask: Ask,
    answered: Parameters<typeof https.request>[2],
  ): ReturnType<typeof https.request> {
    const body =
      ask.body === undefined
        ? undefined
        : typeof ask.body === "string" || Buffer.isBuffer(ask.body)
          ? ask.body
          : JSON.stringify(ask.body);
    const headers: Record<string, string> = { ...ask.headers };
    if (ask.token !== null) headers["authorization"] = `Bearer ${ask.token ?? adminToken}`;
    if (body !== undefined) {
      headers["content-type"] ??= ask.type ?? "application/json";
      headers["content-length"] = String(Buffer.byteLength(body));
    }
    const request = https.request(
      `${this.server.url}${url}`,
      { method, headers, agent: this.#agent },
      answered,
    );
    request.end(body);
    return request;
  }

  /** Opens a watch; resolves once its answer has begun. */
  watch(url: string, ask: Ask = {}): Promise<OpenWatch> {
    return new Promise((resolve, reject) => {
      const request = this.#request("GET", url, ask, (response) => {
        const events: Event[] = [];
        let rest = "";
        const watch: OpenWatch = {
          events,
          status: response.statusCode ?? 0,
          ended: false,
          close: () => request.destroy(),
          next: (what, timeoutMs = 5000) => waitFor("a watch event", () => events.find(what), timeoutMs),
        };
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          rest += chunk;
          const lines = rest.split("\n");
          rest = lines.pop() ?? "";
          for (const line of lines) if (line !== "") events.push(JSON.parse(line) as Event);
        });
        response.on("error", () => (watch.ended = true));
        response.on("end", () => (watch.ended = true));
        resolve(watch);
      });
      request.on("error", reject);
    });
  }
}

/** The definition the checks are about. */
export const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wg], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    selectableFields: [{jsonPath: .spec.size}]
    additionalPrinterColumns:
    - {name: Size, type: string, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Blob, type: string, jsonPath: .spec.blob, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "self.min <= self.max", message: "min must not exceed max"}
            properties:
              replicas: {type: integer, minimum: 0, maximum: 10, default: 1}
              size:
                type: string
                enum: [s, m, l]
                default: m
                x-kubernetes-validations:
                - {rule: "oldSelf != 'l' || self == 'l'", message: "l is final"}
              min: {type: integer, format: int64, default: 0}
              max: {type: integer, format: int64, default: 100}
              blob: {type: string, nullable: true, maxLength: 1024}
              limit: {x-kubernetes-int-or-string: true}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, protocol]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    protocol: {type: string, default: TCP}
                    port: {type: integer}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v1beta1
    served: true
    storage: false
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`;

/** A Widget as JSON. */
export function widget(
  name: string,
  spec: Record<string, unknown> = {},
  metadata: Record<string, unknown> = {},
): Record<string, unknown> {
  return { apiVersion: "example.io/v1", kind: "Widget", metadata: { name, ...metadata }, spec };
}

/** A ConfigMap as JSON. */
export function configMap(
  name: string,
  data: Record<string, string> = {},
  metadata: Record<string, unknown> = {},
): Record<string, unknown> {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data };
}

/** A Deployment as JSON. */
export function deployment(
  name: string,
  containers: readonly string[] = ["a"],
  spec: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: containers.map((container) => ({ name: container, image: "img:1" })) },
      },
      ...spec,
    },
  };
}
