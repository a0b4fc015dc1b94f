/**
 * An endpoint that takes deliveries, for tests.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";

/** A delivery as it arrived. */
export interface Delivery {
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Listens on a port of its own and answers as a test wants. */
export class Receiver implements AsyncDisposable {
  /** What was answered with success. */
  readonly deliveries: Delivery[] = [];
  /** Status of the answer to a delivery. */
  answer: (delivery: Delivery) => number = () => 204;
  readonly #server: http.Server;
  url = "";

  constructor() {
    this.#server = http.createServer((incoming, outgoing) => {
      let body = "";
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk: string) => (body += chunk));
      incoming.on("end", () => {
        const delivery = { headers: incoming.headers, body };
        const status = this.answer(delivery);
        if (status < 300) this.deliveries.push(delivery);
        outgoing.writeHead(status).end("this body must never be shown to anybody");
      });
    });
  }

  static async open(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    receiver.url = `http://127.0.0.1:${(receiver.#server.address() as AddressInfo).port}/hook`;
    return receiver;
  }

  /** Names of the machines the deliveries are about. */
  names(): unknown[] {
    return this.deliveries.map(({ body }) => JSON.parse(body).data?.name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
