/**
 * Two servers on one store, each with its own garbage collector and namespace controllers and no lease between them:
 * the second to act finds the work done and writes nothing.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "@kontinuum/std";
import type { ApiServer } from "../contract.ts";
import { createServer } from "../server.ts";
import { eventually, startServer, type ServerFixture } from "../server.fixture.ts";

const maps = "/api/v1/namespaces/default/configmaps";
const rounds = 15;

const map = (name: string, more: JsonObject = {}): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...more },
});

/** Owners with two dependents each, made and deleted with the propagation; answers how many writes the store took. */
async function writesOf({ ask, store }: ServerFixture, policy: string): Promise<bigint> {
  const from = await store.revision();
  const names = Array.from({ length: rounds }, (_, index) => `${policy.toLowerCase()}-${index}`);
  for (const name of names) {
    const owner = await ask("POST", maps, map(name));
    assert.equal(owner.status, 201, owner.text);
    const reference = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name,
      uid: String(owner.at("metadata", "uid")),
      blockOwnerDeletion: true,
    };
    for (const child of ["a", "b"]) {
      const made = await ask("POST", maps, map(`${name}-${child}`, { ownerReferences: [reference] }));
      assert.equal(made.status, 201, made.text);
    }
  }
  const options = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: policy };
  await Promise.all(names.map((name) => ask("DELETE", `${maps}/${name}`, options)));
  for (const name of names) {
    await eventually(`${name} is gone`, async () => (await ask("GET", `${maps}/${name}`)).status === 404);
    for (const child of ["a", "b"]) {
      await eventually(`${name}-${child} is dealt with`, async () => {
        const now = await ask("GET", `${maps}/${name}-${child}`);
        if (policy !== "Orphan") return now.status === 404;
        assert.equal(now.status, 200, "an orphan lives on");
        return now.at("metadata", "ownerReferences") === undefined;
      });
    }
  }
  return BigInt(await store.revision()) - BigInt(from);
}

describe("two servers on one store", () => {
  let alone: ServerFixture;
  let first: ServerFixture;
  let second: ApiServer;
  before(async () => {
    alone = await startServer({});
    first = await startServer({});
    second = createServer({ storage: first.store, auth: { authenticators: [], authorizers: [] } });
    await second.start();
  });
  after(async () => {
    await second.stop(1000);
    await Promise.all([first.stop(), alone.stop()]);
  });

  for (const policy of ["Background", "Foreground", "Orphan"]) {
    test(`${policy}: as many writes as one server makes`, async () => {
      const expected = await writesOf(alone, policy);
      assert.equal(await writesOf(first, policy), expected);
    });
  }

  test("namespaces go, and then nothing is written any more", async () => {
    const { ask } = first;
    const names = Array.from({ length: 5 }, (_, index) => `two-${index}`);
    for (const name of names) {
      const made = await ask("POST", "/api/v1/namespaces", {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name },
      });
      assert.equal(made.status, 201, made.text);
      for (const child of ["a", "b", "c"])
        assert.equal((await ask("POST", `/api/v1/namespaces/${name}/configmaps`, map(child))).status, 201);
    }
    await Promise.all(names.map((name) => ask("DELETE", `/api/v1/namespaces/${name}`)));
    for (const name of names) {
      await eventually(
        `${name} is gone`,
        async () => (await ask("GET", `/api/v1/namespaces/${name}`)).status === 404,
      );
      assert.equal((await ask("GET", `/api/v1/namespaces/${name}/configmaps`)).at("items", 0), undefined);
    }
    // What either controller does about the namespaces comes before what it does about these.
    assert.equal(await writesOf(first, "Background"), BigInt(rounds * 6));
  });
});
