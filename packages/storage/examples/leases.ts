/**
 * A presence list: a key lives as long as its owner keeps its lease alive.
 * Run: `node packages/storage/examples/leases.ts`.
 */
import { SimulatedClock, systemEdges } from "@kontinuum/std";
import { openStore, prefixRange } from "@kontinuum/storage";

// Time is a parameter: with a simulated clock a minute takes no time. Leave `clock` out for the real one.
const clock = new SimulatedClock();
const store = await openStore("memory://", systemEdges({ clock }));
const online = async (): Promise<string> =>
  (await store.range(prefixRange("/online/"))).kvs.map((kv) => kv.key.toString()).join(" ") || "nobody";

const lease = await store.leaseGrant(10);
await store.txn({ success: [{ type: "put", key: "/online/ada", value: "", lease: lease.id }] });
console.log(`online: ${await online()}`);

await clock.advance(8_000);
await store.leaseKeepAlive(lease.id);
await clock.advance(8_000);
console.log(`kept alive: ${await online()}`);

await clock.advance(11_000);
for (let turn = 0; turn < 8; turn++) await clock.advance(1);
console.log(`after silence: ${await online()}`);
await store.close();
