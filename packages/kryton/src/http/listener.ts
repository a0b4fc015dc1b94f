/**
 * The listener: timeouts, TLS, mutual TLS, draining.
 */
import { readFile } from "node:fs/promises";
import type { RequestListener, Server, ServerOptions } from "node:http";
import type { Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { CodedError, http, loadHttps, messageOf, type Edges } from "@kontinuum/std";
import type { Config } from "../config/config.ts";

const headerTimeoutMs = 5_000;
const requestTimeoutMs = 30_000;
const idleTimeoutMs = 120_000;
const maxHeaderBytes = 1024 * 1024;

/** Certificate, key and the CA of client certificates. */
export interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer | undefined;
}

/** Reads what TLS needs; `undefined` when it is off. Fails with `invalid_argument`, naming the variable. */
export async function readTls(config: Config): Promise<Tls | undefined> {
  if (config.tlsCertFile === "") return undefined;
  const read = async (variable: string, path: string): Promise<Buffer> => {
    try {
      return await readFile(path);
    } catch (error) {
      throw new CodedError("invalid_argument", `${variable}: ${messageOf(error)}`);
    }
  };
  const ca =
    config.clientCaFile === "" ? undefined : await read("KRYTON_CLIENT_CA_FILE", config.clientCaFile);
  if (ca && !ca.includes("-----BEGIN CERTIFICATE-----")) {
    throw new CodedError(
      "invalid_argument",
      `KRYTON_CLIENT_CA_FILE: ${config.clientCaFile} holds no certificate`,
    );
  }
  return {
    cert: await read("KRYTON_TLS_CERT_FILE", config.tlsCertFile),
    key: await read("KRYTON_TLS_KEY_FILE", config.tlsKeyFile),
    ca,
  };
}

/** A server with the limits of the contract. */
export function createServer(tls: Tls | undefined, handler: RequestListener): Server | SecureServer {
  const common: ServerOptions = {
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headerTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    noDelay: true,
  };
  if (!tls) return http.createServer(common, handler);
  const mutual = tls.ca ? { ca: tls.ca, requestCert: true, rejectUnauthorized: true } : {};
  try {
    return loadHttps().createServer(
      { ...common, cert: tls.cert, key: tls.key, minVersion: "TLSv1.2", ...mutual },
      handler,
    );
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `KRYTON_TLS_CERT_FILE or KRYTON_TLS_KEY_FILE: ${messageOf(error)}`,
    );
  }
}

/** Listens; resolves with the URL. Fails with `unavailable` when the address cannot be had. */
export function listen(server: Server | SecureServer, config: Config, secure: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const where = `${config.host}:${config.port}`;
      const why = error.code === "EADDRINUSE" ? "is in use; set KRYTON_ADDR to another" : error.message;
      reject(new CodedError("unavailable", `address ${where} ${why}`, { cause: error }));
    });
    server.listen({ port: config.port, ...(config.host === "" ? {} : { host: config.host }) }, () => {
      const { address, port, family } = server.address() as AddressInfo;
      const any = address === "::" || address === "0.0.0.0";
      const host = any ? "localhost" : family === "IPv6" ? `[${address}]` : address;
      resolve(`${secure ? "https" : "http"}://${host}:${port}`);
    });
  });
}

/** `address:port` of a server, and of every interface when it listens on all. */
export function listenersOf(server: Server | SecureServer): string[] {
  const { address, port } = server.address() as AddressInfo;
  const any = address === "::" || address === "0.0.0.0";
  const own = any
    ? Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((entry) => entry.address))
    : [address];
  return own.map((host) => `${host}:${port}`);
}

/** Stops accepting, drains, and after `limitMs` cuts what is left. */
export async function closeServer(
  server: Server | SecureServer,
  limitMs: number,
  edges: Edges,
): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = edges.clock.timer(limitMs, () => server.closeAllConnections());
  await closed;
  timer.clear();
}
