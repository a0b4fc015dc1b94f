/**
 * The server of the benchmarks, in its own process so that it has a core to itself. Tells its port and how long it
 * took to serve; answers `memory` with its resident size and `stop` by ending.
 */
import { createServer, staticTokens } from "@kontinuum/kapi";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";

const began = performance.now();
const edges = systemEdges();
const storage = await openStore(process.argv[2] ?? "memory://", edges);
const server = createServer({
  storage,
  edges,
  auth: {
    authenticators: [staticTokens([{ token: "bench", user: { name: "bench", groups: ["system:masters"] } }])],
    authorizers: [],
  },
  listen: { port: 0 },
});
await server.start();
process.send?.({ port: server.port, startMs: performance.now() - began });
process.on("message", (message) => {
  if (message === "memory") {
    globalThis.gc?.();
    process.send?.({ memory: process.memoryUsage.rss(), cpu: process.cpuUsage() });
  } else if (message === "stop") {
    void server
      .stop()
      .then(() => storage.close())
      .then(() => process.exit(0));
  }
});
