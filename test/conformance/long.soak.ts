/**
 * The long checks: K039 (bookmarks of an idle watch), K065 fifty times, K083 (an informer through restarts of the
 * server). `SOAK_SECONDS` shortens the last one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CoreV1Api, KubeConfig, makeInformer, type V1ConfigMap } from "@kubernetes/client-node";
import { at, systemEdges } from "@kontinuum/std";
import { createServer, staticTokens } from "@kontinuum/kapi";
import { openStore } from "@kontinuum/storage";
import { waitFor } from "../services/service.ts";
import { adminToken, Cluster, configMap, selfSigned, widget, widgets } from "./cluster.ts";

const seconds = Number(process.env["SOAK_SECONDS"] ?? 600);

test("K039 an idle watch gets bookmarks only when it asks for them", async () => {
  const c = await Cluster.start();
  try {
    const url = "/api/v1/namespaces/default/configmaps?watch=1";
    const asked = await c.watch(`${url}&allowWatchBookmarks=true`);
    const plain = await c.watch(url);
    await waitFor("a bookmark", () => asked.events.some(({ type }) => type === "BOOKMARK"), 130_000);
    const mark = asked.events.find(({ type }) => type === "BOOKMARK");
    assert.deepEqual(Object.keys(mark?.object ?? {}).sort(), ["apiVersion", "kind", "metadata"]);
    assert.ok(!plain.events.some(({ type }) => type === "BOOKMARK"));
    asked.close();
    plain.close();
  } finally {
    await c.stop();
  }
});

test("K065 fifty rounds of a definition", async () => {
  const c = await Cluster.start();
  try {
    for (let round = 0; round < 50; round++) {
      await c.ok(["apply", "-f", "-"], widgets);
      await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.example.io"]);
      await c.ok(["create", "-f", "-"], JSON.stringify(widget("w")));
      await c.ok(["delete", "crd", "widgets.example.io"]);
    }
  } finally {
    await c.stop();
  }
});

test("K083 an informer misses nothing through restarts", { timeout: (seconds + 120) * 1000 }, async () => {
  const edges = systemEdges();
  const tls = await selfSigned();
  const store = await openStore("memory://", edges);
  let port = 0;
  const begin = async () => {
    const server = createServer({
      storage: store,
      edges,
      auth: {
        authenticators: [
          staticTokens([{ token: adminToken, user: { name: "admin", groups: ["system:masters"] } }]),
        ],
        authorizers: [],
      },
      listen: { port, tls },
    });
    await server.start();
    port = server.port;
    return server;
  };
  let server = await begin();
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "c", server: server.url, caData: Buffer.from(tls.cert).toString("base64"), skipTLSVerify: false },
    { name: "u", token: adminToken },
  );
  const api = config.makeApiClient(CoreV1Api);
  let lists = 0;
  const seen = new Map<string, string>();
  const informer = makeInformer<V1ConfigMap>(config, "/api/v1/namespaces/default/configmaps", () => {
    lists++;
    return api.listNamespacedConfigMap({ namespace: "default" });
  });
  for (const verb of ["add", "update"] as const)
    informer.on(verb, (object) => void seen.set(object.metadata?.name ?? "", object.data?.["k"] ?? ""));
  informer.on("delete", (object) => void seen.delete(object.metadata?.name ?? ""));
  informer.on("error", () => {
    const timer = setTimeout(() => void informer.start(), 200);
    timer.unref();
  });
  await informer.start();
  const wanted = new Map<string, string>();
  const until = performance.now() + seconds * 1000;
  for (let round = 0; performance.now() < until; round++) {
    const transport = server.transport(server.loopback);
    for (let i = 0; i < 100; i++) {
      const name = `o${(round * 37 + i) % 1000}`;
      const known = wanted.has(name);
      const response = await transport({
        method: known ? "PATCH" : "POST",
        path: `/api/v1/namespaces/default/configmaps${known ? `/${name}` : ""}`,
        headers: { "content-type": known ? "application/merge-patch+json" : "application/json" },
        body: JSON.stringify(
          known ? { data: { k: `${round}-${i}` } } : configMap(name, { k: `${round}-${i}` }),
        ),
      });
      for await (const chunk of response.body) at(chunk, 0);
      assert.ok(response.status < 300);
      wanted.set(name, `${round}-${i}`);
    }
    await waitFor(
      "the informer to catch up",
      () => [...wanted].every(([name, value]) => seen.get(name) === value),
      60_000,
    );
    if (round % 20 === 10) {
      await server.stop(5000);
      server = await begin();
    }
  }
  assert.ok(lists < 100, `listed ${lists} times`);
  await informer.stop();
  await server.stop(5000);
  await store.close();
});
