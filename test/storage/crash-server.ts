/**
 * The process that is killed: a store behind the etcd face. `node crash-server.ts URL`; prints its address when
 * it serves. History is kept, so that a watch can be checked from the first revision on.
 */
import { systemEdges } from "@kontinuum/std";
import { openStore, serveEtcd } from "@kontinuum/storage";

const store = await openStore(process.argv[2] ?? "", systemEdges(), { retention: { intervalMs: 0 } });
const server = await serveEtcd(store);
process.stdout.write(`serving ${server.port}\n`);
