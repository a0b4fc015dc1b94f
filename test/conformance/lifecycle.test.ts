/**
 * K073–K075, K078–K080, K084: namespaces, owners, access, tokens, events.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { at } from "@kontinuum/std";
import { waitFor } from "../services/service.ts";
import { Cluster, configMap, deployment, skip, widget, widgets } from "./cluster.ts";

const merge = "application/merge-patch+json";

describe("lifecycle and access", { skip }, () => {
  let c: Cluster;
  before(async () => {
    c = await Cluster.start({ eventTtlSeconds: 2 });
    await c.ok(["apply", "-f", "-"], widgets);
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.example.io"]);
    await c.namespace("kt");
  });
  after(() => c.stop());

  test("K073 deleting a namespace", async () => {
    await c.namespace("kt2");
    for (let i = 0; i < 20; i++)
      await c.ask("POST", "/api/v1/namespaces/kt2/configmaps", { body: configMap(`a${i}`) });
    await c.ask("POST", "/apis/example.io/v1/namespaces/kt2/widgets", { body: widget("w") });
    await c.ask("POST", "/apis/apps/v1/namespaces/kt2/deployments", { body: deployment("d") });
    await c.ask("POST", "/api/v1/namespaces/kt2/configmaps", {
      body: configMap("held", {}, { finalizers: ["example.io/f"] }),
    });
    await c.ok(["delete", "ns", "kt2", "--wait=false"]);
    const refused = await c.ask("POST", "/api/v1/namespaces/kt2/configmaps", { body: configMap("late") });
    assert.equal(refused.status, 403);
    assert.match(refused.text, /because it is being terminated/);
    assert.equal(refused.at("details", "causes", 0, "reason"), "NamespaceTerminating");
    await waitFor("the reason", async () =>
      (await c.ask("GET", "/api/v1/namespaces/kt2")).text.includes("example.io/f in 1 resource instances"),
    );
    await c.ask("PATCH", "/api/v1/namespaces/kt2/configmaps/held", {
      type: merge,
      body: { metadata: { finalizers: null } },
    });
    await waitFor(
      "the end",
      async () => (await c.ask("GET", "/api/v1/namespaces/kt2")).status === 404,
      15_000,
    );
    for (const key of [
      "/registry/configmaps/kt2/",
      "/registry/apps/deployments/kt2/",
      "/registry/example.io/widgets/kt2/",
    ]) {
      const { count } = await c.store.range({ key, end: `${key}\xff`, countOnly: true });
      assert.equal(count, 0, key);
    }
    await c.namespace("kt2");
    const names = (await c.ask("GET", "/api/v1/namespaces/kt2/configmaps?labelSelector=a")).at("items");
    assert.deepEqual(names, []);
  });

  test("a namespace's pods go before everything else", async () => {
    await c.namespace("ordered");
    const url = "/api/v1/namespaces/ordered";
    const pod = {
      metadata: { name: "p", finalizers: ["example.io/f"] },
      spec: { containers: [{ name: "c", image: "i" }] },
    };
    assert.equal((await c.ask("POST", `${url}/pods`, { body: pod })).status, 201);
    assert.equal((await c.ask("POST", `${url}/configmaps`, { body: configMap("kept") })).status, 201);
    await c.ok(["delete", "ns", "ordered", "--wait=false"]);
    await waitFor("the story", async () => {
      const conditions = (await c.ask("GET", url)).at("status", "conditions");
      return JSON.stringify(conditions ?? "").includes(
        "still remain in namespace: ordered for gvr: /v1, Resource=pods",
      );
    });
    assert.equal((await c.ask("GET", `${url}/configmaps/kept`)).status, 200);
    await c.ask("PATCH", `${url}/pods/p`, { type: merge, body: { metadata: { finalizers: null } } });
    await waitFor("the end", async () => (await c.ask("GET", url)).status === 404, 15_000);
  });

  test("K074 owners and dependents", async () => {
    const url = "/api/v1/namespaces/kt/configmaps";
    const family = async (name: string, blocking: boolean): Promise<string[]> => {
      const owner = await c.ask("POST", url, { body: configMap(name) });
      const children = [1, 2, 3].map((i) => `${name}-${i}`);
      for (const child of children) {
        const reference = {
          apiVersion: "v1",
          kind: "ConfigMap",
          name,
          uid: owner.at("metadata", "uid"),
          ...(blocking ? { blockOwnerDeletion: true } : {}),
        };
        await c.ask("POST", url, { body: configMap(child, {}, { ownerReferences: [reference] }) });
      }
      return children;
    };
    const gone = async (name: string): Promise<boolean> =>
      (await c.ask("GET", `${url}/${name}`)).status === 404;
    const background = await family("bg", false);
    await c.ok(["-n", "kt", "delete", "cm", "bg"]);
    for (const child of background) await waitFor(child, () => gone(child), 10_000);
    const orphans = await family("or", false);
    await c.ok(["-n", "kt", "delete", "cm", "or", "--cascade=orphan"]);
    for (const child of orphans) {
      const answer = await c.ask("GET", `${url}/${child}`);
      assert.equal(answer.status, 200);
      assert.equal(answer.at("metadata", "ownerReferences"), undefined);
    }
    const blocking = await family("fg", true);
    await c.ask("PATCH", `${url}/fg-1`, {
      type: merge,
      body: { metadata: { finalizers: ["example.io/f"] } },
    });
    await c.ok(["-n", "kt", "delete", "cm", "fg", "--cascade=foreground", "--wait=false"]);
    await waitFor("the free children", async () => (await gone("fg-2")) && (await gone("fg-3")), 10_000);
    assert.equal(await gone("fg"), false);
    await c.ask("PATCH", `${url}/fg-1`, { type: merge, body: { metadata: { finalizers: null } } });
    for (const name of [...blocking, "fg"]) await waitFor(name, () => gone(name), 10_000);
  });

  test("K074 owners in a circle do not hold each other up", async () => {
    const url = "/api/v1/namespaces/kt/configmaps";
    const uids = new Map<string, unknown>();
    const names = ["ring-1", "ring-2", "ring-3"];
    for (const name of names)
      uids.set(name, (await c.ask("POST", url, { body: configMap(name) })).at("metadata", "uid"));
    for (const [i, name] of names.entries()) {
      const owner = names[(i + 2) % 3] ?? "";
      const reference = {
        apiVersion: "v1",
        kind: "ConfigMap",
        name: owner,
        uid: uids.get(owner),
        controller: true,
        blockOwnerDeletion: true,
      };
      const body = { metadata: { ownerReferences: [reference] } };
      assert.equal((await c.ask("PATCH", `${url}/${name}`, { type: merge, body })).status, 200);
    }
    await c.ask("DELETE", `${url}/ring-1`, { body: { propagationPolicy: "Foreground" } });
    for (const name of names)
      await waitFor(name, async () => (await c.ask("GET", `${url}/${name}`)).status === 404, 10_000);
  });

  test("K074 a dependent of an owner that never was", async () => {
    const url = "/api/v1/namespaces/kt/configmaps";
    const reference = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "nobody",
      uid: "00000000-0000-4000-8000-000000000000",
    };
    await c.ask("POST", url, { body: configMap("lost", {}, { ownerReferences: [reference] }) });
    await waitFor("its end", async () => (await c.ask("GET", `${url}/lost`)).status === 404, 10_000);
  });

  test("K075 standard namespaces and their contents", async () => {
    assert.match((await c.k(["delete", "ns", "default"])).stderr, /this namespace may not be deleted/);
    await c.namespace("kt75");
    await waitFor(
      "the account",
      async () => (await c.ask("GET", "/api/v1/namespaces/kt75/serviceaccounts/default")).status === 200,
      3000,
    );
    await waitFor(
      "the certificates",
      async () => (await c.ask("GET", "/api/v1/namespaces/kt75/configmaps/kube-root-ca.crt")).status === 200,
      3000,
    );
    assert.equal(
      (await c.ask("GET", "/api/v1/namespaces/kt75")).at("metadata", "labels", "kubernetes.io/metadata.name"),
      "kt75",
    );
  });

  test("K078 whoami, can-i", async () => {
    assert.match(await c.ok(["auth", "whoami"]), /admin[\s\S]*system:masters/);
    assert.match(await c.ok(["auth", "can-i", "--list"]), /^\*\.\*\s+\[\]\s+\[\]\s+\[\*\]$/m);
    const before = await c.k(["auth", "can-i", "list", "cm", "--as=u", "-n", "kt"]);
    assert.equal(before.code, 1);
    assert.match(before.stdout, /^no/);
    await c.ok(["-n", "kt", "create", "rolebinding", "view-u", "--clusterrole=view", "--user=u"]);
    await waitFor(
      "yes",
      async () => (await c.k(["auth", "can-i", "list", "cm", "--as=u", "-n", "kt"])).stdout.startsWith("yes"),
      2000,
    );
    assert.match(await c.ok(["auth", "can-i", "--list", "--as=u", "-n", "kt"]), /configmaps/);
    assert.match(
      (await c.k(["get", "cm", "--as=u", "-n", "other"])).stderr,
      /User "u" cannot list resource "configmaps" in API group "" in the namespace "other"/,
    );
  });

  test("K079 nobody grants what they do not have", async () => {
    await c.ok(["-n", "kt", "create", "role", "roles-only", "--verb=create", "--resource=roles"]);
    await c.ok(["-n", "kt", "create", "rolebinding", "roles-only", "--role=roles-only", "--user=v"]);
    const refused = await c.k([
      "-n",
      "kt",
      "create",
      "role",
      "r",
      "--verb=get",
      "--resource=secrets",
      "--as=v",
    ]);
    assert.match(refused.stderr, /attempting to grant RBAC permissions not currently held/);
  });

  test("K080 tokens of service accounts", async () => {
    await c.ok(["-n", "kt", "create", "serviceaccount", "bot"]);
    const token = (await c.ok(["-n", "kt", "create", "token", "bot", "--duration=10m"])).trim();
    assert.equal(token.split(".").length, 3);
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
    const who = await c.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
      token,
      body: review,
    });
    assert.equal(who.at("status", "userInfo", "username"), "system:serviceaccount:kt:bot");
    assert.match(
      (await c.k(["-n", "kt", "create", "token", "bot", "--duration=1m"])).stderr,
      /may not specify a duration less than 10 minutes/,
    );
    await c.ok(["-n", "kt", "delete", "sa", "bot"]);
    await waitFor("401", async () => (await c.ask("GET", "/version", { token })).status === 401, 10_000);
  });

  test("K084 events expire", async () => {
    const url = "/api/v1/namespaces/kt/events";
    const event = {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: "e84" },
      involvedObject: { kind: "ConfigMap", namespace: "kt", name: "x", apiVersion: "v1" },
      reason: "Tested",
      message: "hello",
      type: "Normal",
      source: { component: "test" },
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
      count: 1,
    };
    const watch = await c.watch(`${url}?watch=1`);
    assert.equal((await c.ask("POST", url, { body: event })).status, 201);
    assert.match(await c.ok(["-n", "kt", "events"]), /Tested/);
    const other = await c.ask("GET", "/apis/events.k8s.io/v1/namespaces/kt/events/e84");
    assert.equal(other.at("note"), "hello");
    assert.equal(other.at("regarding", "name"), "x");
    const gone = await watch.next(
      ({ type, object }) => type === "DELETED" && at(object, "metadata", "name") === "e84",
      15_000,
    );
    assert.equal(gone.type, "DELETED");
    watch.close();
  });
});
