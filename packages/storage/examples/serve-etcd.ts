/**
 * An etcd that is one file: serves the etcd3 API over SQLite, for etcdctl and every other etcd client.
 * Run: `node packages/storage/examples/serve-etcd.ts [URL] [PORT]`, then
 * `ETCDCTL_API=3 etcdctl --endpoints=127.0.0.1:2379 put hello world`.
 */
import { systemEdges } from "@kontinuum/std";
import { openStore, serveEtcd } from "@kontinuum/storage";

const [url = "sqlite://etcd.db", port = "2379"] = process.argv.slice(2);
const store = await openStore(url, systemEdges());
const server = await serveEtcd(store, { port: Number(port) });
console.log(`serving ${url} on ${server.url}`);

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void server.close().then(() => store.close()));
