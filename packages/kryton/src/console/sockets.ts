/**
 * Consoles as WebSockets, VNC and those of proxied web consoles: an upgrade that passes the same checks as every request, then frames both
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
import type { ConsoleTarget } from "../provider-contract/contract.ts";
import { bytesOf, openWebSide, vncSide, type GuestSide } from "./guest-side.ts";
import { ViewOnlyFilter } from "./rfb-filter.ts";

/** Consoles one replica serves at a time. */
export const maxConsoles = 500;
/** Bytes that may wait for a browser before the guest's side is paused. */
const maxBuffered = 1024 * 1024;
const recheckMs = 2_000;
const maxPayload = 4 * 1024 * 1024;
const socketPath = /^\/api\/v1\/machines\/([^/?]+)\/(?:vnc|console(?:\/.*)?)$/;
/** The ticket in the path of a proxied page: such a page runs without an origin, the ticket is all it has. */
const ticketPath = /^\/api\/v1\/machines\/[^/?]+\/console\/~/;

/** The WebSocket side, loaded with the first console: many installations never open one. */
async function webSocketServer(protocol: string): Promise<WebSocketServer> {
  const { WebSocketServer } = await import("ws");
  return new WebSocketServer({
    noServer: true,
    maxPayload,
    handleProtocols: (offered) => (offered.has(protocol) ? protocol : false),
  });
}

/** Serves upgrades. */
export class ConsoleSockets {
  readonly #services: Services;
  readonly #pipeline: Pipeline;
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
      const guest = await openGuest(target, incoming, machineId);
      this.#services.edges.log.info("audit", {
        user: principal.name,
        role: principal.role,
        project,
        action: "open console",
        id: machineId.slice(0, 128),
        address: incoming.socket.remoteAddress ?? "",
        request_id: requestId,
      });
      const server = await webSocketServer(guest.protocol);
      server.handleUpgrade(incoming, socket, head, (browser) => this.#relay(browser, guest, principal));
    } catch (thrown) {
      refuse(socket, thrown, requestId);
    }
  }

  /** Ends every console. */
  stop(): void {
    for (const browser of this.#open) browser.close(1001);
  }

  async #admit(
    incoming: IncomingMessage,
    requestId: string,
  ): Promise<{ machineId: string; project: string; principal: Principal }> {
    const url = new URL(incoming.url ?? "/", "http://localhost");
    const machineId = socketPath.exec(url.pathname)?.[1];
    if (machineId === undefined) throw new KrytonError("NOT_FOUND", "there is no socket at this path");
    const principal = await this.#pipeline.admitSocket(incoming, requestId);
    const project = this.#pipeline.projectFor(principal, "viewer", url.searchParams.get("project"));
    return { machineId: decodeURIComponent(machineId), project, principal };
  }

  #relay(browser: WebSocket, guest: GuestSide, principal: Principal): void {
    this.#open.add(browser);
    const { authenticator, edges } = this.#services;
    const filter = hasRole(principal, "operator") ? undefined : new ViewOnlyFilter();
    let timer: Timer;
    const end = (): void => {
      timer.clear();
      this.#open.delete(browser);
      guest.close();
      browser.close(1000);
    };
    const recheck = (): void => {
      if (!holds(authenticator, principal)) return end();
      timer = edges.clock.timer(recheckMs, recheck);
    };
    timer = edges.clock.timer(recheckMs, recheck);
    guest.listen((bytes, binary) => {
      browser.send(bytes, { binary }, () => {
        if (browser.bufferedAmount < maxBuffered) guest.resume();
      });
      if (browser.bufferedAmount > maxBuffered) guest.pause();
    }, end);
    browser.on("message", (data, binary) => {
      try {
        // A viewer's text is no RFB: it could mean anything to what is behind, so it goes nowhere.
        if (filter && !binary) return;
        const passed = filter ? filter.push(bytesOf(data)) : bytesOf(data);
        if (passed.length === 0) return;
        guest.send(passed, binary, () => {
          if (browser.isPaused && guest.waiting() < maxBuffered) browser.resume();
        });
        if (guest.waiting() > maxBuffered) browser.pause();
      } catch (error) {
        edges.log.info("console client was cut off", { problem: messageOf(error) });
        end();
      }
    });
    browser.once("close", end);
    browser.once("error", end);
  }
}

/** The guest's end of the console that a path asks for. */
async function openGuest(
  target: ConsoleTarget,
  incoming: IncomingMessage,
  machineId: string,
): Promise<GuestSide> {
  const isVnc = !(incoming.url ?? "").split("?", 1)[0]?.includes("/console");
  if (target.kind === "web") {
    if (isVnc) throw new KrytonError("UNSUPPORTED", "this machine has a web console, no VNC");
    return openWebSide(incoming, machineId, target.upstreamUrl);
  }
  if (!isVnc) throw new KrytonError("UNSUPPORTED", "this machine has a VNC console, no web console");
  return vncSide(await target.connect(new AbortController().signal));
}

/** Whether what let the caller in still stands; behind a ticket it is the one who asked for it. */
function holds(authenticator: Authenticator, principal: Principal): boolean {
  return authenticator.stillValid(principal.issuer ?? principal);
}

/** A page elsewhere must not open a console with this browser's cookies. */
function checkOrigin(incoming: IncomingMessage, allowed: readonly string[]): void {
  const { origin, host } = incoming.headers;
  if (origin === undefined || (origin === "null" && ticketPath.test(incoming.url ?? ""))) return;
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
