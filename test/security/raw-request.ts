/**
 * Requests as an attacker writes them: any header, any bytes. `fetch` would refuse half of them.
 */
import http from "node:http";

/** An answer. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Sends one request on a connection of its own and reads the answer. An upgrade that is granted has status 101. */
export function rawRequest(
  base: string,
  method: string,
  path: string,
  headers: http.OutgoingHttpHeaders = {},
  body?: string | Uint8Array,
): Promise<RawAnswer> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString("utf8"),
        }),
      );
    });
    request.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: "" });
    });
    request.on("error", reject);
    request.end(body);
  });
}
