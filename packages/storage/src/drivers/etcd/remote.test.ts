/** The contract through the wire: a remote store over the etcd face over memory. */
import { SimulatedClock, systemEdges } from "@kontinuum/std";
import { testContract } from "../../contract/suite.ts";
import { serveEtcd } from "../../etcd/services.ts";
import { openStore } from "../../open.ts";
import { connectEtcd } from "./etcd-store.ts";

testContract("remote", async () => {
  const edges = systemEdges();
  // Leases run on the served store's clock; the connection's timers are real.
  const clock = new SimulatedClock();
  const behind = await openStore("memory://", systemEdges({ clock }));
  const server = await serveEtcd(behind);
  const target = { endpoints: [`127.0.0.1:${server.port}`] };
  const store = connectEtcd(target, edges, "grpc");
  return {
    store,
    pass: (ms) => clock.advance(ms),
    second: async () => connectEtcd(target, edges, "grpc"),
    close: async () => {
      await store.close();
      await server.close();
      await behind.close();
    },
  };
});
