/**
 * The server of the benchmarks, in its own process so that it has a core to itself. Tells its port and how long it took
 * to serve, in milliseconds. Answers `memory` with its resident size and processor time,
 * `profile` by starting the engine's sampler, `profiled:<file>` by writing what it saw, and `stop` by ending.
 */
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
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
process.send?.({ port: server.port, startMs: performance.now() - began, bootMs: performance.now() });

const session = new Session();
async function answer(message: unknown): Promise<void> {
  if (message === "memory") {
    process.send?.({ memory: process.memoryUsage.rss(), cpu: process.cpuUsage() });
  } else if (message === "profile") {
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: 200 });
    await session.post("Profiler.start");
    process.send?.({});
  } else if (typeof message === "string" && message.startsWith("profiled:")) {
    const { profile } = await session.post("Profiler.stop");
    session.disconnect();
    writeFileSync(message.slice("profiled:".length), JSON.stringify(profile));
    process.send?.({});
  } else if (message === "stop") {
    await server.stop();
    await storage.close();
    process.exit(0);
  }
}
process.on("message", (message) => void answer(message));
