/**
 * The services themselves: that each starts, answers, survives a crash and leaves nothing behind.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { findEtcd, startEtcd } from "./etcd.ts";
import { findHelm, findKubectl } from "./kubernetes-tools.ts";
import { findPostgres, startPostgres } from "./postgres.ts";
import { run, skipUnless } from "./service.ts";

test("PostgreSQL starts, survives a kill and stops", { skip: skipUnless(await findPostgres()) }, async () => {
  const server = await startPostgres();
  try {
    const ask = async (text: string): Promise<unknown> => {
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      try {
        return (await client.query(text)).rows[0];
      } finally {
        await client.end();
      }
    };
    await ask("create table kept as select 1 as one");
    await server.kill();
    await server.restart();
    assert.deepEqual(await ask("select one from kept"), { one: 1 });
  } finally {
    await server.stop();
  }
});

test("etcd starts, survives a kill and stops", { skip: skipUnless(await findEtcd()) }, async () => {
  const server = await startEtcd();
  try {
    await server.kill();
    await server.restart();
    assert.equal((await fetch(`http://${server.endpoint}/health`)).status, 200);
  } finally {
    await server.stop();
  }
});

test("kubectl and helm run", async (t) => {
  for (const [name, found, args] of [
    ["kubectl", await findKubectl(), ["version", "--client"]],
    ["helm", await findHelm(), ["version", "--short"]],
  ] as const) {
    await t.test(name, { skip: skipUnless(found) }, async () => {
      assert.ok(typeof found === "string");
      const answer = await run(found, args);
      assert.equal(answer.code, 0, answer.stderr);
      assert.match(answer.stdout, /v\d+\.\d+/);
    });
  }
});
