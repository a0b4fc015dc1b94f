/**
 * The process that is traced: writes in groups and says, with one write to standard output, how many writes were
 * acknowledged so far. `node flush-writer.ts PATH`.
 */
import { writeSync } from "node:fs";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";

const store = await openStore(`sqlite://${process.argv[2] ?? ""}`, systemEdges());
let acknowledged = 0;
// Enough for the write-ahead log to be folded into the file in between.
for (let round = 0; round < 24; round++) {
  const group = round % 3 === 0 ? 1 : 64;
  const first = acknowledged;
  await Promise.all(
    Array.from({ length: group }, (_, i) =>
      store.txn({ success: [{ type: "put", key: `/k/${first + i}`, value: "x".repeat(2_000) }] }),
    ),
  );
  acknowledged += group;
  writeSync(1, `acknowledged ${acknowledged}\n`);
}
await store.close();
