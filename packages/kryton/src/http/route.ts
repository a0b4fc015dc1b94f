/**
 * A route as data: from it come the router, the access checks, the discovery list, the OpenAPI document
 * and the ledger of who may call what. There is no other way to serve a path.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { z } from "zod";
import type { Principal, Role } from "../model/principal.ts";
import type { Asking } from "../service/asking.ts";
import { decodeBody, settled, type Decoded } from "./decode.ts";
import type { alreadySent, Reply } from "./reply.ts";

/** HTTP methods of the API. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Who may call. */
export type Access =
  /** Anybody, without credentials. */
  | { readonly kind: "public" }
  /** Any authenticated caller; the handler shows only what the caller's projects allow. */
  | { readonly kind: "any" }
  /** A role, whatever the project: for what belongs to none. */
  | { readonly kind: "global"; readonly role: Role }
  /** A role in the project named by the query (or by the body, for creations). */
  | { readonly kind: "project"; readonly role: Role; readonly from: "query" | "body" }
  /** As `project`, or a console ticket of that machine. */
  | { readonly kind: "console"; readonly role: Role };

/** One answer a route can give, for the document. */
export interface Answer {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** Default `application/json`. */
  readonly contentType?: string;
}

/** What a handler gets. */
export interface Call<Body> {
  readonly principal: Principal;
  /** The resolved project; empty when the route has none. */
  readonly project: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Body;
  readonly requestId: string;
  /** For the service: who asks, and what makes a repeat recognisable. */
  readonly asking: Asking;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/** A route without its handler. */
export interface RouteInfo {
  readonly method: Method;
  /** With `{name}` for parameters. */
  readonly path: string;
  readonly group: string;
  readonly summary: string;
  readonly access: Access;
  readonly query?: readonly QueryParameter[];
  readonly bodySchema?: z.ZodType;
  /** The body may be missing altogether. */
  readonly bodyOptional?: boolean;
  readonly answers: Readonly<Record<number, Answer>>;
  /** Left out of discovery. */
  readonly hidden?: boolean;
}

/** A documented query parameter. */
export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  readonly schema: z.ZodType;
}

/** A request whose body was read: the handler, bound to the checked body. */
export interface Opened {
  /** The body as it came; empty without one. */
  readonly raw: Readonly<Record<string, unknown>>;
  /** Throws the body's broken rules first, so that access is checked before them. */
  run(call: Omit<Call<undefined>, "body">): Promise<Outcome>;
}

/** What a handler ends with. */
export type Outcome = Reply | typeof alreadySent;

/** A route. */
export interface Route extends RouteInfo {
  /** Whether a body is read at all. */
  readonly takesBody: boolean;
  open(bytes: Buffer): Opened;
}

/** Makes a route without a body: whatever is sent is not read. */
export function route(info: RouteInfo, handle: (call: Call<undefined>) => Promise<Outcome> | Outcome): Route {
  const opened: Opened = { raw: {}, run: async (call) => handle({ ...call, body: undefined }) };
  return { ...info, takesBody: false, open: () => opened };
}

/** Makes a route whose body is checked by `schema` before the handler sees it. */
export function routeWithBody<T>(
  info: RouteInfo,
  schema: z.ZodType<T>,
  handle: (call: Call<T>) => Promise<Reply>,
): Route {
  return {
    ...info,
    bodySchema: schema,
    takesBody: true,
    open(bytes) {
      const empty = info.bodyOptional === true && bytes.length === 0;
      const decode = (): Decoded<T> => decodeBody(empty ? Buffer.from("{}") : bytes, schema);
      // Access comes first; only where the project stands in the body has the body to be read before.
      const early = info.access.kind === "project" && info.access.from === "body" ? decode() : undefined;
      return {
        raw: early?.raw ?? {},
        run: async (call) => handle({ ...call, body: settled(early ?? decode()) }),
      };
    },
  };
}
