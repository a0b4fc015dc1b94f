/**
 * The few verbs of the Kubernetes API that setting storage up needs, over HTTP with TLS.
 *
 * Writes are server-side applies with one field manager, so that repeating one is harmless. An answer is bounded in
 * time and size; what the server says when it refuses is kept short.
 *
 * Source: Kubernetes documentation, API concepts and server-side apply.
 */
import { at, CodedError, isObject, messageOf, stringAt } from "@kontinuum/std";
import type { Agent } from "undici";
import type { ClusterAccess } from "./kubeconfig.ts";

const callMs = 20_000;
const maxAnswerBytes = 8 * 1024 * 1024;
const fieldManager = "kryton";
/** Longest text of a server's refusal that is passed on. */
const maxReason = 500;

/** An object as a manifest has it. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
}

/** A refusal by the server. `unavailable` when asking again can help, otherwise `failed_precondition`. */
export class KubernetesError extends CodedError {
  /** The HTTP status. */
  readonly status: number;

  constructor(status: number, what: string, message: string) {
    const again = status === 429 || status >= 500;
    super(again ? "unavailable" : "failed_precondition", `${what}: ${message}`);
    this.name = "KubernetesError";
    this.status = status;
  }
}

interface Kind {
  readonly plural: string;
  readonly namespaced: boolean;
}

/** A connection to one cluster; `close` it. */
export class Kubernetes {
  readonly endpoint: string;
  readonly #access: ClusterAccess;
  #agent: Promise<Agent> | undefined;
  readonly #kinds = new Map<string, Map<string, Kind>>();

  constructor(access: ClusterAccess) {
    this.#access = access;
    this.endpoint = access.server;
  }

  /** The object at a path, or `undefined` when it or its kind does not exist. */
  async find(path: string, signal: AbortSignal): Promise<unknown> {
    try {
      return await this.#call("GET", path, signal);
    } catch (error) {
      if (error instanceof KubernetesError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** The items of a collection; none when its kind does not exist. */
  async list(path: string, signal: AbortSignal): Promise<readonly unknown[]> {
    const items = at(await this.find(path, signal), "items");
    return Array.isArray(items) ? items : [];
  }

  /** Server-side apply, taking over fields that others own. Fails with {@link KubernetesError}. */
  async apply(object: KubeObject, signal: AbortSignal): Promise<unknown> {
    const path = `${await this.pathOf(object, signal)}?fieldManager=${fieldManager}&force=true`;
    return this.#call("PATCH", path, signal, object, "application/apply-patch+yaml");
  }

  /** Merge patch of the object at a path. */
  async merge(path: string, patch: unknown, signal: AbortSignal): Promise<unknown> {
    return this.#call(
      "PATCH",
      `${path}?fieldManager=${fieldManager}`,
      signal,
      patch,
      "application/merge-patch+json",
    );
  }

  /** Where an object lives. Fails with `unavailable` while the server does not serve its kind (yet). */
  async pathOf({ apiVersion, kind, metadata }: KubeObject, signal: AbortSignal): Promise<string> {
    const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const known =
      this.#kinds.get(apiVersion)?.get(kind) ?? (await this.#discover(root, apiVersion, signal)).get(kind);
    if (!known) throw new CodedError("unavailable", `the cluster does not serve ${kind} of ${apiVersion}`);
    const namespace = known.namespaced
      ? `/namespaces/${encodeURIComponent(metadata.namespace ?? "default")}`
      : "";
    return `${root}${namespace}/${known.plural}/${encodeURIComponent(metadata.name)}`;
  }

  /** Ends the connections. */
  async close(): Promise<void> {
    await (await this.#agent)?.destroy();
  }

  /** The connections; the HTTP client is loaded with the first request, which most installations never make. */
  async #connections(): Promise<Agent> {
    const { Agent } = await import("undici");
    const { insecure, ca, cert, key } = this.#access;
    return new Agent({
      connections: 8,
      bodyTimeout: callMs,
      headersTimeout: callMs,
      maxResponseSize: maxAnswerBytes,
      connect: {
        timeout: callMs,
        rejectUnauthorized: !insecure,
        minVersion: "TLSv1.2",
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
      },
    });
  }

  async #discover(root: string, apiVersion: string, signal: AbortSignal): Promise<Map<string, Kind>> {
    const resources = at(await this.find(root, signal), "resources");
    const kinds = new Map<string, Kind>();
    for (const entry of Array.isArray(resources) ? resources : []) {
      const plural = stringAt(entry, "name");
      const kind = stringAt(entry, "kind");
      if (plural && kind && !plural.includes("/"))
        kinds.set(kind, { plural, namespaced: at(entry, "namespaced") === true });
    }
    this.#kinds.set(apiVersion, kinds);
    return kinds;
  }

  async #call(
    method: "GET" | "PATCH",
    path: string,
    signal: AbortSignal,
    body?: unknown,
    type?: string,
  ): Promise<unknown> {
    const what = `${method} ${path.split("?")[0] ?? ""}`;
    const token = await this.#access.token?.();
    const url = new URL(`${this.#access.server}${path}`);
    let status: number;
    let text: string;
    try {
      const answer = await (
        await (this.#agent ??= this.#connections())
      ).request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: {
          accept: "application/json",
          "user-agent": "kryton/1.0",
          ...(type === undefined ? {} : { "content-type": type }),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      status = answer.statusCode;
      text = await answer.body.text();
    } catch (error) {
      if (signal.aborted) throw new CodedError("cancelled", `${what} was interrupted`, { cause: error });
      throw new CodedError("unavailable", `${what}: the cluster cannot be reached: ${messageOf(error)}`, {
        cause: error,
      });
    }
    const json = parseJson(text);
    if (status < 400) return json;
    throw new KubernetesError(
      status,
      what,
      (stringAt(json, "message") ?? `answered ${status}`).slice(0, maxReason),
    );
  }
}

/** Whether a value can be applied: apiVersion, kind and a name. */
export function isKubeObject(value: unknown): value is KubeObject {
  return (
    isObject(value) &&
    !!stringAt(value, "apiVersion") &&
    !!stringAt(value, "kind") &&
    !!stringAt(value, "metadata", "name")
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
