/**
 * Everything known about one request while it passes the pipeline.
 *
 * Stages fill it from left to right; nothing of it outlives the request.
 */
import type { Duplex } from "node:stream";
import { CodedError } from "@kontinuum/std";
import type { UserInfo } from "../contract.ts";
import type { WatchOutput } from "../registry/watch-output.ts";
import type { Answering } from "../wire/respond.ts";
import type { Exchange, WireRequest } from "../wire/request.ts";
import type { HttpResponse } from "../contract.ts";
import { readRequestInfo, unreadable, type RequestInfo } from "./request-info.ts";

/** Name of the user that the server's own controllers act as. */
export const serverUser = "system:apiserver";

/** Warnings kept for one answer at most. */
const maxWarnings = 200;

/** Why signals of finished requests abort; one for all, as making an error costs more than most requests. */
const gone = new CodedError("cancelled", "the request is over");

/** The connection of a client that asked for another protocol (RFC 9110, 7.8), for whoever passes it on. */
export interface Tunnel {
  /** What the client asked for, as in its `Upgrade` header. */
  readonly protocol: string;
  /** Answers 101 with these headers (names and values in turn) and hands over the connection. */
  open(rawHeaders: readonly string[]): Duplex;
}

/** One request on its way. */
export class RequestContext implements Answering {
  readonly request: WireRequest;
  readonly response: HttpResponse;
  /** Path as sent, without query. */
  readonly rawPath: string;
  readonly warnings: string[] = [];
  /** Facts for the audit log, e.g. why access was granted. */
  readonly annotations: Record<string, string> = {};
  auditId = "";
  /** Whoever acts; after impersonation, the impersonated. */
  user: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };
  /** Whoever was authenticated, when they act as somebody else. */
  impersonator: UserInfo | undefined;
  /** True for requests that never left the process. */
  inProcess = false;
  /** True for what the server's own controllers do. */
  get housekeeping(): boolean {
    return this.inProcess && this.user.name === serverUser;
  }

  /** The connection showed a client certificate that did not verify. */
  refusedCertificate = false;
  /** A watch: not bounded by the time of ordinary requests. */
  longRunning = false;
  /** Where a watch goes when the connection asked for a WebSocket. */
  upgraded: WatchOutput | undefined;
  /** The client's connection, when it asked an aggregated API for another protocol. */
  tunnel: Tunnel | undefined;
  /** Called once the answer of a long-running request has begun. */
  onStarted: (() => void) | undefined;
  onTimeout: (() => void) | undefined;
  readonly #search: string;
  #abort: AbortController | undefined;
  #closed = false;
  #query: URLSearchParams | undefined;
  #info: RequestInfo | undefined;

  constructor({ request, response }: Exchange) {
    this.request = request;
    this.response = response;
    const mark = request.url.indexOf("?");
    this.rawPath = mark === -1 ? request.url : request.url.slice(0, mark);
    this.#search = mark === -1 ? "" : request.url.slice(mark + 1);
    const close = (): void => {
      this.#closed = true;
      this.#abort?.abort(gone);
    };
    response.on("close", close);
    response.on("error", close);
  }

  /** True when the client is gone or the answer complete. */
  get isOver(): boolean {
    return this.#closed;
  }

  /** Aborts when the client is gone or the answer complete. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#closed) this.#abort.abort(gone);
    }
    return this.#abort.signal;
  }

  /** The query, parsed on first use. */
  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#search);
    return this.#query;
  }

  /** What the request is about. The first reading fails with 400 when the path can't be read, later ones do not. */
  get info(): RequestInfo {
    if (this.#info) return this.#info;
    const { method } = this.request;
    try {
      this.#info = readRequestInfo(method, this.rawPath, () => this.query);
    } catch (error) {
      this.#info = unreadable(method, this.rawPath);
      throw error;
    }
    return this.#info;
  }

  get pretty(): string | undefined {
    return this.#search === "" ? undefined : (this.query.get("pretty") ?? undefined);
  }

  /** One query parameter; absent and empty are both `undefined`. */
  parameter(name: string): string | undefined {
    if (this.#search === "") return undefined;
    const value = this.query.get(name);
    return value === null || value === "" ? undefined : value;
  }

  /** Adds a text to the answer's `Warning` headers. */
  warn(text: string): void {
    if (this.warnings.length < maxWarnings) this.warnings.push(text);
  }
}
