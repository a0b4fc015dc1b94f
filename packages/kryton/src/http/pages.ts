/**
 * Pages of an embedding program below the API, as a handler of raw requests.
 *
 * Loaded only when there are pages: the API itself writes to the raw response, and a process that serves
 * nothing else need not hold a second HTTP stack in memory.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { KrytonError } from "../model/errors.ts";
import type { Pipeline, Request } from "./pipeline.ts";
import { sendReply } from "./reply.ts";

/** What a page knows of its request. */
export interface AppEnv {
  Bindings: HttpBindings & { requestId: string };
}

/** A handler for what `pages` serves; everything else is the API's 404. */
export function pageHandler(pages: Hono<AppEnv>, pipeline: Pipeline): (request: Request) => void {
  const app = new Hono<AppEnv>();
  app.route("/", pages);
  const fail = (thrown: unknown, { incoming, outgoing, requestId }: AppEnv["Bindings"]): Response => {
    const raw = { incoming: incoming as IncomingMessage, outgoing: outgoing as ServerResponse };
    sendReply(raw.outgoing, pipeline.failed(thrown, { ...raw, requestId, params: {} }));
    return RESPONSE_ALREADY_SENT;
  };
  app.notFound((c) => fail(new KrytonError("NOT_FOUND", "there is no such path"), c.env));
  app.onError((error, c) => fail(error, c.env));
  const requestIds = new WeakMap<IncomingMessage, string>();
  const listener = getRequestListener(
    (request, bindings) =>
      app.fetch(request, {
        ...bindings,
        requestId: "incoming" in bindings ? (requestIds.get(bindings.incoming as IncomingMessage) ?? "") : "",
      }),
    { overrideGlobalObjects: false, hostname: "localhost" },
  );
  return ({ incoming, outgoing, requestId }) => {
    requestIds.set(incoming, requestId);
    void listener(incoming, outgoing);
  };
}
