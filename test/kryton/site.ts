/**
 * Three krytond on one store behind a proxy that takes turns, for tests that kill them.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock, systemRandom } from "@kontinuum/std";
import { KrytondProcess } from "./krytond-process.ts";

/** How long a request is repeated, milliseconds: longer than the claims of a dead replica live. */
const insistMs = 40_000;
const againMs = 100;

/** Replicas and their proxy. */
export class Site implements AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  replicas: KrytondProcess[] = [];
  url = "";
  /** Requests that came through the proxy. */
  requests = 0;
  /** Replicas that were killed. */
  kills = 0;
  /** Called with each request that comes. */
  onRequest: () => void = () => {};
  #turn = 0;
  #closed = false;
  readonly #proxy: http.Server;

  private constructor(env: Readonly<Record<string, string>>, insisting: boolean) {
    this.env = env;
    this.#proxy = http.createServer((incoming, outgoing) => {
      this.requests++;
      this.onRequest();
      if (insisting) void this.#insist(incoming, outgoing);
      else this.#pass(incoming, outgoing);
    });
  }

  /**
   * Starts everything. `insisting`: the proxy does what a careful client does: it repeats what was cut off, with an
   * `Idempotency-Key`, and waits for the operation when an answer tells of one that is under way.
   */
  static async open(env: Readonly<Record<string, string>>, insisting = false): Promise<Site> {
    const site = new Site(env, insisting);
    site.replicas = await Promise.all([1, 2, 3].map(() => KrytondProcess.start(env)));
    await new Promise<void>((resolve) => site.#proxy.listen(0, "127.0.0.1", resolve));
    site.url = `http://127.0.0.1:${(site.#proxy.address() as AddressInfo).port}`;
    return site;
  }

  /** Kills a replica and starts another in its place. One at a time. */
  async killOne(index: number): Promise<void> {
    const at = index % this.replicas.length;
    this.kills++;
    await this.replicas[at]?.kill();
    const next = await KrytondProcess.start(this.env);
    if (this.#closed) await next.kill();
    else this.replicas[at] = next;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#proxy.closeAllConnections();
    await new Promise((resolve) => this.#proxy.close(resolve));
    await Promise.all(this.replicas.map((replica) => replica.kill()));
  }

  #next(): string {
    return this.replicas[this.#turn++ % this.replicas.length]?.url ?? "";
  }

  #pass(incoming: http.IncomingMessage, outgoing: http.ServerResponse): void {
    const request = http.request(
      `${this.#next()}${incoming.url}`,
      { method: incoming.method, headers: incoming.headers, agent: false },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
        response.once("error", () => outgoing.destroy());
      },
    );
    request.once("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
    incoming.pipe(request);
    outgoing.once("close", () => request.destroy());
  }

  async #insist(incoming: http.IncomingMessage, outgoing: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk);
    } catch {
      // The client went away while it spoke; what it said completely is still done.
    }
    const { method = "GET" } = incoming;
    const headers = { ...incoming.headers };
    delete headers["transfer-encoding"];
    if (method !== "GET" && method !== "HEAD") headers["idempotency-key"] ??= systemRandom.uuid();
    const asked = { method, path: incoming.url ?? "/", headers, body: Buffer.concat(chunks) };
    const end = systemClock.monotonic() + insistMs;
    let answer: Answer | undefined;
    while (!this.#closed && systemClock.monotonic() < end) {
      answer = await ask(this.#next(), asked).catch(() => undefined);
      const text = answer?.body.toString("utf8") ?? "";
      const again =
        !answer ||
        (answer.status === 503 && text.includes("STORE_UNAVAILABLE")) ||
        (answer.status === 409 && text.includes("is under way"));
      if (!again) break;
      await systemClock.sleep(againMs);
    }
    if (!answer) return void outgoing.destroy();
    const body = await this.#settled(answer, asked, end);
    outgoing.writeHead(answer.status, { ...answer.headers, "content-length": body.length });
    outgoing.end(method === "HEAD" ? undefined : body);
  }

  /** The body once nothing is under way on the machine it shows. */
  async #settled(answer: Answer, asked: Asked, end: number): Promise<Buffer> {
    let { body } = answer;
    const shown = machineOf(body);
    if (answer.status >= 300 || asked.method === "GET" || !shown) return body;
    while (machineOf(body)?.busy && systemClock.monotonic() < end) {
      await systemClock.sleep(againMs);
      const path = `/api/v1/machines/${shown.id}?project=${shown.project}`;
      const now = await ask(this.#next(), { ...asked, method: "GET", path, body: Buffer.alloc(0) }).catch(
        () => undefined,
      );
      if (now?.status === 200) body = now.body;
    }
    return body;
  }
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One request, whole; rejects when the answer is cut off. */
function ask(base: string, { method, path, headers, body }: Asked): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = body.length > 0 || method !== "GET" ? { "content-length": body.length } : {};
    const { "content-length": _, ...others } = headers;
    const request = http.request(
      `${base}${path}`,
      { method, headers: { ...others, ...length }, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => {
          const { "transfer-encoding": __, connection: ___, ...kept } = response.headers;
          resolve({ status: response.statusCode ?? 502, headers: kept, body: Buffer.concat(chunks) });
        });
      },
    );
    request.once("error", reject);
    request.end(body);
  });
}

function machineOf(body: Buffer): { id: string; project: string; busy: boolean } | undefined {
  let json: unknown;
  try {
    json = JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null || !("id" in json) || !("providerRef" in json))
    return undefined;
  return {
    id: String(json.id),
    project: "project" in json ? String(json.project) : "",
    busy: "operation" in json,
  };
}
