/**
 * A scripted API server at the wire, for the tests of this package only.
 *
 * It speaks list, get, create, put, merge patch, delete and watch of any path over a `Transport`, with one
 * revision for everything. A test decides when watch events are delivered (`hold`, `release`), cuts
 * streams, compacts history and lets requests fail. It validates nothing: that is an API server's business.
 */
import { isObject, stringAt } from "@kontinuum/std";
import type { KubeObject } from "./object.ts";
import type { Transport, TransportRequest, TransportResponse } from "./transport.ts";

interface Event {
  readonly revision: number;
  readonly path: string;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: KubeObject;
}

interface Stream {
  readonly collection: string;
  next: number;
  wake: () => void;
  isCut: boolean;
  readonly pending: unknown[];
}

const json = (status: number, value: unknown, headers: Record<string, string> = {}): TransportResponse => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: (async function* () {
    yield Buffer.from(JSON.stringify(value));
  })(),
});

const failure = (status: number, reason: string, message: string, headers = {}): TransportResponse =>
  json(
    status,
    { kind: "Status", apiVersion: "v1", status: "Failure", reason, message, code: status },
    headers,
  );

/** See the file's comment. */
export class ScriptedApi {
  revision = 100;
  readonly requests: { readonly method: string; readonly path: string }[] = [];
  readonly #objects = new Map<string, KubeObject>();
  readonly #events: Event[] = [];
  readonly #streams = new Set<Stream>();
  #compacted = 0;
  #held = false;
  #uid = 0;
  #failures: { readonly match: RegExp; readonly response: () => TransportResponse }[] = [];

  /** Open watches. */
  get watches(): number {
    return this.#streams.size;
  }

  /** The next request whose `METHOD path` matches fails so. */
  failNext(match: RegExp, status: number, reason: string, headers: Record<string, string> = {}): void {
    this.#failures.push({ match, response: () => failure(status, reason, `scripted ${reason}`, headers) });
  }

  /** Keeps watch events back until `release`. */
  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.#wake();
  }

  /** Ends all watches normally. */
  cut(): void {
    for (const stream of this.#streams) stream.isCut = true;
    this.#wake();
  }

  /** Watches from before now are told 410. */
  compact(): void {
    this.#compacted = this.revision;
  }

  /** Sends an event of any content to every watch. */
  inject(event: unknown): void {
    for (const stream of this.#streams) stream.pending.push(event);
    this.#wake();
  }

  /** The stored object, by path. */
  stored(path: string): KubeObject | undefined {
    return this.#objects.get(path);
  }

  readonly transport: Transport = async (request) => {
    const [path = "", query = ""] = request.path.split("?");
    this.requests.push({ method: request.method, path: request.path });
    const index = this.#failures.findIndex(({ match }) => match.test(`${request.method} ${request.path}`));
    const failing = this.#failures[index];
    if (failing) {
      this.#failures.splice(index, 1);
      return failing.response();
    }
    const parameters = new URLSearchParams(query);
    if (request.method === "GET") {
      if (parameters.get("watch") === "true") return this.#watch(path, parameters, request.signal);
      return this.#isCollection(path) ? this.#list(path, parameters) : this.#get(path);
    }
    return this.#write(path, request);
  };

  #isCollection(path: string): boolean {
    const parts = path.split("/").slice(path.startsWith("/api/") ? 3 : 4);
    return parts.length === 1 || (parts[0] === "namespaces" && parts.length === 3);
  }

  #within(collection: string, path: string): boolean {
    const plural = collection.slice(collection.lastIndexOf("/") + 1);
    const base = collection.slice(0, collection.lastIndexOf("/"));
    return path.startsWith(`${base}/`) && path.split("/").at(-2) === plural;
  }

  #list(path: string, parameters: URLSearchParams): TransportResponse {
    const all = [...this.#objects]
      .filter(([key]) => this.#within(path, key))
      .sort(([a], [b]) => (a < b ? -1 : 1));
    const start = Number(parameters.get("continue") ?? 0);
    const limit = Number(parameters.get("limit") ?? 0) || all.length;
    const items = all.slice(start, start + limit).map(([, object]) => object);
    const more = start + limit < all.length ? { continue: String(start + limit) } : {};
    return json(200, {
      kind: "List",
      apiVersion: "v1",
      metadata: { resourceVersion: String(this.revision), ...more },
      items,
    });
  }

  #get(path: string): TransportResponse {
    const object = this.#objects.get(path);
    return object ? json(200, object) : failure(404, "NotFound", `${path} not found`);
  }

  #write(path: string, request: TransportRequest): TransportResponse {
    const body: unknown = JSON.parse(String(request.body ?? "{}"));
    const name = stringAt(body, "metadata", "name") ?? "";
    const target = (request.method === "POST" ? `${path}/${name}` : path).replace(/\/status$/, "");
    const present = this.#objects.get(target);
    if (request.method === "POST") {
      if (present) return failure(409, "AlreadyExists", `${name} already exists`);
      return json(201, this.#put(target, body, "ADDED", `uid-${++this.#uid}`));
    }
    if (!present) return failure(404, "NotFound", `${target} not found`);
    if (request.method === "DELETE") return this.#delete(target, present);
    const version = stringAt(body, "metadata", "resourceVersion");
    if (version !== undefined && version !== present.metadata.resourceVersion) {
      return failure(409, "Conflict", `${target} was modified`);
    }
    // Merging at the top level is all these tests need; a JSON patch (a list) changes nothing here.
    const change =
      request.method === "PUT"
        ? body
        : { ...present, ...(isObject(body) ? body : {}), metadata: present.metadata };
    return json(200, this.#put(target, change, "MODIFIED", present.metadata.uid ?? ""));
  }

  #delete(path: string, present: KubeObject): TransportResponse {
    this.#objects.delete(path);
    this.#emit("DELETED", path, {
      ...present,
      metadata: { ...present.metadata, resourceVersion: String(++this.revision) },
    });
    return json(200, { kind: "Status", status: "Success", details: { uid: present.metadata.uid } });
  }

  #put(path: string, body: unknown, type: "ADDED" | "MODIFIED", uid: string): KubeObject {
    const metadata = isObject(body) && isObject(body["metadata"]) ? body["metadata"] : {};
    const object: KubeObject = {
      ...(isObject(body) ? body : {}),
      apiVersion: stringAt(body, "apiVersion") ?? "",
      kind: stringAt(body, "kind") ?? "",
      metadata: {
        ...metadata,
        name: stringAt(metadata, "name") ?? "",
        uid,
        resourceVersion: String(++this.revision),
      },
    };
    this.#objects.set(path, object);
    this.#emit(type, path, object);
    return object;
  }

  #emit(type: Event["type"], path: string, object: KubeObject): void {
    this.#events.push({ revision: this.revision, path, type, object });
    this.#wake();
  }

  #wake(): void {
    for (const stream of this.#streams) stream.wake();
  }

  #watch(path: string, parameters: URLSearchParams, signal: AbortSignal | undefined): TransportResponse {
    const from = Number(parameters.get("resourceVersion") ?? this.revision);
    if (from < this.#compacted) return failure(410, "Expired", "too old resource version");
    const stream: Stream = { collection: path, next: from + 1, wake: () => {}, isCut: false, pending: [] };
    this.#streams.add(stream);
    return { status: 200, headers: {}, body: this.#stream(stream, signal) };
  }

  async *#stream(stream: Stream, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const onAbort = (): void => stream.wake();
    signal?.addEventListener("abort", onAbort);
    try {
      for (;;) {
        if (signal?.aborted === true) throw signal.reason;
        for (const event of stream.pending.splice(0)) yield Buffer.from(`${JSON.stringify(event)}\n`);
        if (!this.#held) {
          for (const { revision, path, type, object } of this.#events) {
            if (revision < stream.next || !this.#within(stream.collection, path)) continue;
            stream.next = revision + 1;
            yield Buffer.from(`${JSON.stringify({ type, object })}\n`);
          }
        }
        if (stream.isCut) return;
        await new Promise<void>((resolve) => (stream.wake = resolve));
      }
    } finally {
      signal?.removeEventListener("abort", onAbort);
      this.#streams.delete(stream);
    }
  }
}
