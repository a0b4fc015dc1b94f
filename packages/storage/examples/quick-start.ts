/**
 * Opens a store, changes keys under conditions, reads the past, follows changes.
 * Run: `node packages/storage/examples/quick-start.ts [URL]` (default `memory://`).
 */
import { systemEdges } from "@kontinuum/std";
import { openStore, prefixRange } from "@kontinuum/storage";

const store = await openStore(process.argv[2] ?? "memory://", systemEdges());

// Follow everything under a prefix. Once `ready`, no later change is missed.
const watch = store.watch({ ...prefixRange("/fruit/"), prevKv: true });
await watch.ready;

// Create only if absent: one condition, one revision.
const created = await store.txn({
  compare: [{ key: "/fruit/apple", target: "version", result: "equal", operand: 0 }],
  success: [{ type: "put", key: "/fruit/apple", value: "green" }],
  failure: [{ type: "range", key: "/fruit/apple" }],
});
console.log(created.succeeded ? `created at revision ${created.revision}` : "it was there already");

// Change only what was read.
const [apple] = (await store.range({ key: "/fruit/apple" })).kvs;
const changed = await store.txn({
  compare: [{ key: "/fruit/apple", target: "mod", result: "equal", operand: apple?.modRevision ?? 0 }],
  success: [
    { type: "put", key: "/fruit/apple", value: "red" },
    { type: "put", key: "/fruit/pear", value: "yellow" },
  ],
});
console.log(`changed: ${changed.succeeded}`);

// The past is still there.
const past = await store.range({ key: "/fruit/apple", revision: created.revision });
console.log(`then: ${past.kvs[0]?.value.toString()}`);

let seen = 0;
for await (const { events } of watch) {
  for (const { type, kv, prev } of events)
    console.log(
      `${type} ${kv.key.toString()} = ${kv.value.toString()} (was ${prev?.value.toString() ?? "absent"})`,
    );
  seen += events.length;
  if (seen >= 3) break;
}
await store.close();
