/**
 * Reading a server-sent event stream in tests.
 */
import http from "node:http";
import { until } from "./kryton.fixture.ts";

/** An open stream and what came of it. */
export interface Stream extends AsyncDisposable {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** Everything received so far. */
  text(): string;
  /** Ids of events received so far. */
  ids(): string[];
  /** Parsed events received so far. */
  events(): { id: string; type: string; data?: Record<string, unknown> }[];
  readonly ended: Promise<void>;
}

/** Opens a stream; resolves with its headers. */
export function openStream(url: string, headers: Record<string, string> = {}): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { headers, agent: false }, (response) => {
      let received = "";
      response.setEncoding("utf8");
      const ids: string[] = [];
      let line = "";
      response.on("data", (chunk: string) => {
        received += chunk;
        const lines = (line + chunk).split("\n");
        line = lines.pop() ?? "";
        ids.push(...lines.filter((text) => text.startsWith("id: ")).map((text) => text.slice(4)));
      });
      const ended = new Promise<void>((done) => {
        response.once("close", () => done());
        response.once("error", () => done());
      });
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        text: () => received,
        ids: () => [...ids],
        events: () =>
          [...received.matchAll(/^event: cloudevent\ndata: (.+)$/gm)].map((match) =>
            JSON.parse(match[1] ?? ""),
          ),
        ended,
        async [Symbol.asyncDispose]() {
          request.destroy();
          await ended;
        },
      });
    });
    request.once("error", reject);
  });
}

/** Waits until a stream has received so many events. */
export function received(stream: Stream, count: number): Promise<true> {
  return until(() => (stream.ids().length >= count ? true : undefined));
}
