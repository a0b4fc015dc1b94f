/**
 * A Kubernetes-style API server in ten lines. Run: `node packages/kapi/examples/minimal.ts [port]`, then
 * `kubectl -s http://127.0.0.1:<port> get namespaces`.
 */
import { createServer } from "@kontinuum/kapi";
import { createLog, systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";

const edges = systemEdges({ log: createLog({ level: "info", format: "text" }) });
const storage = await openStore("memory://", edges);
const port = Number(process.argv[2] ?? 0);
const server = createServer({
  storage,
  edges,
  auth: { authenticators: [], authorizers: [] },
  listen: { port },
});
await server.start();
console.log(server.url);
process.once("SIGINT", () => void server.stop().then(() => storage.close()));
