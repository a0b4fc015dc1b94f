/**
 * Connections that ask for another protocol: watches over a WebSocket, which is how browsers follow resources, and
 * whatever an aggregated API speaks, which is passed on to it.
 *
 * The request passes the whole pipeline before the upgrade, so a refusal is an ordinary HTTP answer. Browsers can't
 * set headers: the token may travel as a sub-protocol, which is taken out and never echoed.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import type { HttpResponse } from "../contract.ts";
import type { WatchOutput } from "../registry/watch-output.ts";
import type { WireRequest } from "../wire/request.ts";
import { RequestContext, type Tunnel } from "./context.ts";

const tokenProtocol = "base64url.bearer.authorization.k8s.io.";
/** Frames a client may send: none are expected. */
const maxPayload = 4096;

/** Subresources that clients open streams into. */
const streams: ReadonlySet<string> = new Set(["exec", "attach", "portforward", "proxy"]);

/** Serves requests for another protocol. */
export class Upgrades {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload,
    perMessageDeflate: false,
    handleProtocols: (protocols) =>
      [...protocols].find((protocol) => !protocol.startsWith(tokenProtocol)) ?? false,
  });

  readonly #allowedHosts: ReadonlySet<string>;
  readonly #elsewhere: (path: string) => boolean;

  /**
   * `allowedHosts`: pages of these hosts may connect, besides pages of the server's own host. `elsewhere`: whether
   * another server answers this path.
   */
  constructor(allowedHosts: readonly string[], elsewhere: (path: string) => boolean) {
    this.#elsewhere = elsewhere;
    this.#allowedHosts = new Set(allowedHosts.map((host) => host.toLowerCase()));
  }

  /** A page of another site must not use whatever credentials the browser adds by itself. */
  #originAllowed(request: IncomingMessage): boolean {
    const { origin } = request.headers;
    if (origin === undefined) return true;
    try {
      const { host, hostname } = new URL(origin);
      return host === request.headers.host || this.#allowedHosts.has(hostname);
    } catch {
      return false;
    }
  }

  /** Runs an upgrade request through the pipeline. */
  async serve(
    wire: Omit<WireRequest, "body">,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    run: (context: RequestContext) => Promise<void>,
  ): Promise<void> {
    const response = new SocketResponse(socket);
    const protocols = (request.headers["sec-websocket-protocol"] ?? "")
      .split(",")
      .map((protocol) => protocol.trim());
    const token = protocols
      .find((protocol) => protocol.startsWith(tokenProtocol))
      ?.slice(tokenProtocol.length);
    const headers = { ...wire.headers };
    if (token !== undefined)
      headers["authorization"] = `Bearer ${Buffer.from(token, "base64url").toString("utf8")}`;
    const others = protocols.filter((protocol) => protocol !== "" && !protocol.startsWith(tokenProtocol));
    if (others.length > 0) headers["sec-websocket-protocol"] = others.join(", ");
    else delete headers["sec-websocket-protocol"];
    const context = new RequestContext({ request: { ...wire, headers, body: emptyBody() }, response });
    if (!this.#originAllowed(request)) {
      return response.refuse(403, "the page's origin is not allowed to open a connection here\n");
    }
    if (token !== undefined && protocols.length < 2) {
      return response.refuse(400, "a token sub-protocol needs another sub-protocol to be chosen\n");
    }
    if (this.#elsewhere(context.rawPath)) {
      context.tunnel = tunnelOf(request, response, socket, head);
      return run(context);
    }
    // Streams into pods are not served: the pipeline says so in the words clients know, after asking who it is.
    if (context.info.isResource && streams.has(context.info.subresource)) return run(context);
    if (
      String(request.headers.upgrade).toLowerCase() !== "websocket" ||
      context.info.verb !== "watch" ||
      !context.info.isResource
    ) {
      return response.refuse(404, "404 page not found\n");
    }
    context.upgraded = new UpgradedOutput(response, (opened) =>
      this.#server.handleUpgrade(request, socket, head, opened),
    );
    await run(context);
  }
}

function tunnelOf(request: IncomingMessage, response: SocketResponse, socket: Duplex, head: Buffer): Tunnel {
  return {
    protocol: request.headers.upgrade ?? "",
    open(rawHeaders) {
      response.switchProtocols(rawHeaders);
      if (head.length > 0) socket.unshift(head);
      return socket;
    },
  };
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

/** The answer before the upgrade, written to the bare socket. */
class SocketResponse implements HttpResponse {
  statusCode = 200;
  headersSent = false;
  readonly #socket: Duplex;
  readonly #headers: Record<string, string> = {};

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  get writableLength(): number {
    return this.#socket.writableLength;
  }

  setHeader(name: string, value: string | number | readonly string[]): void {
    this.#headers[name.toLowerCase()] = typeof value === "object" ? value.join(", ") : String(value);
  }

  writeHead(status: number, headers: Record<string, string | number | readonly string[]> = {}): void {
    this.statusCode = status;
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    this.flushHeaders();
  }

  flushHeaders(): void {
    if (this.headersSent) return;
    this.headersSent = true;
    this.#headers["connection"] = "close";
    const lines = Object.entries(this.#headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#socket.write(`HTTP/1.1 ${this.statusCode} Refused\r\n${lines.join("")}\r\n`);
  }

  /** The answer 101 with somebody else's headers, names and values in turn. */
  switchProtocols(rawHeaders: readonly string[]): void {
    this.headersSent = true;
    this.statusCode = 101;
    let text = "HTTP/1.1 101 Switching Protocols\r\n";
    for (let index = 0; index + 1 < rawHeaders.length; index += 2)
      text += `${rawHeaders[index]}: ${rawHeaders[index + 1]}\r\n`;
    this.#socket.write(`${text}\r\n`, "latin1");
  }

  write(chunk: string | Uint8Array): boolean {
    this.flushHeaders();
    return this.#socket.write(chunk);
  }

  end(chunk?: string | Uint8Array): void {
    if (chunk !== undefined) this.write(chunk);
    this.#socket.end();
  }

  on(event: "close" | "drain" | "error", listener: (...args: unknown[]) => void): void {
    this.#socket.on(event, listener);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  refuse(status: number, text: string): void {
    this.writeHead(status, {
      "content-type": "text/plain; charset=utf-8",
      "content-length": Buffer.byteLength(text),
    });
    this.end(text);
  }
}

/** The events of a watch as text frames, one each. */
class UpgradedOutput implements WatchOutput {
  readonly #response: SocketResponse;
  readonly #upgrade: (opened: (socket: WebSocket) => void) => void;
  readonly #drains: (() => void)[] = [];
  #socket: WebSocket | undefined;

  constructor(response: SocketResponse, upgrade: (opened: (socket: WebSocket) => void) => void) {
    this.#response = response;
    this.#upgrade = upgrade;
  }

  get pending(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  open(): void {
    this.#response.headersSent = true;
    this.#upgrade((socket) => {
      this.#socket = socket;
      socket.on("error", () => socket.terminate());
      // Nothing is expected of the client; what it sends is dropped.
      socket.on("message", () => {});
    });
  }

  send(chunk: Buffer): void {
    const end = chunk.at(-1) === 0x0a ? chunk.length - 1 : chunk.length;
    this.#socket?.send(chunk.subarray(0, end), { binary: false }, () => {
      for (const drain of this.#drains) drain();
    });
  }

  flush(): void {
    // Each event is a frame of its own, sent at once.
  }

  end(): void {
    this.#socket?.close(1000);
  }

  onDrain(callback: () => void): void {
    this.#drains.push(callback);
  }

  onClose(callback: () => void): void {
    this.#response.on("close", callback);
  }
}
