/**
 * Addons: what is installed with which values, in which order, and what is made of helm's answers.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedClock } from "@kontinuum/std";
import { addon, cluster, holding } from "../objects.fixture.ts";
import { addonStatus } from "./addon.status.ts";
import { servedVersions } from "./addon.definitions.ts";
import { problemOf } from "./addon.health.ts";
import { decideRelease } from "./addon.helm-install.ts";
import { priorityOf, resolveAddon } from "./addon.resolve.ts";
import { chartValues, merge, valuesContext } from "./addon.values.ts";
import { blockedBy } from "./addon.waves.ts";
import { builtinAddons } from "./builtin-addons.ts";
import { chartDocuments } from "./chart-documents.ts";
import { redactHelmText } from "./helm.ts";

test("a built-in release brings its defaults, whatever the object is called", () => {
  const resolved = resolveAddon(addon("c-cilium", { releaseName: "cilium" }));
  assert.deepEqual(resolved.chart, { name: "cilium", repo: "https://helm.cilium.io", version: "1.20.1" });
  assert.deepEqual([resolved.namespace, resolved.method], ["kube-system", "HelmUpgradeInstall"]);
  assert.equal(resolveAddon(addon("gateway-api-crds")).method, "KubectlApply");
  assert.equal(priorityOf(addon("gateway-api-crds")), 50);
  assert.equal(priorityOf(addon("x", { lifecycle: { priority: 7 } })), 7);
  assert.equal(priorityOf(addon("x")), 100);
});

test("a chart of one's own needs an address and a namespace, and nothing that could be a flag", () => {
  const spec = { namespace: { name: "apps" } };
  const own = { ...spec, chart: { repo: "https://charts.example", name: "web", version: "1.0.0" } };
  assert.deepEqual(resolveAddon(addon("web", own)).chart, own.chart);
  assert.equal(
    resolveAddon(addon("web", { ...spec, chart: { name: "oci://reg.example/web" } })).chart.repo,
    undefined,
  );
  const refused: [object, RegExp][] = [
    [{ ...spec, chart: { name: "web" } }, /chart\.repo is required/],
    [{ chart: own.chart }, /namespace\.name is required/],
    [{ ...spec, chart: { ...own.chart, repo: "http://charts.example" } }, /not an https address/],
    [{ ...spec, chart: { ...own.chart, repo: "https://u:p@charts.example" } }, /not an https address/],
    [{ ...spec, chart: { ...own.chart, repo: "file:///etc" } }, /not an https address/],
    [{ ...spec, chart: { ...own.chart, name: "--post-renderer=x" } }, /neither a chart name/],
    [{ ...spec, chart: { ...own.chart, name: "../../etc" } }, /neither a chart name/],
    [{ ...spec, chart: { ...own.chart, version: "--x" } }, /not a version/],
    [{ ...own, namespace: { name: "A B" } }, /not a DNS label/],
    [{ ...own, releaseName: "-x" }, /not a DNS label/],
    [{ ...own, values: ["x"] }, /not a map/],
  ];
  for (const [bad, text] of refused) assert.throws(() => resolveAddon(addon("web", { ...bad })), text);
});

test("defaults are computed, the user's values are not, and maps merge", () => {
  const cilium = builtinAddons.find(({ release }) => release === "cilium");
  const values = (replicas: number, user = {}) =>
    chartValues(cilium?.values ?? {}, user, valuesContext(cluster("c"), replicas));
  assert.equal(values(1)["k8sServicePort"], 7445);
  assert.deepEqual(values(1)["operator"], { replicas: 1 });
  assert.deepEqual(values(3)["operator"], { replicas: 2 });
  assert.deepEqual(values(3, { operator: { replicas: { $cel: "1" } } })["operator"], {
    replicas: { $cel: "1" },
  });
  assert.throws(() => chartValues({ a: { $cel: "ctx.(" } }, {}, {}), /the expression "ctx\.\("/);
  assert.deepEqual(chartValues({ a: { $cel: "1", b: 2 } }, {}, {}), { a: { $cel: "1", b: 2 } });
  assert.deepEqual(merge({ a: { b: 1, c: [1, 2] }, d: 1 }, { a: { c: [3] }, d: null }), {
    a: { b: 1, c: [3] },
    d: null,
  });
  const hostile: unknown = JSON.parse('{"__proto__": {"polluted": true}}');
  merge({}, hostile as Record<string, unknown>);
  assert.equal(Object.hasOwn(Object.prototype, "polluted"), false);
});

test("a later wave waits for enabled earlier ones of its own cluster", () => {
  const first = addon("first", { lifecycle: { priority: 50 } });
  const own = addon("own");
  assert.deepEqual(blockedBy(own, [first, own]), ["first"]);
  assert.deepEqual(blockedBy(own, [addon("first", { lifecycle: { priority: 50 } }, holding("Ready"))]), []);
  assert.deepEqual(blockedBy(own, [addon("off", { lifecycle: { priority: 50 }, enabled: false })]), []);
  assert.deepEqual(blockedBy(own, [addon("same"), own]), []);
  assert.deepEqual(
    blockedBy(own, [addon("x", { lifecycle: { priority: 1 }, talosClusterRef: { name: "d" } })]),
    [],
  );
});

test("an unchanged release makes no new revision; a release left in the middle is recovered", () => {
  const release = { status: "deployed", revision: 3, description: "d", lastDeployed: "2026-01-01T00:00:00Z" };
  const now = Date.parse("2026-01-01T00:01:00Z");
  assert.equal(decideRelease(undefined, "d", now, 90_000), "upgrade");
  assert.equal(decideRelease(release, "d", now, 90_000), "unchanged");
  assert.equal(decideRelease(release, "other", now, 90_000), "upgrade");
  assert.equal(decideRelease({ ...release, status: "failed" }, "d", now, 90_000), "upgrade");
  const pending = { ...release, status: "pending-upgrade" };
  assert.equal(decideRelease(pending, "d", now, 90_000), "wait");
  assert.equal(decideRelease(pending, "d", now + 60_000, 90_000), "recover");
});

test("a cluster that can't be reached says nothing about the addon", () => {
  const clock = new SimulatedClock();
  const healthy = addonStatus(addon("x"), { reason: "Healthy", message: "" }, clock);
  const one = addon("x", {}, { status: healthy });
  const status = addonStatus(one, { reason: "ClusterUnreachable", message: "" }, clock);
  const [ready] = status?.conditions ?? [];
  assert.deepEqual([ready?.status, ready?.reason], ["Unknown", "ClusterUnreachable"]);
});

test("what helm prints loses credentials before anyone sees it", () => {
  const text = redactHelmText(
    "Error: Get https://user:hunter2@charts.example/index.yaml: token=abc123\n-----BEGIN KEY-----\nAAAA\n-----END KEY-----",
  );
  assert.doesNotMatch(text, /hunter2|abc123|AAAA|\n/);
  assert.match(text, /^Get https:\/\/charts\.example/);
});

test("documents of a chart: lists are opened, empty ones dropped, broken ones named", () => {
  const text = "---\n# nothing\n---\nkind: A\n---\nkind: List\nitems:\n  - kind: B\n  - kind: C\n";
  assert.deepEqual(
    chartDocuments(text).map(({ kind }) => kind),
    ["A", "B", "C"],
  );
  assert.throws(() => chartDocuments("a: [1"), /no valid YAML/);
  const versions = [
    { name: "v1", served: true },
    { name: "v1beta1", served: false },
  ];
  assert.deepEqual(servedVersions({ spec: { versions } }), ["v1"]);
});

test("pods: what is wrong is told, and what is fine is not", () => {
  const pod = (status: object) =>
    problemOf({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "p", namespace: "n" },
      status: { ...status },
    });
  assert.equal(pod({ phase: "Succeeded" }), undefined);
  assert.equal(pod({ phase: "Running", conditions: [{ type: "Ready", status: "True" }] }), undefined);
  assert.equal(pod({ phase: "Running" }), "pod n/p is not ready");
  const waiting = {
    phase: "Pending",
    conditions: [{ type: "PodScheduled", status: "False", message: "no node fits" }],
    initContainerStatuses: [
      { name: "init", restartCount: 2, state: { waiting: { reason: "CrashLoopBackOff" } } },
    ],
  };
  assert.equal(
    pod(waiting),
    "pod n/p is Pending; no node fits; init container init waits (CrashLoopBackOff), restarted 2 times",
  );
});
