/**
 * The seams of the API server: what an embedder gives and gets.
 *
 * The request pipeline is one list of stages over one {@link RequestContext}; see `pipeline/`.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Controller, Transport } from "@kontinuum/controller";
import type { Edges, JsonObject } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";

/** Who makes a request. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The parts of a request an authenticator may look at. */
export interface Credentials {
  /** Bearer token, without the scheme. */
  readonly bearer?: string;
  /** Verified client certificate of the connection. */
  readonly certificate?: { readonly commonName: string; readonly organizations: readonly string[] };
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Peer address of the connection. */
  readonly address: string;
  /** Audiences a token must be for (one of them suffices); absent: this server. */
  readonly audiences?: readonly string[];
}

/**
 * One way to prove who one is. `undefined`: these credentials are not mine, ask the next.
 * `invalid`: they are mine and wrong, the request is answered 401 and nobody else is asked.
 */
export interface Authenticator {
  readonly name: string;
  authenticate(credentials: Credentials): Promise<UserInfo | "invalid" | undefined>;
}

/** What somebody wants to do (Kubernetes SubjectAccessReview attributes). */
export interface AccessAttributes {
  readonly user: UserInfo;
  readonly verb: string;
  readonly resource?: {
    readonly group: string;
    readonly version: string;
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  /** For requests that are not about a resource. */
  readonly path?: string;
}

/** An answer to "may they". `noOpinion` asks the next authorizer; when nobody allows, it is denied. */
export interface Decision {
  readonly decision: "allow" | "deny" | "noOpinion";
  readonly reason: string;
}

/** Decides about access. */
export interface Authorizer {
  authorize(attributes: AccessAttributes): Promise<Decision>;
}

/** The narrow response both HTTP versions share. */
export interface HttpResponse {
  readonly headersSent: boolean;
  readonly writableLength: number;
  statusCode: number;
  setHeader(name: string, value: string | number | readonly string[]): unknown;
  writeHead(status: number, headers?: Record<string, string | number | readonly string[]>): unknown;
  write(chunk: string | Uint8Array): boolean;
  end(chunk?: string | Uint8Array): unknown;
  /** Sends the headers before the first byte of a stream's body. */
  flushHeaders(): void;
  on(event: "close" | "drain" | "error", listener: (...args: unknown[]) => void): unknown;
  destroy(error?: Error): unknown;
}

/**
 * A route of the embedder (web pages, login), asked before the API. Returns `false` when the path is not its own.
 * It sees the raw request: it does its own authentication with the means it is given.
 */
export type HttpRoute = (request: IncomingMessage, response: HttpResponse) => boolean | Promise<boolean>;

/** Takes over an upgraded connection (WebSocket). Returns `false` when the path is not its own. */
export type UpgradeRoute = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;

/** Where to listen. */
export interface ListenOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** PEM texts. Client certificates are asked for when one of the authorities is given. */
  readonly tls?: {
    readonly cert: string;
    readonly key: string;
    /** Answer clear text on the same port too, as behind a proxy or on loopback. Default false: it is refused. */
    readonly alsoPlain?: boolean;
    /** Whoever signs users' certificates. */
    readonly clientCa?: string;
    /** Whoever signs the certificate of a front proxy that names users in `X-Remote-…` headers. */
    readonly requestHeaderCa?: string;
    /** Common names such a proxy's certificate may have; others are 401. Default: any that the authority signed. */
    readonly requestHeaderNames?: readonly string[];
  };
}

/** A CustomResourceDefinition manifest (`apiextensions.k8s.io/v1`) that the server ensures at start. */
export type CrdManifest = JsonObject;

/** Everything {@link ApiServer} needs. */
export interface ServerOptions {
  readonly storage: Store;
  readonly edges?: Partial<Edges>;
  /** Group/resource names of built-in kinds to serve (`configmaps`, `deployments.apps`); default: all. */
  readonly kinds?: readonly string[];
  /** Ensured (created or updated) and Established before `start` resolves. */
  readonly crds?: readonly CrdManifest[];
  /**
   * Answer ConversionReviews of these definitions, by name, in this process: used instead of the webhook that the
   * definition names (whose strategy must be `Webhook`).
   */
  readonly converters?: Readonly<Record<string, (review: JsonObject) => JsonObject>>;
  readonly auth: {
    readonly authenticators: readonly Authenticator[];
    readonly authorizers: readonly Authorizer[];
    /** Requests without credentials become `system:anonymous`; else they are 401. Default true, as upstream. */
    readonly anonymous?: boolean;
  };
  /** Serve RBAC objects as the first authorizer. Default true. */
  readonly rbac?: boolean;
  readonly listen?: ListenOptions;
  readonly routes?: readonly HttpRoute[];
  readonly upgrades?: readonly UpgradeRoute[];
  /** gRPC services on the same port. */
  readonly grpc?: (router: ConnectRouter) => void;
  /** Started after the server listens, stopped before it closes. */
  readonly controllers?: readonly Controller[];
  /** Run in order once the embedder's controllers have stopped, while the server still answers. A slow or failing one does not hold up the stop. */
  readonly preShutdown?: readonly (() => Promise<void>)[];
  /** Issuer of service account tokens. Default `https://kubernetes.default.svc`. */
  readonly serviceAccountIssuer?: string;
  /** PEM text of the authority that clients inside the cluster trust. Default: the listener's certificate. */
  readonly rootCa?: string;
  /**
   * Make what every API server has (namespaces, default roles) and run the server's own controllers. Default true. False
   * on a store that another server keeps in order: this one then only reads and writes what its clients ask for.
   */
  readonly housekeeping?: boolean;
  /** Holds what the server itself keeps (leases of its controllers, certificates). Default `kontinuum-system`. */
  readonly systemNamespace?: string;
  /** Takes audit events (audit.k8s.io/v1 Event, level Metadata). Must not throw and must not block. */
  readonly audit?: (event: JsonObject) => void;
  /** Seconds an Event object lives after its last write. Default 3600. */
  readonly eventTtlSeconds?: number;
  /**
   * Address ranges (CIDR) that webhooks, conversions and aggregated APIs may be at although the default refuses them:
   * loopback, link-local, metadata. Default: none.
   */
  readonly outboundAllowed?: readonly string[];
  /** Finds a Service's address where the cluster has no network of its own; `undefined` looks at its endpoints. */
  readonly resolveService?: (
    namespace: string,
    name: string,
    port: number,
  ) => Promise<{ readonly host: string; readonly port: number } | undefined>;
  /** Host names accepted while authentication is off, besides loopback (DNS rebinding guard). */
  readonly allowedHosts?: readonly string[];
}

/** A running, or not yet running, server. */
export interface ApiServer {
  /** Listens, installs CRDs, starts controllers. Resolves when ready. */
  start(): Promise<void>;
  /** Stops controllers, drains watches, closes the listener. The store stays open: its owner closes it. */
  stop(deadlineMs?: number): Promise<void>;
  /** `http(s)://host:port`, once started with `listen`. */
  readonly url: string;
  readonly port: number;
  /** New TLS connections get this certificate (PEM) from now on. Fails with `failed_precondition` without `listen.tls`. */
  useCertificate(pair: { readonly cert: string; readonly key: string }): void;
  /** An in-process client connection that runs the same pipeline as the listener, as the given user. */
  transport(user: UserInfo): Transport;
  /** Identity of the server's own controllers: `system:masters`. */
  readonly loopback: UserInfo;
}
