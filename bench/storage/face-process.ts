/** The etcd3 face of the benchmarks over a store of its own, in its own process. Tells its port; ends when told to. */
import { systemEdges } from "@kontinuum/std";
import { openStore, serveEtcd } from "@kontinuum/storage";

const store = await openStore(process.argv[2] ?? "memory://", systemEdges());
const server = await serveEtcd(store);
process.send?.(server.port);
process.once("message", () => {
  void server
    .close()
    .then(() => store.close())
    .then(() => process.exit(0));
});
