/**
 * What `verify` says of each kind of damage, on SQLite and PostgreSQL: the kind by name, and the key. The damage is done to the
 * tables directly.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { openStore, verifyStore } from "@kontinuum/storage";
import pg from "pg";
import { findPostgres, startPostgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";

const edges = systemEdges();
const options = { retention: { intervalMs: 0 } };

/** Damage, in statements for both databases (`TABLE_` is their prefix), and what must be said of it. */
const damages: readonly { readonly text: string; readonly finding: RegExp }[] = [
  {
    text: "DELETE FROM TABLE_log WHERE key = KEY_ AND version = 2",
    finding: /a live key without its log entry: .*"?\/hurt"?/,
  },
  {
    text: "UPDATE TABLE_log SET key = KEY_ WHERE key = OTHER_",
    finding: /a live key that has a newer log entry: .*\/hurt/,
  },
  {
    text: "DELETE FROM TABLE_head WHERE key = KEY_",
    finding: /a key whose newest log entry is a value but that is not live: .*\/hurt/,
  },
  {
    text: "UPDATE TABLE_log SET created = 1000 WHERE key = KEY_ AND version = 2",
    finding: /a log entry with impossible revisions: .*\/hurt/,
  },
  {
    text: "UPDATE TABLE_head SET lease = 9 WHERE key = KEY_",
    finding: /a lease that differs between a live key and its log entry: .*\/hurt/,
  },
  {
    text: "DELETE FROM TABLE_lease",
    finding: /a key bound to a lease that does not exist: .*\/leased/,
  },
];

/** A store with something to hurt, damaged by `hurt`, and what verify finds then. */
async function findings(url: string, hurt: () => Promise<void>): Promise<string> {
  const store = await openStore(url, edges, options);
  await store.leaseGrant(5_000, 9n);
  for (const [key, lease] of [
    ["/hurt", 0n],
    ["/hurt", 0n],
    ["/leased", 9n],
    ["/other", 0n],
  ] as const)
    await store.txn({ success: [{ type: "put", key, value: "1", lease }] });
  assert.deepEqual((await verifyStore(store)).problems, []);
  await store.close();
  await hurt();
  const again = await openStore(url, edges, options);
  const { problems } = await verifyStore(again);
  await again.close();
  return problems.join("\n");
}

test("SQLite: each kind of damage is named with its key", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "verify-"));
  t.after(() => rm(folder, { recursive: true }));
  for (const [i, { text, finding }] of damages.entries()) {
    const path = join(folder, `${i}.db`);
    const found = await findings(`sqlite://${path}`, async () => {
      const raw = new DatabaseSync(path);
      raw.exec(
        text
          .replaceAll("TABLE_", "")
          .replaceAll("KEY_", "CAST('/hurt' AS BLOB)")
          .replaceAll("OTHER_", "CAST('/other' AS BLOB)"),
      );
      raw.close();
    });
    assert.match(found, finding, text);
  }
});

test(
  "PostgreSQL: each kind of damage is named with its key",
  { skip: skipUnless(await findPostgres()) },
  async (t) => {
    const postgres = await startPostgres({ fsync: "off" });
    t.after(() => postgres.stop());
    const query = async (url: string, text: string): Promise<void> => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(text);
      await client.end();
    };
    for (const [i, { text, finding }] of damages.entries()) {
      await query(postgres.url, `CREATE DATABASE d${i}`);
      const url = postgres.url.replace(/postgres$/, `d${i}`);
      const found = await findings(url, () =>
        query(
          url,
          text
            .replaceAll("TABLE_", "kontinuum_")
            .replaceAll("KEY_", "'/hurt'::bytea")
            .replaceAll("OTHER_", "'/other'::bytea"),
        ),
      );
      assert.match(found, finding, text);
    }
  },
);
