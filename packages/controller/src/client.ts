/**
 * The client: typed Kubernetes verbs over any {@link Transport}.
 *
 * Every answer that is an error becomes a `CodedError` (see `status.ts`); every object passes its kind's
 * `parse`. Requests that the server turned away with `Retry-After` are repeated a bounded number of times;
 * nothing else is ever repeated, because only the server knows whether a write happened. Caching is the
 * business of `CachedClient`.
 *
 * Source: Kubernetes API concepts; `DeleteOptions`, `ListOptions`, `PatchOptions` of the API reference.
 */
import { at, CodedError, isCoded, isObject, stringAt, type Edges, type JsonObject } from "@kontinuum/std";
import { parseJson, readText } from "./body.ts";
import { limits } from "./limits.ts";
import type { KubeList, KubeObject, Resource } from "./object.ts";
import { collectionPath, objectPath, refOf, resourceName, type ObjectRef } from "./resource.ts";
import { formatSelector, type LabelSelector } from "./selector.ts";
import { statusError } from "./status.ts";
import type { Transport, TransportRequest, TransportResponse } from "./transport.ts";
import { readWatch, tryParse, type OnUnreadable, type WatchEvent } from "./watch.ts";

/** Options of a {@link Client}. */
export interface ClientOptions {
  readonly edges: Edges;
  /** Sent as `User-Agent`. Its part before the first `/` is the server's default field manager. */
  readonly userAgent?: string;
  /** Sent with every write; required for `apply`. Default: none, the server derives one. */
  readonly fieldManager?: string;
}

/** Options every call takes. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Options of create, update and patch. */
export interface WriteOptions extends CallOptions {
  readonly fieldManager?: string;
  /** Run everything, store nothing. */
  readonly dryRun?: boolean;
  /** What to do with unknown fields. Default: the server's (`Warn`). */
  readonly fieldValidation?: "Strict" | "Warn" | "Ignore";
}

/** A patch. `apply` is server-side apply. */
export type Patch =
  | { readonly type: "json"; readonly operations: readonly JsonObject[] }
  | { readonly type: "merge" | "strategic"; readonly patch: unknown }
  | { readonly type: "apply"; readonly object: unknown; readonly force?: boolean };

/** Options of {@link Client.patch}. */
export interface PatchOptions extends WriteOptions {
  /** `status`, `scale`, … */
  readonly subresource?: string;
}

/** Which objects. */
export interface Selection {
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labels?: LabelSelector | undefined;
  /** Field selector in the wire's form, e.g. `spec.nodeName=n1`. */
  readonly fields?: string | undefined;
}

/** Options of {@link Client.list}. */
export interface ListOptions extends Selection, CallOptions {
  /** Objects per request. Default 500. All pages are read either way. */
  readonly pageSize?: number;
  /** Skip unreadable objects and report them here, instead of failing. */
  readonly onUnreadable?: OnUnreadable;
}

/** Options of {@link Client.watch}. */
export interface WatchOptions extends Selection, CallOptions {
  /** Deliver changes after this version. Absent: the present objects as `ADDED`, then changes. */
  readonly resourceVersion?: string;
  /** Ask for bookmarks. Default true. */
  readonly bookmarks?: boolean;
  /** The server ends the stream after so many seconds. Default: the server's. */
  readonly timeoutSeconds?: number;
  readonly onUnreadable?: OnUnreadable;
}

/** Options of {@link Client.delete}. */
export interface DeleteOptions extends CallOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly propagation?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

const patchTypes = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** See the module's comment. Reads always ask the server. */
export class Client {
  protected readonly edges: Edges;
  readonly #transport: Transport;
  readonly #userAgent: string | undefined;
  readonly #fieldManager: string | undefined;

  constructor(transport: Transport, options: ClientOptions) {
    this.#transport = transport;
    this.edges = options.edges;
    this.#userAgent = options.userAgent;
    this.#fieldManager = options.fieldManager;
  }

  /** The object. Fails with `not_found`. */
  async get<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: CallOptions = {},
  ): Promise<T> {
    return resource.parse(await this.request("GET", objectPath(resource, ref), options));
  }

  /** The object, or `undefined` when it does not exist. */
  async find<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: CallOptions = {},
  ): Promise<T | undefined> {
    try {
      return await this.get(resource, ref, options);
    } catch (error) {
      if (isCoded(error, "not_found")) return undefined;
      throw error;
    }
  }

  /** All objects of a selection, read page by page from one snapshot. */
  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<KubeList<T>> {
    try {
      return await this.#listPages(resource, options, options.pageSize ?? limits.pageSize);
    } catch (error) {
      // The snapshot was compacted between two pages: read everything in one request instead.
      if (!isCoded(error, "gone")) throw error;
      return this.#listPages(resource, options, 0);
    }
  }

  /** Changes as they happen; see {@link readWatch} for how it ends. Breaking out of the loop cancels the request. */
  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>> {
    const abort = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, abort.signal]) : abort.signal;
    const path = withQuery(collectionPath(resource, options.namespace), {
      watch: true,
      ...selectionQuery(options),
      resourceVersion: options.resourceVersion,
      allowWatchBookmarks: options.bookmarks ?? true,
      timeoutSeconds: options.timeoutSeconds,
    });
    try {
      const response = await this.#exchange({ method: "GET", path, signal });
      yield* readWatch(response.body, resource, `watch ${resourceName(resource)}`, options.onUnreadable);
    } finally {
      abort.abort();
    }
  }

  /** Creates and returns what the server made of it. Fails with `already_exists`, `unprocessable`, … */
  async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    const path = withQuery(collectionPath(resource, object.metadata.namespace), this.#writeQuery(options));
    return this.#written(resource, await this.request("POST", path, options, object), options);
  }

  /** Replaces. Carries the object's resourceVersion: fails with `conflict` when somebody else wrote in between. */
  async update<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#put(resource, object, undefined, options);
  }

  /** Replaces the status only. Fails as {@link update}. */
  async updateStatus<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#put(resource, object, "status", options);
  }

  /** Patches and returns the result. */
  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options: PatchOptions = {},
  ): Promise<T> {
    const force = patch.type === "apply" ? (patch.force ?? false) : undefined;
    const path = withQuery(objectPath(resource, ref, options.subresource), {
      ...this.#writeQuery(options),
      force,
    });
    const body =
      patch.type === "json" ? patch.operations : patch.type === "apply" ? patch.object : patch.patch;
    const answer = await this.request("PATCH", path, options, body, patchTypes[patch.type]);
    return this.#written(resource, answer, options);
  }

  /** Server-side apply of an object (`fieldManager` from here or from the client). `force` takes over conflicting fields. */
  async apply<T extends KubeObject>(
    resource: Resource<T>,
    object: KubeObject,
    options: WriteOptions & { readonly force?: boolean } = {},
  ): Promise<T> {
    const { force = false, ...rest } = options;
    return this.patch(resource, refOf(object), { type: "apply", object, force }, rest);
  }

  /**
   * Deletes. Returns the object when finalizers keep it for now, `undefined` when it is gone. Fails with
   * `not_found`, or `conflict` when a precondition does not hold.
   */
  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<T | undefined> {
    const { preconditions, propagation, gracePeriodSeconds } = options;
    const body = {
      kind: "DeleteOptions",
      apiVersion: "v1",
      ...(preconditions ? { preconditions } : {}),
      ...(propagation ? { propagationPolicy: propagation } : {}),
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    };
    const answer = await this.request("DELETE", objectPath(resource, ref), options, body);
    if (isObject(answer) && answer["kind"] === "Status") {
      this.onDeleted(resource, ref, stringAt(answer, "details", "uid"));
      return undefined;
    }
    return this.#written(resource, answer, {});
  }

  /** As {@link delete}, and an object that does not exist is no failure. */
  async deleteIfExists<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<T | undefined> {
    try {
      return await this.delete(resource, ref, options);
    } catch (error) {
      if (isCoded(error, "not_found")) return undefined;
      throw error;
    }
  }

  /** Any request with a JSON body and answer: subresources, discovery, reviews. Errors as everywhere. */
  async request(
    method: string,
    path: string,
    options: CallOptions = {},
    body?: unknown,
    contentType = "application/json",
  ): Promise<unknown> {
    const response = await this.#exchange({
      method,
      path,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": contentType } }),
      ...(options.signal ? { signal: options.signal } : {}),
    });
    const text = await readText(response.body, limits.responseBytes);
    const answer = parseJson(text);
    if (answer === undefined) {
      throw new CodedError("unavailable", `${method} ${pathOnly(path)}: the answer is not JSON`);
    }
    return answer;
  }

  /** Told of every object that a write of this client returned. */
  protected onWritten<T extends KubeObject>(_resource: Resource<T>, _object: T): void {}

  /** Told of every object that a delete of this client removed at once. */
  protected onDeleted<T extends KubeObject>(
    _resource: Resource<T>,
    _ref: ObjectRef,
    _uid: string | undefined,
  ): void {}

  async #put<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    subresource: string | undefined,
    options: WriteOptions,
  ): Promise<T> {
    const path = withQuery(objectPath(resource, object.metadata, subresource), this.#writeQuery(options));
    return this.#written(resource, await this.request("PUT", path, options, object), options);
  }

  #written<T extends KubeObject>(resource: Resource<T>, answer: unknown, options: WriteOptions): T {
    const object = resource.parse(answer);
    if (options.dryRun !== true) this.onWritten(resource, object);
    return object;
  }

  #writeQuery(options: WriteOptions): Query {
    return {
      fieldManager: options.fieldManager ?? this.#fieldManager,
      dryRun: options.dryRun === true ? "All" : undefined,
      fieldValidation: options.fieldValidation,
    };
  }

  async #listPages<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
    pageSize: number,
  ): Promise<KubeList<T>> {
    const items: T[] = [];
    let token: string | undefined;
    for (let page = 0; page < limits.pages; page++) {
      const path = withQuery(collectionPath(resource, options.namespace), {
        ...selectionQuery(options),
        limit: pageSize === 0 ? undefined : pageSize,
        continue: token,
      });
      const answer = await this.request("GET", path, options);
      const resourceVersion = stringAt(answer, "metadata", "resourceVersion");
      const raw = at(answer, "items");
      if (!Array.isArray(raw) || resourceVersion === undefined) {
        throw new CodedError("unavailable", `list ${resourceName(resource)}: the answer is not a list`);
      }
      for (const value of raw) {
        const item = tryParse(resource, value, options.onUnreadable);
        if (item) items.push(item);
      }
      token = stringAt(answer, "metadata", "continue") || undefined;
      if (token === undefined) {
        return {
          apiVersion: stringAt(answer, "apiVersion") ?? "",
          kind: `${resource.kind}List`,
          metadata: { resourceVersion },
          items,
        };
      }
    }
    throw new CodedError(
      "payload_too_large",
      `list ${resourceName(resource)}: more than ${limits.pages} pages`,
    );
  }

  /** Sends, repeats while the server asks for it, and turns an error answer into a `CodedError`. */
  async #exchange(request: TransportRequest): Promise<TransportResponse> {
    const headers = {
      accept: "application/json",
      ...(this.#userAgent === undefined ? {} : { "user-agent": this.#userAgent }),
      ...request.headers,
    };
    for (let attempt = 0; ; attempt++) {
      const response = await this.#transport({ ...request, headers });
      if (response.status < 300) return response;
      const text = await readText(response.body, limits.responseBytes);
      const wait = retryAfter(response.headers["retry-after"]);
      const what = `${request.method} ${pathOnly(request.path)}`;
      const error = statusError(response.status, parseJson(text), what, wait);
      const retryable = response.status === 429 || response.status >= 500;
      if (!retryable || wait === undefined || attempt >= limits.requestRetries) throw error;
      await this.edges.clock.sleep(Math.min(wait, limits.retryAfterMs), request.signal);
    }
  }
}

function retryAfter(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) * 1000 : undefined;
}

function pathOnly(path: string): string {
  const end = path.indexOf("?");
  return end < 0 ? path : path.slice(0, end);
}

function selectionQuery(selection: Selection): Query {
  return {
    labelSelector: selection.labels === undefined ? undefined : formatSelector(selection.labels),
    fieldSelector: selection.fields,
  };
}

function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
}
