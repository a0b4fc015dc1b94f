/**
 * The HTTP application: routes into a router, around it the prelude, under it the pipeline.
 *
 * `handler` takes raw Node requests. Unknown paths under `/api/` are authenticated before they are
 * unknown, so that nobody can map the API without a key. Pages of an embedding program are mounted
 * below everything else.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono, type Context } from "hono";
import { KrytonError } from "../model/errors.ts";
import type { Pipeline, Request } from "./pipeline.ts";
import { prelude, type PreludeOptions } from "./prelude.ts";
import { alreadySent, type Reply } from "./reply.ts";
import type { Outcome, Route } from "./route.ts";

/** What hono knows of a request of ours. */
export interface AppEnv {
  Bindings: HttpBindings & { requestId: string };
}

/** What the application is made from. */
export interface AppOptions {
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  readonly prelude: PreludeOptions;
  /** Pages beside the API. */
  readonly pages?: Hono<AppEnv> | undefined;
}

/** Hono's form of a path with `{name}` parameters. */
export function honoPath(path: string): string {
  return path.replaceAll("{rest}", "*").replaceAll(/\{(\w+)\}/g, ":$1");
}

/** Builds the handler of raw requests. */
export function createHandler(
  options: AppOptions,
): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const { routes, pipeline } = options;
  const app = new Hono<AppEnv>();
  for (const route of routes) {
    app.on(route.method, honoPath(route.path), async (c) =>
      respond(await pipeline.serve(route, requestOf(c))),
    );
  }
  for (const [path, methods] of methodsByPath(routes)) {
    app.all(honoPath(path), async (c) => {
      const request = requestOf(c);
      const error = new KrytonError("METHOD_NOT_ALLOWED", `${c.req.method} is not served at ${path}`, {
        headers: { Allow: methods.join(", ") },
      });
      return respond(await refuse(pipeline, request, path.startsWith("/api/"), error));
    });
  }
  app.all("/api/*", async (c) =>
    respond(
      await refuse(pipeline, requestOf(c), true, new KrytonError("NOT_FOUND", "there is no such path")),
    ),
  );
  if (options.pages) app.route("/", options.pages);
  app.notFound((c) =>
    respond(pipeline.failed(new KrytonError("NOT_FOUND", "there is no such path"), requestOf(c))),
  );
  app.onError((error, c) => respond(pipeline.failed(error, requestOf(c))));

  const listeners = new WeakMap<IncomingMessage, string>();
  const listener = getRequestListener(
    (request, bindings) =>
      app.fetch(request, {
        ...bindings,
        requestId: "incoming" in bindings ? (listeners.get(bindings.incoming as IncomingMessage) ?? "") : "",
      }),
    { overrideGlobalObjects: false, hostname: "localhost" },
  );
  return (incoming, outgoing) => {
    const requestId = prelude(incoming, outgoing, options.prelude);
    if (requestId === undefined) return;
    listeners.set(incoming, requestId);
    void listener(incoming, outgoing);
  };
}

async function refuse(
  pipeline: Pipeline,
  request: Request,
  needsCaller: boolean,
  error: KrytonError,
): Promise<Outcome> {
  try {
    if (needsCaller) await pipeline.admit(request);
    return pipeline.failed(error, request);
  } catch (thrown) {
    return pipeline.failed(thrown, request);
  }
}

function requestOf(c: Context<AppEnv>): Request {
  const { incoming, outgoing, requestId } = c.env;
  return {
    incoming: incoming as IncomingMessage,
    outgoing: outgoing as ServerResponse,
    requestId,
    params: c.req.param(),
  };
}

function respond(outcome: Outcome): Response {
  if (outcome === alreadySent) return RESPONSE_ALREADY_SENT;
  return responseOf(outcome);
}

function responseOf(reply: Reply): Response {
  if (reply.content) {
    const { type, body } = reply.content;
    const bytes = typeof body === "string" ? body : new Uint8Array(body);
    return new Response(bytes, { status: reply.status, headers: { "Content-Type": type, ...reply.headers } });
  }
  if (reply.json === undefined) {
    return new Response(null, { status: reply.status, ...(reply.headers ? { headers: reply.headers } : {}) });
  }
  return new Response(`${JSON.stringify(reply.json)}\n`, {
    status: reply.status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...reply.headers },
  });
}

function methodsByPath(routes: readonly Route[]): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of routes) {
    const known = methods.get(path) ?? [];
    known.push(method, ...(method === "GET" ? ["HEAD"] : []));
    methods.set(path, known);
  }
  return methods;
}
