/**
 * What the listener does with a request: the embedder's routes first, then gRPC, then the API's pipeline.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { messageOf, type Log } from "@kontinuum/std";
import { grpcHandler } from "@kontinuum/storage";
import type { HttpResponse, ServerOptions } from "../contract.ts";
import { RequestContext } from "../pipeline/context.ts";
import { Upgrades } from "../pipeline/web-socket.ts";
import type { WireRequest } from "../wire/request.ts";
import type { ListenerHandlers } from "./listener.ts";
import type { Peer } from "./peer.ts";

/** What stands behind the entrances. */
export interface EntrancesOptions extends Pick<
  ServerOptions,
  "routes" | "upgrades" | "grpc" | "allowedHosts"
> {
  readonly log: Log;
  /** Whether another server answers this path (aggregated APIs). */
  readonly elsewhere: (path: string) => boolean;
  /** Runs a request through the pipeline. */
  run(context: RequestContext): Promise<void>;
}

/** Handlers for a listener. */
export function entrances(options: EntrancesOptions): ListenerHandlers {
  const { routes = [], upgrades = [], grpc, log, run } = options;
  const upgraded = new Upgrades(options.allowedHosts ?? [], options.elsewhere);
  const handleGrpc = grpc ? grpcHandler(grpc, connectNodeAdapter) : undefined;

  async function serve(
    request: IncomingMessage,
    response: HttpResponse,
    peer: Peer,
    secure: boolean,
  ): Promise<void> {
    try {
      for (const route of routes) if (await route(request, response)) return;
    } catch (error) {
      log.error("a route failed", { path: request.url, reason: messageOf(error) });
      if (!response.headersSent) response.writeHead(500, { "content-type": "text/plain; charset=utf-8" });
      response.end("internal error\n");
      return;
    }
    const context = new RequestContext({
      request: { ...wireRequest(request, peer, secure), body: request },
      response,
    });
    context.refusedCertificate = peer.refused ?? false;
    try {
      await run(context);
    } catch (error) {
      // The pipeline answers its own failures: this is a bug of ours, and it must not reach another request.
      log.error("a request broke the pipeline", { path: request.url, reason: messageOf(error) });
      response.destroy();
    }
  }

  async function upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    peer: Peer,
    secure: boolean,
  ): Promise<void> {
    try {
      for (const route of upgrades) if (route(request, socket, head)) return;
      await upgraded.serve(wireRequest(request, peer, secure), request, socket, head, (context) => {
        context.refusedCertificate = peer.refused ?? false;
        return run(context);
      });
    } catch (error) {
      log.error("an upgrade failed", { path: request.url, reason: messageOf(error) });
      socket.destroy();
    }
  }

  return {
    request: (...all) => void serve(...all),
    // The adapter wants Node's own response class, of which ours is the part it uses.
    grpc: handleGrpc ? (request, response) => handleGrpc(request, response as never) : undefined,
    upgrade: (...all) => void upgrade(...all),
  };
}

function wireRequest(request: IncomingMessage, peer: Peer, secure: boolean): Omit<WireRequest, "body"> {
  return {
    method: request.method ?? "GET",
    url: request.url ?? "/",
    headers: request.headers,
    address: request.socket.remoteAddress ?? "",
    secure,
    ...(peer.certificate ? { certificate: peer.certificate } : {}),
  };
}
