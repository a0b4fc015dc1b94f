/**
 * The VNC console as a WebSocket: an upgrade that passes the same checks as every request, then frames both
 * ways until one side ends or the caller's rights do.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { messageOf, type Timer } from "@kontinuum/std";
import type { WebSocket, WebSocketServer } from "ws";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Pipeline } from "../http/pipeline.ts";
import { consoleTarget } from "../http/routes/console.ts";
import type { Services } from "../http/services.ts";
import { KrytonError, toKrytonError } from "../model/errors.ts";
import { hasRole, type Principal } from "../model/principal.ts";
import { ViewOnlyFilter } from "./rfb-filter.ts";

/** Consoles one replica serves at a time. */
export const maxConsoles = 500;
/** Bytes that may wait for a browser before the guest's side is paused. */
const maxBuffered = 1024 * 1024;
const recheckMs = 2_000;
const maxPayload = 4 * 1024 * 1024;
const vncPath = /^\/api\/v1\/machines\/([^/?]+)\/vnc$/;

/** The WebSocket side, loaded with the first console: many installations never open one. */
async function webSocketServer(): Promise<WebSocketServer> {
  const { WebSocketServer } = await import("ws");
  return new WebSocketServer({
    noServer: true,
    maxPayload,
    handleProtocols: (offered) => (offered.has("binary") ? "binary" : false),
  });
}

/** Serves upgrades. */
export class ConsoleSockets {
  readonly #services: Services;
  readonly #pipeline: Pipeline;
  #server: Promise<WebSocketServer> | undefined;
  readonly #open = new Set<WebSocket>();

  constructor(services: Services, pipeline: Pipeline) {
    this.#services = services;
    this.#pipeline = pipeline;
  }

  /** Handles the `upgrade` event of a server. */
  async upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const requestId = this.#services.edges.random.uuid();
    socket.on("error", () => socket.destroy());
    try {
      checkOrigin(incoming, this.#services.config.corsOrigins);
      const { machineId, project, principal } = await this.#admit(incoming, requestId);
      if (this.#open.size >= maxConsoles)
        throw new KrytonError("CONSOLE_UNAVAILABLE", "too many consoles are open");
      const target = await consoleTarget(this.#services, project, machineId);
      if (target.kind !== "vnc")
        throw new KrytonError("UNSUPPORTED", "this machine has a web console, no VNC");
      const abort = new AbortController();
      const guest = await target.connect(abort.signal);
      this.#services.edges.log.info("audit", {
        user: principal.name,
        role: principal.role,
        project,
        action: "open console",
        id: machineId.slice(0, 128),
        address: incoming.socket.remoteAddress ?? "",
        request_id: requestId,
      });
      const server = await (this.#server ??= webSocketServer());
      server.handleUpgrade(incoming, socket, head, (browser) => this.#relay(browser, guest, principal));
    } catch (thrown) {
      refuse(socket, thrown, requestId);
    }
  }

  /** Ends every console. */
  stop(): void {
    for (const browser of this.#open) browser.close(1001);
    void this.#server?.then((server) => server.close());
  }

  async #admit(
    incoming: IncomingMessage,
    requestId: string,
  ): Promise<{ machineId: string; project: string; principal: Principal }> {
    const url = new URL(incoming.url ?? "/", "http://localhost");
    const machineId = vncPath.exec(url.pathname)?.[1];
    if (machineId === undefined) throw new KrytonError("NOT_FOUND", "there is no socket at this path");
    const principal = await this.#pipeline.admitSocket(incoming, requestId);
    const project = this.#pipeline.projectFor(principal, "viewer", url.searchParams.get("project"));
    return { machineId: decodeURIComponent(machineId), project, principal };
  }

  #relay(browser: WebSocket, guest: Duplex, principal: Principal): void {
    this.#open.add(browser);
    const { authenticator, edges } = this.#services;
    const filter = hasRole(principal, "operator") ? undefined : new ViewOnlyFilter();
    let timer: Timer;
    const end = (): void => {
      timer.clear();
      this.#open.delete(browser);
      guest.destroy();
      browser.close(1000);
    };
    const recheck = (): void => {
      if (!holds(authenticator, principal)) return end();
      timer = edges.clock.timer(recheckMs, recheck);
    };
    timer = edges.clock.timer(recheckMs, recheck);
    guest.on("data", (chunk: Buffer) => {
      browser.send(chunk, { binary: true }, () => {
        if (guest.isPaused() && browser.bufferedAmount < maxBuffered) guest.resume();
      });
      if (browser.bufferedAmount > maxBuffered) guest.pause();
    });
    browser.on("message", (data: Buffer | ArrayBuffer | Buffer[]) => {
      const bytes = Array.isArray(data)
        ? Buffer.concat(data)
        : Buffer.isBuffer(data)
          ? data
          : Buffer.from(data);
      try {
        const passed = filter ? filter.push(bytes) : bytes;
        if (passed.length > 0) guest.write(passed);
      } catch (error) {
        edges.log.info("console client was cut off", { problem: messageOf(error) });
        end();
      }
    });
    browser.once("close", end);
    browser.once("error", end);
    guest.once("close", end);
    guest.once("error", end);
  }
}

/** Whether what let the caller in still stands; behind a ticket it is the one who asked for it. */
function holds(authenticator: Authenticator, principal: Principal): boolean {
  return authenticator.stillValid(principal.issuer ?? principal);
}

/** A page elsewhere must not open a console with this browser's cookies. */
function checkOrigin(incoming: IncomingMessage, allowed: readonly string[]): void {
  const { origin, host } = incoming.headers;
  if (origin === undefined) return;
  const same = URL.canParse(origin) && new URL(origin).host.toLowerCase() === host?.toLowerCase();
  if (same || allowed.some((entry) => entry !== "*" && entry.toLowerCase() === origin.toLowerCase())) return;
  throw new KrytonError("FORBIDDEN", "the console was opened from another origin");
}

function refuse(socket: Duplex, thrown: unknown, requestId: string): void {
  const error = toKrytonError(thrown);
  const body = `${JSON.stringify({ error: { code: error.kryton, message: error.message, requestId } })}\n`;
  const challenge = error.status === 401 ? 'WWW-Authenticate: Bearer realm="kryton"\r\n' : "";
  socket.end(
    `HTTP/1.1 ${error.status} Refused\r\nContent-Type: application/json; charset=utf-8\r\n${challenge}` +
      `X-Request-ID: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
