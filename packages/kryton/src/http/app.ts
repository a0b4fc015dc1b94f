/**
 * The HTTP application: the prelude, a router over the routes, the pipeline, the raw response.
 *
 * Unknown paths under `/api/` are authenticated before they are unknown, so that nobody can map the API
 * without a key. Pages of an embedding program are mounted below everything else.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Hono } from "hono";
import { KrytonError } from "../model/errors.ts";
import type { AppEnv } from "./pages.ts";
import type { Pipeline, Request } from "./pipeline.ts";
import { pathOf, prelude, type PreludeOptions } from "./prelude.ts";
import { alreadySent, sendReply } from "./reply.ts";
import type { Outcome, Route } from "./route.ts";
import { Router } from "./router.ts";

/** What the application is made from. */
export interface AppOptions {
  readonly routes: readonly Route[];
  readonly pipeline: Pipeline;
  readonly prelude: PreludeOptions;
  /** Pages beside the API. */
  readonly pages?: Hono<AppEnv> | undefined;
}

/** Builds the handler of raw requests. */
export async function createHandler(
  options: AppOptions,
): Promise<(incoming: IncomingMessage, outgoing: ServerResponse) => void> {
  const { routes, pipeline } = options;
  const router = new Router(routes);
  const pages = options.pages && (await import("./pages.ts")).pageHandler(options.pages, pipeline);
  return (incoming, outgoing) => {
    const requestId = prelude(incoming, outgoing, options.prelude);
    if (requestId === undefined) return;
    const path = pathOf(incoming);
    const method = incoming.method ?? "GET";
    const found = router.find(method, path);
    const request: Request = { incoming, outgoing, requestId, params: {} };
    if (found?.kind === "route") {
      answer(outgoing, pipeline.serve(found.route, { ...request, params: found.params }));
    } else if (found) {
      const error = new KrytonError("METHOD_NOT_ALLOWED", `${method} is not served at ${found.path}`, {
        headers: { Allow: found.allow.join(", ") },
      });
      answer(outgoing, refuse(pipeline, request, path, error));
    } else if (pages && !path.startsWith("/api/")) {
      pages(request);
    } else {
      answer(
        outgoing,
        refuse(pipeline, request, path, new KrytonError("NOT_FOUND", "there is no such path")),
      );
    }
  };
}

/** Sends what comes of `outcome`, which never rejects. */
function answer(outgoing: ServerResponse, outcome: Promise<Outcome>): void {
  void outcome.then((reply) => {
    if (reply !== alreadySent) sendReply(outgoing, reply);
  });
}

async function refuse(
  pipeline: Pipeline,
  request: Request,
  path: string,
  error: KrytonError,
): Promise<Outcome> {
  try {
    if (path.startsWith("/api/")) await pipeline.admit(request);
    return pipeline.failed(error, request);
  } catch (thrown) {
    return pipeline.failed(thrown, request);
  }
}
