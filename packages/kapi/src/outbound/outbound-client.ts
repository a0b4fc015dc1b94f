/**
 * The one way out: requests the server makes because an object told it to (admission and conversion webhooks,
 * aggregated APIs).
 *
 * The name is resolved here, every address is checked, and the connection goes to the address that was checked. No
 * redirects, no credentials of its own, bounded size and time. Failures name the target and never quote an answer.
 */
import http from "node:http";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { CodedError, messageOf, type Clock, type Network } from "@kontinuum/std";
import { readJsonAnswer } from "./read-answer.ts";
import type { AddressPolicy } from "./address-policy.ts";

/** Where to and how. */
export interface OutboundTarget {
  /** Name or address to connect to. */
  readonly host: string;
  readonly port: number;
  /** Absolute path with query. */
  readonly path: string;
  /** PEM authorities; absent: the system's. */
  readonly ca?: string | undefined;
  /** Name the certificate must be for; default `host`. */
  readonly serverName?: string;
  /** Accepts any certificate: only where an object says so itself. */
  readonly insecure?: boolean;
  /** Client certificate. */
  readonly identity?: { readonly cert: string; readonly key: string } | undefined;
}

/** One call. */
export interface OutboundCall {
  /** Absent: a GET. */
  readonly body?: string;
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Largest answer that is read. */
export const maxAnswerBytes = 8 * 1024 * 1024;

/** What the client is made of. */
export interface OutboundOptions {
  readonly network: Network;
  readonly clock: Clock;
  readonly policy: AddressPolicy;
}

/** Makes requests. */
export class OutboundClient {
  readonly #options: OutboundOptions;

  constructor(options: OutboundOptions) {
    this.#options = options;
  }

  /** Opens a TLS connection to a checked address. Fails with `permission_denied`, `unavailable`, `deadline_exceeded`. */
  async connect(target: OutboundTarget, timeoutMs: number): Promise<Duplex> {
    const { network, policy, clock } = this.#options;
    const addresses = await network.resolve(target.host);
    const address = addresses.find((candidate) => policy.allows(candidate));
    if (address === undefined) {
      throw new CodedError(
        "permission_denied",
        `${target.host} is at an address this server does not connect to; allow its range to change that`,
      );
    }
    const socket = await network.dial({ host: address, port: target.port, timeoutMs });
    const servername = target.serverName ?? target.host;
    const secure = tls.connect({
      socket,
      ...(isIP(servername) ? {} : { servername }),
      ...(target.ca === undefined ? {} : { ca: target.ca }),
      ...(target.identity ?? {}),
      minVersion: "TLSv1.2",
      rejectUnauthorized: target.insecure !== true,
      checkServerIdentity: (_host, certificate) => tls.checkServerIdentity(servername, certificate),
    });
    return new Promise((resolve, reject) => {
      const timer = clock.timer(timeoutMs, () =>
        fail(new CodedError("deadline_exceeded", `${target.host} did not finish its TLS handshake in time`)),
      );
      const fail = (error: Error): void => {
        timer.clear();
        secure.on("error", () => {});
        secure.destroy();
        reject(
          error instanceof CodedError
            ? error
            : new CodedError("unavailable", `cannot connect to ${target.host}: ${messageOf(error)}`, {
                cause: error,
              }),
        );
      };
      secure.once("error", fail);
      secure.once("secureConnect", () => {
        timer.clear();
        secure.off("error", fail);
        resolve(secure);
      });
    });
  }

  /** Posts JSON (or, without a body, gets) and reads the JSON answer of a 200. */
  async call(target: OutboundTarget, call: OutboundCall): Promise<unknown> {
    const { clock } = this.#options;
    const until = clock.monotonic() + call.timeoutMs;
    const socket = await this.connect(target, call.timeoutMs);
    try {
      return await this.#exchange(target, socket, call, Math.max(1, until - clock.monotonic()));
    } finally {
      socket.destroy();
    }
  }

  #exchange(
    target: OutboundTarget,
    socket: Duplex,
    { body, headers }: OutboundCall,
    timeoutMs: number,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.timer(timeoutMs, () => {
        request.destroy();
        reject(
          new CodedError(
            "deadline_exceeded",
            `${target.host} did not answer within ${Math.ceil(timeoutMs)} ms`,
          ),
        );
      });
      const answer = async (response: http.IncomingMessage): Promise<void> => {
        try {
          resolve(await readJsonAnswer(response, target.host, maxAnswerBytes));
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        } finally {
          timer.clear();
        }
      };
      const request = http.request(
        {
          createConnection: () => socket,
          method: body === undefined ? "GET" : "POST",
          path: target.path,
          headers: {
            ...headers,
            host: target.port === 443 ? target.host : `${target.host}:${target.port}`,
            accept: "application/json",
            "user-agent": "kapi-outbound",
            ...(body === undefined
              ? {}
              : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
            connection: "close",
          },
        },
        (response) => void answer(response),
      );
      request.on("error", (error) => {
        timer.clear();
        reject(
          new CodedError("unavailable", `the call to ${target.host} failed: ${error.message}`, {
            cause: error,
          }),
        );
      });
      request.end(body);
    });
  }
}
