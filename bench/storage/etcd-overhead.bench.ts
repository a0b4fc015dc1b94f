/**
 * What the etcd driver costs on top of the same generated client called directly: the aim is at most 10 %.
 */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { KV } from "../../packages/storage/src/gen/etcd/etcdserverpb/rpc_pb.ts";
import { findEtcd, startEtcd } from "../../test/services/etcd.ts";
import { separate } from "./cores.ts";
import { machine, measure, table, type Measured } from "./measure.ts";

const program = await findEtcd();
if (typeof program !== "string") {
  process.stdout.write(`left out: ${program.missing}\n`);
  process.exit(0);
}
const etcd = await startEtcd();
separate();
const store = await openStore(etcd.url, systemEdges());
const client = createClient(
  KV,
  createGrpcTransport({ baseUrl: `http://${etcd.endpoint}`, acceptCompression: [] }),
);
const value = Buffer.alloc(1_024, 0x61);
const rounds: Record<string, Measured[]> = {
  "direct put": [],
  "driver put": [],
  "direct get": [],
  "driver get": [],
};
const key = (i: number): Buffer => Buffer.from(`/bench/${i % 500}`);
for (let round = 0; round < 4; round++) {
  const record = async (name: string, work: (i: number) => Promise<unknown>): Promise<void> => {
    const measured = await measure(3_000, 32, work);
    // The first round warms up.
    if (round > 0) rounds[name]?.push(measured);
  };
  await record("direct put", (i) =>
    client.txn({ success: [{ request: { case: "requestPut", value: { key: key(i), value } } }] }),
  );
  await record("driver put", (i) => store.txn({ success: [{ type: "put", key: key(i), value }] }));
  await record("direct get", (i) => client.range({ key: key(i) }));
  await record("driver get", (i) => store.range({ key: key(i) }));
}
await store.close();
await etcd.stop();

const rows = Object.entries(rounds).map(([name, measured]) => {
  const sorted = measured.toSorted((a, b) => a.cpuPerOperation - b.cpuPerOperation);
  return [name, sorted[1]?.perSecond ?? 0, sorted[1]?.p50 ?? 0, sorted[1]?.cpuPerOperation ?? 0] as const;
});
process.stdout.write(`${machine()}\n`);
table(
  "etcd: the same generated client, directly and through the driver (32 in flight, median of three)",
  ["call", "per second", "p50 ms", "client CPU µs", "ratio CPU"],
  rows.map(([name, rate, p50, cpu], i) => [
    name,
    rate,
    p50,
    cpu,
    i % 2 === 0 ? "1" : (cpu / (rows[i - 1]?.[3] ?? cpu)).toFixed(2),
  ]),
);
process.exit(0);
