/**
 * K047–K060: patches, client-side and server-side apply.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { at, isObject } from "@kontinuum/std";
import { Cluster, configMap, deployment, skip, widget, widgets } from "./cluster.ts";

const cms = "/api/v1/namespaces/kt/configmaps";
const wgs = "/apis/example.io/v1/namespaces/kt/widgets";
const deploys = "/apis/apps/v1/namespaces/kt/deployments";
const jsonPatch = "application/json-patch+json";
const mergePatch = "application/merge-patch+json";
const strategicPatch = "application/strategic-merge-patch+json";
const applyPatch = "application/apply-patch+yaml";

describe("patches and apply", { skip }, () => {
  let c: Cluster;
  const n = ["-n", "kt"];
  before(async () => {
    c = await Cluster.start();
    await c.ok(["apply", "-f", "-"], widgets);
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.example.io"]);
    await c.namespace("kt");
  });
  after(() => c.stop());

  const apply = (url: string, manager: string, body: unknown, more = "") =>
    c.ask("PATCH", `${url}?fieldManager=${manager}${more}`, { type: applyPatch, body });
  const managers = (answer: { at(...path: (string | number)[]): unknown }): unknown[] => {
    const list = answer.at("metadata", "managedFields");
    return Array.isArray(list) ? list : [];
  };
  async function file(name: string, value: unknown): Promise<string> {
    const full = path.join(c.folder, name);
    await writeFile(full, typeof value === "string" ? value : JSON.stringify(value));
    return full;
  }

  test("K047 JSON patch", async () => {
    await c.ask("POST", cms, { body: configMap("a47", { k: "v" }) });
    const failed = await c.ask("PATCH", `${cms}/a47`, {
      type: jsonPatch,
      body: [
        { op: "test", path: "/data/k", value: "no" },
        { op: "remove", path: "/data/k" },
      ],
    });
    assert.equal(failed.status, 422);
    assert.equal((await c.ask("GET", `${cms}/a47`)).at("data", "k"), "v");
    const slash = await c.ask("PATCH", `${cms}/a47`, {
      type: jsonPatch,
      body: [{ op: "add", path: "/data/x~1y", value: "1" }],
    });
    assert.equal(slash.status, 422);
    const dot = await c.ask("PATCH", `${cms}/a47`, {
      type: jsonPatch,
      body: [{ op: "add", path: "/data/x.y", value: "1" }],
    });
    assert.equal(dot.status, 200);
  });

  test("K048 merge patch; no strategic patch of custom resources", async () => {
    await c.ask("POST", cms, { body: configMap("a48", { k: "v", l: "w" }) });
    const patched = await c.ask("PATCH", `${cms}/a48`, { type: mergePatch, body: { data: { k: null } } });
    assert.deepEqual(patched.at("data"), { l: "w" });
    await c.ask("POST", wgs, { body: widget("w48") });
    assert.equal(
      (await c.ask("PATCH", `${wgs}/w48`, { type: strategicPatch, body: { spec: {} } })).status,
      415,
    );
  });

  test("K049 strategic patch merges containers and environment", async () => {
    await c.ask("POST", deploys, { body: deployment("d49", ["a", "b"]) });
    await c.ok([...n, "set", "image", "deploy/d49", "b=img:2"]);
    const containers = (await c.ask("GET", `${deploys}/d49`)).at("spec", "template", "spec", "containers");
    assert.deepEqual(
      [at(containers, 0, "image"), at(containers, 1, "image"), at(containers, 0, "name")],
      ["img:1", "img:2", "a"],
    );
    await c.ok([...n, "set", "env", "deploy/d49", "-c", "a", "K=V"]);
    await c.ok([...n, "set", "env", "deploy/d49", "-c", "a", "L=W"]);
    const env = (await c.ask("GET", `${deploys}/d49`)).at("spec", "template", "spec", "containers", 0, "env");
    assert.deepEqual(env, [
      { name: "K", value: "V" },
      { name: "L", value: "W" },
    ]);
  });

  test("K050 client-side apply", async () => {
    const v1 = await file("k50-1.json", configMap("a50", { x: "1", y: "1" }));
    const v2 = await file("k50-2.json", configMap("a50", { x: "1" }));
    assert.match(await c.ok([...n, "apply", "-f", v1]), /created/);
    await c.ok([...n, "patch", "cm", "a50", "-p", '{"data":{"z":"1"}}']);
    assert.match(await c.ok([...n, "apply", "-f", v2]), /configured/);
    const applied = await c.ask("GET", `${cms}/a50`);
    assert.deepEqual(applied.at("data"), { x: "1", z: "1" });
    assert.match(await c.ok([...n, "apply", "-f", v2]), /unchanged/);
    assert.equal(
      (await c.ask("GET", `${cms}/a50`)).at("metadata", "resourceVersion"),
      applied.at("metadata", "resourceVersion"),
    );
  });

  test("K051 diff", async () => {
    const same = await file("k51.json", deployment("d51"));
    await c.ok([...n, "apply", "-f", same]);
    const none = await c.k([...n, "diff", "-f", same]);
    assert.equal(none.code, 0, none.stdout + none.stderr);
    assert.equal(none.stdout, "");
    const other = await file("k51b.json", deployment("d51", ["a"], { replicas: 4 }));
    const some = await c.k([...n, "diff", "-f", other]);
    assert.equal(some.code, 1);
    assert.match(some.stdout, /^\+\s+replicas: 4$/m);
    assert.equal((await c.ask("GET", `${deploys}/d51`)).at("spec", "replicas"), 1);
  });

  test("K052 edit", async () => {
    await c.ask("POST", cms, { body: configMap("a52", { k: "old" }) });
    const { run } = await import("../services/service.ts");
    const { findKubectl } = await import("../services/kubernetes-tools.ts");
    const kubectl = await findKubectl();
    assert.ok(typeof kubectl === "string");
    const edit = (target: string, script: string) =>
      run(kubectl, [...n, "edit", ...target.split(" ")], {
        env: { ...c.env, KUBE_EDITOR: `sed -i ${script}` },
      });
    const edited = await edit("cm a52", "s/old/new/");
    assert.match(edited.stdout, /edited/, edited.stderr);
    assert.equal((await c.ask("GET", `${cms}/a52`)).at("data", "k"), "new");
    await c.ask("POST", wgs, { body: widget("w52", { size: "s" }) });
    assert.match((await edit("wg w52", "s/size:\\ s/size:\\ m/")).stdout, /edited/);
    assert.equal((await c.ask("GET", `${wgs}/w52`)).at("spec", "size"), "m");
  });

  test("K053, K059 server-side apply", async () => {
    const manifest = await file("k53.json", deployment("d53"));
    await c.ok([...n, "apply", "--server-side", "-f", manifest]);
    const applied = await c.ask("GET", `${deploys}/d53`);
    const [entry, ...others] = managers(applied);
    assert.equal(others.length, 0);
    assert.deepEqual(
      [at(entry, "manager"), at(entry, "operation"), at(entry, "apiVersion"), at(entry, "fieldsType")],
      ["kubectl", "Apply", "apps/v1", "FieldsV1"],
    );
    const containers = at(entry, "fieldsV1", "f:spec", "f:template", "f:spec", "f:containers");
    assert.ok(isObject(containers) && 'k:{"name":"a"}' in containers);
    assert.equal(at(entry, "fieldsV1", "f:metadata", "f:name"), undefined);
    for (let i = 0; i < 5; i++) await c.ok([...n, "apply", "--server-side", "-f", manifest]);
    const again = await c.ask("GET", `${deploys}/d53`);
    assert.equal(again.at("metadata", "resourceVersion"), applied.at("metadata", "resourceVersion"));
    assert.deepEqual(managers(again), managers(applied));
  });

  test("K054 conflicts and force", async () => {
    const base = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "d54" } };
    await apply(`${deploys}/d54`, "m1", deployment("d54", ["a"], { replicas: 3 }));
    const refused = await apply(`${deploys}/d54`, "m2", { ...base, spec: { replicas: 5 } });
    assert.equal(refused.status, 409);
    assert.equal(refused.at("message"), 'Apply failed with 1 conflict: conflict with "m1": .spec.replicas');
    const forced = await apply(`${deploys}/d54`, "m2", { ...base, spec: { replicas: 5 } }, "&force=true");
    assert.equal(forced.at("spec", "replicas"), 5);
    const m1 = managers(forced).find((entry) => at(entry, "manager") === "m1");
    assert.equal(at(m1, "fieldsV1", "f:spec", "f:replicas"), undefined);
    await c.ask("PATCH", `${deploys}/d54?fieldManager=u`, {
      type: mergePatch,
      body: { spec: { replicas: 7 } },
    });
    const again = await apply(`${deploys}/d54`, "m2", { ...base, spec: { replicas: 5 } });
    assert.match(String(again.at("message")), /conflict with "u" using apps\/v1: \.spec\.replicas/);
  });

  test("K055 shared ownership", async () => {
    const of = (labels: Record<string, string>) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a55", labels },
    });
    await apply(`${cms}/a55`, "m1", of({ a: "1" }));
    await apply(`${cms}/a55`, "m2", of({ a: "1" }));
    assert.equal((await apply(`${cms}/a55`, "m1", of({}))).at("metadata", "labels", "a"), "1");
    assert.equal((await apply(`${cms}/a55`, "m2", of({}))).at("metadata", "labels", "a"), undefined);
  });

  test("K056 sets and keyed lists of custom resources", async () => {
    const of = (spec: unknown) => ({
      apiVersion: "example.io/v1",
      kind: "Widget",
      metadata: { name: "w56" },
      spec,
    });
    await apply(`${wgs}/w56`, "m1", of({ tags: ["x", "y"], ports: [{ name: "p" }] }));
    const both = await apply(
      `${wgs}/w56`,
      "m2",
      of({ tags: ["y", "z"], ports: [{ name: "q" }, { name: "p", protocol: "UDP" }] }),
    );
    assert.equal(both.status, 200, both.text);
    assert.deepEqual([...(both.at("spec", "tags") as string[])].sort(), ["x", "y", "z"]);
    assert.equal((both.at("spec", "ports") as unknown[]).length, 3);
    const less = await apply(`${wgs}/w56`, "m1", of({ ports: [{ name: "p" }] }));
    assert.deepEqual([...(less.at("spec", "tags") as string[])].sort(), ["y", "z"]);
    assert.equal((less.at("spec", "ports") as unknown[]).length, 3);
  });

  test("K057 from client-side to server-side apply", async () => {
    const v1 = await file("k57-1.json", configMap("a57", { x: "1", y: "1" }));
    await c.ok([...n, "apply", "-f", v1]);
    await c.ok([...n, "apply", "--server-side", "-f", v1]);
    const moved = await c.ask("GET", `${cms}/a57`);
    for (const entry of managers(moved)) {
      if (at(entry, "manager") === "kubectl-client-side-apply")
        assert.equal(at(entry, "fieldsV1", "f:data"), undefined);
    }
    const v2 = await file("k57-2.json", configMap("a57", { x: "1" }));
    await c.ok([...n, "apply", "--server-side", "-f", v2]);
    assert.deepEqual((await c.ask("GET", `${cms}/a57`)).at("data"), { x: "1" });
  });

  test("K058 apply of the status", async () => {
    await c.ask("POST", wgs, { body: widget("w58") });
    const manifest = await file("k58.json", { ...widget("w58", { replicas: 9 }), status: { replicas: 5 } });
    await c.ok([
      ...n,
      "apply",
      "--server-side",
      "--subresource=status",
      "--field-manager=ctl",
      "-f",
      manifest,
    ]);
    const applied = await c.ask("GET", `${wgs}/w58`);
    assert.equal(applied.at("status", "replicas"), 5);
    assert.equal(applied.at("spec", "replicas"), 1);
    assert.ok(
      managers(applied).some(
        (entry) => at(entry, "manager") === "ctl" && at(entry, "subresource") === "status",
      ),
    );
  });

  test("a scale that is applied is owned as such", async () => {
    await c.ask("POST", deploys, { body: deployment("d59") });
    const scale = {
      apiVersion: "autoscaling/v1",
      kind: "Scale",
      metadata: { name: "d59" },
      spec: { replicas: 4 },
    };
    const answer = await apply(`${deploys}/d59/scale`, "scaler", scale, "&force=true");
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.at("spec", "replicas"), 4);
    const parent = await c.ask("GET", `${deploys}/d59`);
    assert.equal(parent.at("spec", "replicas"), 4);
    const entry = managers(parent).find((item) => at(item, "manager") === "scaler");
    assert.deepEqual(
      [at(entry, "subresource"), at(entry, "apiVersion"), at(entry, "operation")],
      ["scale", "apps/v1", "Apply"],
    );
    const refused = await apply(`${deploys}/d59`, "gitops", {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "d59" },
      spec: { replicas: 2 },
    });
    assert.match(String(refused.at("message")), /conflict with "scaler" with subresource "scale"/);
  });

  test("K060 twenty labels at once", async () => {
    await c.ask("POST", cms, { body: configMap("a60") });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        c.ask("PATCH", `${cms}/a60`, {
          type: mergePatch,
          body: { metadata: { labels: { [`k${i}`]: "v" } } },
        }),
      ),
    );
    for (const answer of answers) assert.equal(answer.status, 200);
    assert.equal(
      Object.keys((await c.ask("GET", `${cms}/a60`)).at("metadata", "labels") as object).length,
      20,
    );
  });

  test("64-bit integers survive every path", async () => {
    const big =
      '{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"big"},"spec":{"max":9223372036854775807}}';
    const made = await c.ask("POST", wgs, { body: big });
    assert.match(made.text, /"max":9223372036854775807/);
    await c.ask("PATCH", `${wgs}/big`, { type: mergePatch, body: { spec: { replicas: 2 } } });
    await c.ask("PATCH", `${wgs}/big`, {
      type: jsonPatch,
      body: [{ op: "add", path: "/spec/size", value: "s" }],
    });
    await apply(
      `${wgs}/big`,
      "m",
      '{"apiVersion":"example.io/v1","kind":"Widget","metadata":{"name":"big"},"spec":{"free":{"n":-9223372036854775808}}}',
    );
    const text = (await c.ask("GET", `${wgs}/big`)).text;
    assert.match(text, /"max":9223372036854775807/);
    assert.match(text, /"n":-9223372036854775808/);
  });
});
