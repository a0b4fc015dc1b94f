/** Settings of a database that would weaken what the store promises. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { findPostgres, startPostgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";

test("a database that commits without a flush and isolates more than is needed: nothing acknowledged is lost", async (t) => {
  const missing = await findPostgres();
  if (typeof missing !== "string") return t.skip(String(skipUnless(missing)));
  const postgres = await startPostgres({
    synchronous_commit: "off",
    // What is not flushed with its commit stays in memory for that long.
    wal_writer_delay: "10s",
    default_transaction_isolation: "serializable",
  });
  const replicas = await Promise.all([1, 2].map(() => openStore(postgres.url, systemEdges())));
  try {
    const keys = Array.from({ length: 60 }, (_, i) => `/k/${String(i).padStart(3, "0")}`);
    await Promise.all(
      replicas.map(async (store, i) => {
        for (const key of keys)
          await store.txn({ success: [{ type: "put", key: `${key}/${i}`, value: key }] });
      }),
    );
    await postgres.kill();
    await postgres.restart();
    const [store] = replicas;
    const { kvs } = (await store?.range({ key: "/k/", end: "/k0" })) ?? { kvs: [] };
    assert.deepEqual(
      kvs.map((kv) => kv.key.toString()),
      keys.flatMap((key) => [`${key}/0`, `${key}/1`]),
    );
  } finally {
    await Promise.all(replicas.map((each) => each.close()));
    await postgres.stop();
  }
});
