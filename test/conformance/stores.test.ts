/**
 * The checks that a store could break, on PostgreSQL and etcd, with two servers on each: what one writes the other
 * serves, watches and enforces.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { at, systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { findEtcd, startEtcd } from "../services/etcd.ts";
import { findPostgres, startPostgres } from "../services/postgres.ts";
import { skipUnless, waitFor, type Missing } from "../services/service.ts";
import { Cluster, configMap, selfSigned, widget, widgets } from "./cluster.ts";

const merge = "application/merge-patch+json";

interface Service {
  readonly url: string;
  stop(): Promise<void>;
}

const services: readonly {
  readonly name: string;
  readonly found: string | Missing;
  start(): Promise<Service>;
}[] = [
  { name: "etcd", found: await findEtcd(), start: startEtcd },
  { name: "postgres", found: await findPostgres(), start: () => startPostgres() },
];

for (const { name, found, start } of services) {
  describe(`two servers on ${name}`, { skip: skipUnless(found) }, () => {
    let service: Service;
    let a: Cluster;
    let b: Cluster;
    before(async () => {
      service = await start();
      // Servers of one store have one authority.
      const listen = { port: 0, tls: await selfSigned() };
      a = await Cluster.start({ eventTtlSeconds: 2, listen }, service.url);
      b = await Cluster.start({ eventTtlSeconds: 2, listen }, service.url);
      const made = await a.ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "kt" } } });
      assert.equal(made.status, 201);
    });
    after(async () => {
      await b.stop();
      await a.stop();
      await service.stop();
    });
    const url = "/api/v1/namespaces/kt/configmaps";

    test("a read on one server sees every write acknowledged by the other", async () => {
      for (let i = 0; i < 30; i++) {
        await a.ask("POST", url, { body: configMap(`r${i}`, { i: String(i) }) });
        assert.equal((await b.ask("GET", `${url}/r${i}`)).at("data", "i"), String(i));
        const patched = await b.ask("PATCH", `${url}/r${i}`, { type: merge, body: { data: { i: "b" } } });
        assert.equal(patched.status, 200);
        assert.equal((await a.ask("GET", `${url}/r${i}`)).at("data", "i"), "b");
      }
    });

    test("a watch on one sees the writes of both, once and in order", async () => {
      const from = String((await b.ask("GET", url)).at("metadata", "resourceVersion"));
      const watch = await b.watch(`${url}?watch=1&resourceVersion=${from}&labelSelector=w`);
      const writers = [a, b, a, b];
      await Promise.all(
        writers.map(async (server, lane) => {
          const made = await server.ask("POST", url, {
            body: configMap(`w${lane}`, {}, { labels: { w: "1" } }),
          });
          assert.equal(made.status, 201);
          for (let i = 0; i < 24; i++)
            await server.ask("PATCH", `${url}/w${lane}`, { type: merge, body: { data: { i: String(i) } } });
        }),
      );
      await waitFor("all events", () => watch.events.length >= 100);
      const versions = watch.events.map(({ object }) => Number(at(object, "metadata", "resourceVersion")));
      assert.equal(new Set(versions).size, 100);
      assert.deepEqual(
        versions,
        versions.toSorted((x, y) => x - y),
      );
      watch.close();
    });

    test("concurrent changes of one object are never lost", async () => {
      await a.ask("POST", url, { body: configMap("shared") });
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          (i % 2 === 0 ? a : b).ask("PATCH", `${url}/shared`, {
            type: merge,
            body: { metadata: { labels: { [`k${i}`]: "v" } } },
          }),
        ),
      );
      for (const answer of answers) assert.ok(answer.status === 200 || answer.status === 409, answer.text);
      const labels = (await a.ask("GET", `${url}/shared`)).at("metadata", "labels");
      assert.equal(
        Object.keys(labels as object).length,
        answers.filter(({ status }) => status === 200).length,
      );
    });

    test("pages are of one snapshot", async () => {
      const first = await a.ask("GET", `${url}?limit=3`);
      await b.ask("DELETE", `${url}/w0`);
      await b.ask("POST", url, { body: configMap("zz") });
      const rest = await b.ask("GET", `${url}?continue=${String(first.at("metadata", "continue"))}`);
      assert.equal(rest.status, 200, rest.text);
      assert.equal(rest.at("metadata", "resourceVersion"), first.at("metadata", "resourceVersion"));
      assert.match(rest.text, /"name":"w0"/);
      assert.doesNotMatch(rest.text, /"name":"zz"/);
    });

    test("a definition made on one is served by the other", async () => {
      const applied = await a.ask(
        "PATCH",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.io?fieldManager=t",
        { type: "application/apply-patch+yaml", body: widgets },
      );
      assert.equal(applied.status, 201, applied.text);
      const there = "/apis/example.io/v1/namespaces/kt/widgets";
      await waitFor(
        "the resource",
        async () => (await b.ask("POST", there, { body: widget("w") })).status === 201,
        5000,
      );
      // Each server begins to serve a definition in its own time: the one that took it may be the later.
      const size = await waitFor(
        "the resource on the server that took the definition",
        async () => (await a.ask("GET", `${there}/w`)).at("spec", "size"),
        5000,
      );
      assert.equal(size, "m");
    });

    test("events expire, also for watchers of the other server", async () => {
      const events = "/api/v1/namespaces/kt/events";
      const watch = await b.watch(`${events}?watch=1`);
      const body = {
        metadata: { name: "e" },
        involvedObject: { kind: "ConfigMap", namespace: "kt", name: "x" },
        reason: "R",
        type: "Normal",
      };
      assert.equal((await a.ask("POST", events, { body })).status, 201);
      await watch.next(
        ({ type, object }) => type === "DELETED" && at(object, "metadata", "name") === "e",
        20_000,
      );
      watch.close();
    });
  });
}

test("two servers that were given different authorities don't write certificates at each other without end", async () => {
  const storage = await openStore("memory://", systemEdges());
  const a = await Cluster.start({ storage });
  const b = await Cluster.start({ storage });
  try {
    let written = 0;
    const watch = storage.watch({ key: "/registry/configmaps/default/kube-root-ca.crt", startRevision: 1 });
    const counted = (async () => {
      for await (const { events } of watch) written += events.length;
    })();
    // One round of corrections takes a few milliseconds; this many requests take far longer.
    for (let i = 0; i < 100; i++) {
      const made = await a.ask("POST", "/api/v1/namespaces/default/configmaps", { body: configMap(`c${i}`) });
      assert.equal(made.status, 201, made.text);
    }
    await waitFor("the first certificates", () => written > 0);
    watch.close();
    await counted;
    assert.ok(written <= 3, `${written} writes`);
  } finally {
    await b.stop();
    await a.stop();
  }
});
