/**
 * K030–K046: lists, versions, pages, selectors, watches.
 */
import assert from "node:assert/strict";
import http2 from "node:http2";
import { after, before, describe, test } from "node:test";
import { at } from "@kontinuum/std";
import { WebSocket } from "ws";
import { start, waitFor } from "../services/service.ts";
import { findKubectl } from "../services/kubernetes-tools.ts";
import { adminToken, Cluster, configMap, deployment, skip, widget, widgets } from "./cluster.ts";

const listOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;
const merge = "application/merge-patch+json";

function names(answer: { at(...path: (string | number)[]): unknown }): string[] {
  const items = answer.at("items");
  return Array.isArray(items) ? items.map((item: unknown) => String(at(item, "metadata", "name"))) : [];
}

describe("lists and watches", { skip }, () => {
  let c: Cluster;
  before(async () => {
    c = await Cluster.start();
    await c.ok(["apply", "-f", "-"], widgets);
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.example.io"]);
  });
  after(() => c.stop());

  /** A namespace without the ConfigMap every namespace gets, so that counts are exact. */
  async function empty(name: string): Promise<string> {
    await c.namespace(name);
    await waitFor("the namespace's contents", async () => names(await c.ask("GET", listOf(name))).length > 0);
    return listOf(name);
  }

  const own = "metadata.name!=kube-root-ca.crt";

  test("K030 pages of one snapshot", async () => {
    const url = await empty("kt30");
    // Before "kube-root-ca.crt" in order, so that the standard object is the last one.
    for (let i = 0; i < 4; i++) await c.ask("POST", url, { body: configMap(`a${i}`) });
    let token = "";
    const seen: string[] = [];
    const remaining: unknown[] = [];
    const versions = new Set<unknown>();
    for (let page = 0; page < 3; page++) {
      const answer = await c.ask("GET", `${url}?limit=2${token === "" ? "" : `&continue=${token}`}`);
      seen.push(...names(answer));
      remaining.push(answer.at("metadata", "remainingItemCount"));
      versions.add(answer.at("metadata", "resourceVersion"));
      token = String(answer.at("metadata", "continue") ?? "");
      if (page === 0) await c.ask("POST", url, { body: configMap("a9") });
    }
    assert.deepEqual(seen, ["a0", "a1", "a2", "a3", "kube-root-ca.crt"]);
    assert.deepEqual(remaining, [3, 1, undefined]);
    assert.equal(versions.size, 1);
    assert.equal(token, "");
  });

  test("K031 label selectors", async () => {
    const url = await empty("kt31");
    const sets: Record<string, Record<string, string>> = {
      a: { env: "a" },
      b: { env: "b" },
      g: { env: "a", gone: "x" },
      e: { env: "" },
      none: {},
    };
    for (const [name, labels] of Object.entries(sets))
      await c.ask("POST", url, { body: configMap(name, {}, { labels }) });
    const select = async (selector: string): Promise<string> => {
      const out = await c.ok([
        "-n",
        "kt31",
        "get",
        "cm",
        "-l",
        selector,
        "--field-selector",
        own,
        "-o",
        "jsonpath={.items[*].metadata.name}",
      ]);
      return out;
    };
    assert.equal(await select("env in (a,b),!gone"), "a b");
    assert.equal(await select("env notin (a)"), "b e none");
    assert.equal(await select("env!=a"), "b e none");
    assert.equal(await select("env="), "e");
  });

  test("K032 field selectors", async () => {
    const url = await empty("kt32");
    for (const name of ["a", "b"]) await c.ask("POST", url, { body: configMap(name) });
    assert.equal(
      await c.ok(["-n", "kt32", "get", "cm", "--field-selector", "metadata.name=a", "-o", "name"]),
      "configmap/a\n",
    );
    const unknown = await c.ask("GET", `${url}?fieldSelector=data%3Dx`);
    assert.equal(unknown.status, 400);
    assert.match(unknown.text, /is not a known field selector/);
    assert.match(
      (await c.k(["get", "pods", "--field-selector", "spec.x=1"])).stderr,
      /field label not supported: spec\.x/,
    );
    assert.match((await c.k(["get", "pods", "-l", "a in b"])).stderr, /unable to parse requirement/);
  });

  test("K033 a version from the future", async () => {
    const now = Number((await c.ask("GET", "/api/v1/configmaps")).at("metadata", "resourceVersion"));
    const answer = await c.ask("GET", `/api/v1/configmaps?resourceVersion=${now + 1e9}`);
    assert.equal(answer.status, 504);
    assert.equal(answer.at("details", "causes", 0, "reason"), "ResourceVersionTooLarge");
    assert.equal(answer.headers["retry-after"], "1");
  });

  test("K034 wrong options", async () => {
    assert.equal((await c.ask("GET", "/api/v1/configmaps?resourceVersionMatch=Exact")).status, 422);
    assert.equal((await c.ask("GET", "/api/v1/configmaps?continue=zzz")).status, 400);
    assert.ok([400, 422].includes((await c.ask("GET", "/api/v1/configmaps?resourceVersion=abc")).status));
  });

  test("K035 empty lists", async () => {
    for (const url of [
      "/api/v1/namespaces/nowhere/configmaps",
      "/apis/example.io/v1/namespaces/nowhere/widgets",
      "/apis/example.io/v1/widgets",
    ]) {
      assert.match((await c.ask("GET", url)).text, /"items":\[\]/);
    }
  });

  test("K036 kubectl get -w", async () => {
    const url = await empty("kt36");
    const kubectl = await findKubectl();
    assert.ok(typeof kubectl === "string");
    const watching = start(
      kubectl,
      ["-n", "kt36", "get", "cm", "-w", "--output-watch-events", "--field-selector", own],
      { env: c.env },
    );
    try {
      await c.ask("POST", url, { body: configMap("a") });
      await waitFor("ADDED", () => /ADDED\s+a /.test(watching.output()));
      await c.ask("PATCH", `${url}/a`, { type: merge, body: { metadata: { labels: { x: "y" } } } });
      await waitFor("MODIFIED", () => /MODIFIED\s+a /.test(watching.output()));
      await c.ask("DELETE", `${url}/a`);
      await waitFor("DELETED", () => /DELETED\s+a /.test(watching.output()));
      assert.equal(watching.output().match(/EVENT/g)?.length, 1);
    } finally {
      await watching.stop();
    }
  });

  test("K037 selector transitions", async () => {
    const url = await empty("kt37");
    await c.ask("POST", url, { body: configMap("a") });
    const watch = await c.watch(`${url}?watch=1&labelSelector=a%3Db`);
    const patch = (body: unknown): Promise<unknown> => c.ask("PATCH", `${url}/a`, { type: merge, body });
    await patch({ metadata: { labels: { a: "b" } } });
    await patch({ data: { k: "1" } });
    await patch({ metadata: { labels: { a: null } } });
    await patch({ data: { k: "2" } });
    await patch({ metadata: { labels: { a: "b" } } });
    await waitFor("four events", () => watch.events.length >= 4);
    assert.deepEqual(
      watch.events.map(({ type }) => type),
      ["ADDED", "MODIFIED", "DELETED", "ADDED"],
    );
    const gone = watch.events[2]?.object;
    assert.equal(at(gone, "metadata", "labels", "a"), "b");
    assert.ok(
      Number(at(gone, "metadata", "resourceVersion")) >
        Number(at(watch.events[1]?.object, "metadata", "resourceVersion")),
    );
    watch.close();
  });

  test("K038 watch-list", async () => {
    const url = await empty("kt38");
    for (const name of ["a", "b"]) await c.ask("POST", url, { body: configMap(name) });
    const query =
      "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const watch = await c.watch(`${url}?${query}&fieldSelector=${encodeURIComponent(own)}`);
    await watch.next(({ type }) => type === "BOOKMARK", 1000);
    assert.deepEqual(
      watch.events.map(({ type }) => type),
      ["ADDED", "ADDED", "BOOKMARK"],
    );
    assert.equal(at(watch.events[2]?.object, "metadata", "annotations", "k8s.io/initial-events-end"), "true");
    watch.close();
    const none = await c.watch(`${listOf("nowhere")}?${query}`);
    await none.next(({ type }) => type === "BOOKMARK", 1000);
    assert.equal(none.events.length, 1);
    none.close();
    assert.equal((await c.ask("GET", `${url}?watch=true&sendInitialEvents=true`)).status, 422);
  });

  test("K040 timeoutSeconds ends a watch", async () => {
    const watch = await c.watch(`${listOf("default")}?watch=1&timeoutSeconds=1`);
    await waitFor("the end", () => watch.ended, 3000);
    assert.ok(!watch.events.some(({ type }) => type === "ERROR"));
  });

  test("K041 compacted history", async () => {
    const url = await empty("kt41");
    const old = Number(
      (await c.ask("POST", url, { body: configMap("a") })).at("metadata", "resourceVersion"),
    );
    for (let i = 0; i < 3; i++)
      await c.ask("PATCH", `${url}/a`, { type: merge, body: { data: { i: String(i) } } });
    // A second server on the same store has no memory of the past: only the store can say.
    await c.store.compact(await c.store.revision());
    const other = await Cluster.start({ storage: c.store });
    try {
      const watch = await other.watch(`${url}?watch=1&resourceVersion=${old}`);
      if (watch.status !== 410) {
        const error = await watch.next(({ type }) => type === "ERROR");
        assert.equal(at(error.object, "code"), 410);
        assert.equal(at(error.object, "reason"), "Expired");
        assert.equal(watch.events.length, 1);
      }
      watch.close();
    } finally {
      await other.server.stop(2000);
    }
  });

  test("K042 kubectl wait", async () => {
    const url = await empty("kt42");
    const n = ["-n", "kt42"];
    await c.ask("POST", url, { body: configMap("a") });
    const waiting = c.ok([...n, "wait", "--for=jsonpath={.data.k}=v", "cm/a", "--timeout=30s"]);
    await c.ask("PATCH", `${url}/a`, { type: merge, body: { data: { k: "v" } } });
    await waiting;
    const gone = c.ok([...n, "wait", "--for=delete", "cm/a", "--timeout=30s"]);
    await c.ask("DELETE", `${url}/a`);
    await gone;
    const made = c.ok([...n, "wait", "--for=create", "cm/new", "--timeout=30s"]);
    await c.ask("POST", url, { body: configMap("new") });
    await made;
  });

  test("K043 rollout status", async () => {
    await empty("kt43");
    const url = "/apis/apps/v1/namespaces/kt43/deployments";
    await c.ask("POST", url, { body: deployment("d") });
    const status = {
      observedGeneration: 1,
      replicas: 1,
      updatedReplicas: 1,
      readyReplicas: 1,
      availableReplicas: 1,
    };
    await c.ask("PATCH", `${url}/d/status`, { type: merge, body: { status } });
    assert.match(
      await c.ok(["-n", "kt43", "rollout", "status", "deploy/d", "--timeout=20s"]),
      /successfully rolled out/,
    );
  });

  test("K044 ten writers, one watch", async () => {
    const url = await empty("kt44");
    for (let i = 0; i < 50; i++) await c.ask("POST", url, { body: configMap(`o${i}`) });
    const from = String((await c.ask("GET", url)).at("metadata", "resourceVersion"));
    const watch = await c.watch(`${url}?watch=1&resourceVersion=${from}`);
    const acknowledged = new Set<string>();
    await Promise.all(
      Array.from({ length: 10 }, async (_, writer) => {
        for (let i = 0; i < 100; i++) {
          const answer = await c.ask("PATCH", `${url}/o${(writer * 100 + i) % 50}`, {
            type: merge,
            body: { data: { [`w${writer}`]: String(i) } },
          });
          assert.equal(answer.status, 200);
          acknowledged.add(String(answer.at("metadata", "resourceVersion")));
        }
      }),
    );
    await waitFor("a thousand events", () => watch.events.length >= 1000);
    assert.equal(acknowledged.size, 1000);
    const versions = watch.events.map(({ object }) => Number(at(object, "metadata", "resourceVersion")));
    assert.equal(versions.length, 1000);
    for (let i = 1; i < versions.length; i++) assert.ok((versions[i] ?? 0) > (versions[i - 1] ?? 0));
    for (const version of versions) assert.ok(acknowledged.has(String(version)));
    const last = new Map(
      watch.events.map(({ object }) => [String(at(object, "metadata", "name")), at(object, "data")]),
    );
    const items = (await c.ask("GET", url)).at("items");
    assert.ok(Array.isArray(items));
    for (const item of items as unknown[]) {
      const name = String(at(item, "metadata", "name"));
      if (last.has(name)) assert.deepEqual(at(item, "data"), last.get(name));
    }
    watch.close();
  });

  test("K045 eighty watches and a large list on one connection", async () => {
    const url = await empty("kt45");
    for (let i = 0; i < 500; i += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, j) => c.ask("POST", url, { body: configMap(`o${i + j}`) })),
      );
    }
    const session = http2.connect(c.server.url, { ca: c.ca });
    try {
      let events = 0;
      const headers = { authorization: `Bearer ${adminToken}` };
      const from = String((await c.ask("GET", url)).at("metadata", "resourceVersion"));
      let open = 0;
      for (let i = 0; i < 80; i++) {
        const stream = session.request({ ":path": `${url}?watch=1&resourceVersion=${from}`, ...headers });
        stream.on("response", () => open++);
        stream.on("data", () => events++);
      }
      let listed = 0;
      const list = session.request({ ":path": url, ...headers });
      list.on("data", (chunk: Buffer) => (listed += chunk.length));
      const done = new Promise((resolve) => list.on("end", resolve));
      await waitFor("all watches", () => open === 80);
      await done;
      assert.ok(listed > 50_000);
      const began = performance.now();
      await c.ask("POST", url, { body: configMap("written") });
      await waitFor("every watch", () => events >= 80);
      assert.ok(performance.now() - began < 1000);
    } finally {
      session.destroy();
    }
  });

  test("K046 WebSocket watch", async () => {
    const url = await empty("kt46");
    const address = `${c.server.url.replace("https", "wss")}${url}?watch=true`;
    const protocols = (token: string): string[] => [
      "base64.binary.k8s.io",
      `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`,
    ];
    const socket = new WebSocket(address, protocols(adminToken), { ca: c.ca });
    const frames: { text: string; binary: boolean }[] = [];
    socket.on("message", (data: Buffer, binary) => frames.push({ text: data.toString(), binary }));
    await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
    assert.equal(socket.protocol, "base64.binary.k8s.io");
    await c.ask("POST", url, { body: configMap("a") });
    await waitFor("a frame", () => frames.some(({ text }) => text.includes('"name":"a"')));
    for (const { text, binary } of frames) {
      assert.equal(binary, false);
      assert.equal(typeof at(JSON.parse(text), "type"), "string");
    }
    socket.terminate();
    const wrong = new WebSocket(address, protocols("wrong"), { ca: c.ca });
    const status = await new Promise((resolve) =>
      wrong
        .on("unexpected-response", (_request, response) => resolve(response.statusCode))
        .on("error", () => resolve(0)),
    );
    assert.equal(status, 401);
    wrong.terminate();
  });

  test("custom objects are watched in another version", async () => {
    await empty("kt47");
    const watch = await c.watch("/apis/example.io/v1beta1/namespaces/kt47/widgets?watch=1");
    await c.ask("POST", "/apis/example.io/v1/namespaces/kt47/widgets", { body: widget("w") });
    const event = await watch.next(({ type }) => type === "ADDED");
    assert.equal(at(event.object, "apiVersion"), "example.io/v1beta1");
    watch.close();
  });
});
