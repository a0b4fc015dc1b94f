/**
 * Whatever a zone gets past the rules, the hub's own API server still reads, changes and deletes.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client } from "@kontinuum/controller";
import { createServer, type ApiServer } from "@kontinuum/kapi";
import { systemEdges } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import fc from "fast-check";
import { converters, crds, kontinuumKind, systemNamespace } from "../kinds/index.ts";
import { zoneWriteRefusal, type ZoneScope } from "./zone-rules.ts";

let store: Store;
let server: ApiServer;
let client: Client;
const edges = systemEdges();
const scope: ZoneScope = { name: "eu-a", uid: "u-1", region: "eu", zone: "a" };

before(async () => {
  store = await openStore("memory://", edges);
  server = createServer({
    storage: store,
    edges,
    crds,
    converters,
    auth: { authenticators: [], authorizers: [] },
  });
  await server.start();
  client = new Client(server.transport(server.loopback), { edges });
});
after(async () => {
  await server.stop();
  await store.close();
});

const names = fc.constantFrom("apiVersion", "kind", "metadata", "status", "labels", "managedFields", "evil");
const hostile = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.dictionary(names, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
  fc.constantFrom(null, "", 0, -1, 1e300, [], {}, [null], [{}], "2026-01-01T00:00:00Z"),
);
const fields = fc.constantFrom(
  ["status"],
  ["status", "version"],
  ["status", "lastHeartbeatTime"],
  ["status", "config"],
  ["metadata", "labels"],
  ["metadata", "annotations"],
  ["metadata", "managedFields"],
  ["metadata", "creationTimestamp"],
  ["metadata", "generation"],
  ["metadata", "resourceVersion"],
  ["metadata", "uid"],
  ["spec", "other"],
  ["other"],
);

const harmless: fc.Arbitrary<[string[], unknown]> = fc.oneof(
  fc.string().map((version): [string[], unknown] => [["status", "version"], version]),
  fc
    .constantFrom({ a: "b" }, { "x.y/z": "" }, { a: "" })
    .map((labels): [string[], unknown] => [["metadata", "labels"], labels]),
  fc
    .dictionary(fc.constantFrom("a", "b.c/d"), fc.string(), { minKeys: 1 })
    .map((all): [string[], unknown] => [["metadata", "annotations"], all]),
  fc.integer({ min: 0 }).map((value): [string[], unknown] => [["metadata", "generation"], value]),
  fc.constant<[string[], unknown]>([["metadata", "resourceVersion"], "7"]),
);

test("what passes is read, updated and deleted by the hub", async () => {
  let count = 0;
  let passed = 0;
  const change = fc.oneof(fc.tuple(fields, hostile), { arbitrary: harmless, weight: 2 });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 2 }), async (changes) => {
      const ref = { namespace: systemNamespace, name: `pod-${count++}` };
      const value: Record<string, unknown> = {
        apiVersion: "kontinuum.sh/v1alpha2",
        kind: "Kontinuum",
        metadata: { ...ref, uid: "u" },
        spec: { region: "eu", zone: "a" },
        status: { version: "v1" },
      };
      for (const [[first = "", second], made] of changes) {
        const parent = value[first];
        if (second === undefined) value[first] = made;
        else if (typeof parent === "object" && parent !== null) Object.assign(parent, { [second]: made });
      }
      const key = `/registry/kontinuum.sh/kontinuums/${ref.namespace}/${ref.name}`;
      const bytes = Buffer.from(JSON.stringify(value));
      if (zoneWriteRefusal(scope, key, undefined, bytes) !== undefined) return;
      passed++;
      await store.txn({ success: [{ type: "put", key, value: bytes }] });
      const read = await client.get(kontinuumKind.resource, ref);
      await client.updateStatus(kontinuumKind.resource, { ...read, status: { version: "v2" } });
      await client.delete(kontinuumKind.resource, ref);
    }),
    { numRuns: 300 },
  );
  assert.ok(passed > 10, `only ${passed} of ${count} values passed: the test shows nothing`);
});
