/**
 * K061 (every kind's columns), K081 (helm), K083 (an informer of @kubernetes/client-node through a restart).
 */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { at } from "@kontinuum/std";
import { KubeConfig, CoreV1Api, makeInformer, type V1ConfigMap } from "@kubernetes/client-node";
import { run, waitFor } from "../services/service.ts";
import { findHelm } from "../services/kubernetes-tools.ts";
import { adminToken, Cluster, configMap, skip, widgets } from "./cluster.ts";

const meta = { name: "x61" };
const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "a", image: "i" }] } };
const selector = { matchLabels: { a: "b" } };

/** One object of each kind, with the header `-o wide` must print; the columns that only wide prints are marked. */
const kinds: readonly {
  readonly version: string;
  readonly kind: string;
  readonly body: object;
  readonly columns: string;
}[] = [
  {
    version: "v1",
    kind: "Pod",
    body: { spec: template.spec },
    columns: "NAME READY STATUS RESTARTS AGE IP* NODE* NOMINATED NODE* READINESS GATES*",
  },
  {
    version: "apps/v1",
    kind: "ReplicaSet",
    body: { spec: { selector, template } },
    columns: "NAME DESIRED CURRENT READY AGE CONTAINERS* IMAGES* SELECTOR*",
  },
  {
    version: "apps/v1",
    kind: "Deployment",
    body: { spec: { selector, template } },
    columns: "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS* IMAGES* SELECTOR*",
  },
  {
    version: "apps/v1",
    kind: "StatefulSet",
    body: { spec: { selector, template, serviceName: "s" } },
    columns: "NAME READY AGE CONTAINERS* IMAGES*",
  },
  {
    version: "apps/v1",
    kind: "DaemonSet",
    body: { spec: { selector, template } },
    columns:
      "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE CONTAINERS* IMAGES* SELECTOR*",
  },
  {
    version: "batch/v1",
    kind: "Job",
    body: { spec: { template: { spec: { ...template.spec, restartPolicy: "Never" } } } },
    columns: "NAME STATUS COMPLETIONS DURATION AGE CONTAINERS* IMAGES* SELECTOR*",
  },
  {
    version: "batch/v1",
    kind: "CronJob",
    body: {
      spec: {
        schedule: "* * * * *",
        jobTemplate: { spec: { template: { spec: { ...template.spec, restartPolicy: "Never" } } } },
      },
    },
    columns: "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE CONTAINERS* IMAGES* SELECTOR*",
  },
  {
    version: "v1",
    kind: "Service",
    body: { spec: { ports: [{ port: 80 }] } },
    columns: "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR*",
  },
  {
    version: "networking.k8s.io/v1",
    kind: "Ingress",
    body: { spec: { defaultBackend: { service: { name: "s", port: { number: 80 } } } } },
    columns: "NAME CLASS HOSTS ADDRESS PORTS AGE",
  },
  { version: "v1", kind: "Secret", body: {}, columns: "NAME TYPE DATA AGE" },
  { version: "v1", kind: "ConfigMap", body: {}, columns: "NAME DATA AGE" },
  { version: "v1", kind: "ServiceAccount", body: {}, columns: "NAME SECRETS AGE" },
  {
    version: "v1",
    kind: "PersistentVolumeClaim",
    body: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
    columns: "NAME STATUS VOLUME CAPACITY ACCESS MODES STORAGECLASS VOLUMEATTRIBUTESCLASS AGE VOLUMEMODE*",
  },
  {
    version: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    body: { spec: { podSelector: {} } },
    columns: "NAME POD-SELECTOR AGE",
  },
  {
    version: "policy/v1",
    kind: "PodDisruptionBudget",
    body: { spec: { selector } },
    columns: "NAME MIN AVAILABLE MAX UNAVAILABLE ALLOWED DISRUPTIONS AGE",
  },
  { version: "rbac.authorization.k8s.io/v1", kind: "Role", body: {}, columns: "NAME CREATED AT" },
  {
    version: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    body: { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" } },
    columns: "NAME ROLE AGE USERS* GROUPS* SERVICEACCOUNTS*",
  },
  { version: "coordination.k8s.io/v1", kind: "Lease", body: { spec: {} }, columns: "NAME HOLDER AGE" },
  {
    version: "v1",
    kind: "ResourceQuota",
    body: { spec: { hard: { pods: "1" } } },
    columns: "NAME REQUEST LIMIT AGE",
  },
  {
    version: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    body: {
      spec: { maxReplicas: 2, scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "x" } },
    },
    columns: "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS AGE",
  },
  {
    version: "storage.k8s.io/v1",
    kind: "StorageClass",
    body: { provisioner: "p" },
    columns: "NAME PROVISIONER RECLAIMPOLICY VOLUMEBINDINGMODE ALLOWVOLUMEEXPANSION AGE",
  },
  {
    version: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    body: { value: 1 },
    columns: "NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY",
  },
  {
    version: "v1",
    kind: "Node",
    body: {},
    columns:
      "NAME STATUS ROLES AGE VERSION INTERNAL-IP* EXTERNAL-IP* OS-IMAGE* KERNEL-VERSION* CONTAINER-RUNTIME*",
  },
];

/** Header cells: kubectl parts columns by at least three spaces. */
const header = (out: string): string => (out.split("\n")[0] ?? "").trim().split(/ {2,}/).join(" ");

describe("other clients", { skip }, () => {
  let c: Cluster;
  before(async () => {
    c = await Cluster.start();
    await c.namespace("kt");
  });
  after(() => c.stop());

  test("K061 columns", async () => {
    const list = {
      apiVersion: "v1",
      kind: "List",
      items: kinds.map(({ version, kind, body }) => ({ apiVersion: version, kind, metadata: meta, ...body })),
    };
    await c.ok(["-n", "kt", "create", "-f", "-"], JSON.stringify(list));
    await Promise.all(
      kinds.map(async ({ version, kind, columns }) => {
        const group = version.includes("/") ? `.${version.split("/").reverse().join(".")}` : "";
        const get = ["-n", "kt", "get", `${kind}${group}`, "x61"];
        const narrow = header(await c.ok(get));
        const wide = header(await c.ok([...get, "-o", "wide"]));
        const expected = columns.match(/[^*\s][^*]*?\*|\S+(?: (?!\S+\*)\S+)*/g) ?? [];
        assert.ok(expected.length > 0);
        assert.equal(wide.replaceAll(" ", ""), columns.replaceAll("*", "").replaceAll(" ", ""), kind);
        const starred = [
          "IP*",
          "NODE*",
          "NOMINATED NODE*",
          "READINESS GATES*",
          "CONTAINERS*",
          "IMAGES*",
          "SELECTOR*",
          "VOLUMEMODE*",
          "USERS*",
          "GROUPS*",
          "SERVICEACCOUNTS*",
          "INTERNAL-IP*",
          "EXTERNAL-IP*",
          "OS-IMAGE*",
          "KERNEL-VERSION*",
          "CONTAINER-RUNTIME*",
        ];
        let left = columns;
        for (const star of starred.toSorted((a, b) => b.length - a.length))
          left = left.replace(new RegExp(`(^| )${star.replace("*", "\\*")}`), "");
        assert.equal(narrow.replaceAll(" ", ""), left.replaceAll(" ", ""), kind);
      }),
    );
  });

  test("K081 helm", async () => {
    const helm = await findHelm();
    assert.ok(typeof helm === "string");
    const chart = path.join(c.folder, "chart");
    await mkdir(path.join(chart, "templates"), { recursive: true });
    await mkdir(path.join(chart, "crds"), { recursive: true });
    await writeFile(
      path.join(chart, "Chart.yaml"),
      "apiVersion: v2\nname: demo\nversion: 1.0.0\nkubeVersion: '>= 1.30.0-0'\n",
    );
    await writeFile(path.join(chart, "values.yaml"), "word: hello\n");
    await writeFile(path.join(chart, "crds", "widgets.yaml"), widgets);
    await writeFile(
      path.join(chart, "templates", "all.yaml"),
      `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-cm}
data: {word: {{ .Values.word | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-svc}
spec: {selector: {app: demo}, ports: [{port: 80}]}
---
apiVersion: example.io/v1
kind: Widget
metadata: {name: {{ .Release.Name }}-w}
spec: {size: s}
`,
    );
    const h = async (...args: string[]): Promise<string> => {
      const ran = await run(helm, ["-n", "kt", ...args], { env: c.env, timeoutMs: 60_000 });
      assert.equal(ran.code, 0, `helm ${args.join(" ")}: ${ran.stderr}`);
      return ran.stdout;
    };
    await h("install", "r1", chart, "--wait", "--timeout", "30s");
    assert.match(await h("list"), /r1\s+kt\s+1/);
    await h("upgrade", "r1", chart, "--set", "word=changed", "--wait", "--timeout", "30s");
    assert.equal(
      (await c.ask("GET", "/api/v1/namespaces/kt/configmaps/r1-cm")).at("data", "word"),
      "changed",
    );
    assert.match(await h("get", "values", "r1"), /word: changed/);
    await h("rollback", "r1", "1");
    const rolled = await c.ask("GET", "/api/v1/namespaces/kt/configmaps/r1-cm");
    assert.equal(rolled.at("data", "word"), "hello");
    const managed = rolled.at("metadata", "managedFields");
    assert.ok(Array.isArray(managed) && managed.some((entry: unknown) => at(entry, "manager") === "helm"));
    assert.match(await h("history", "r1"), /superseded[\s\S]*deployed/);
    await h("uninstall", "r1");
    for (const url of [
      "/api/v1/namespaces/kt/configmaps/r1-cm",
      "/api/v1/namespaces/kt/services/r1-svc",
      "/apis/example.io/v1/namespaces/kt/widgets/r1-w",
    ]) {
      assert.equal((await c.ask("GET", url)).status, 404, url);
    }
  });

  test("K083 an informer of client-node", async () => {
    const config = new KubeConfig();
    config.loadFromClusterAndUser(
      { name: "c", server: c.server.url, caData: Buffer.from(c.ca).toString("base64"), skipTLSVerify: false },
      { name: "u", token: adminToken },
    );
    const api = config.makeApiClient(CoreV1Api);
    const seen = new Map<string, string>();
    const informer = makeInformer<V1ConfigMap>(config, "/api/v1/namespaces/kt/configmaps", () =>
      api.listNamespacedConfigMap({ namespace: "kt" }),
    );
    for (const verb of ["add", "update"] as const)
      informer.on(verb, (object) => void seen.set(object.metadata?.name ?? "", object.data?.["k"] ?? ""));
    informer.on("delete", (object) => void seen.delete(object.metadata?.name ?? ""));
    await informer.start();
    try {
      for (let i = 0; i < 20; i++)
        await c.ask("POST", "/api/v1/namespaces/kt/configmaps", {
          body: configMap(`i${i}`, { k: String(i) }),
        });
      await waitFor("all objects", () =>
        Array.from({ length: 20 }, (_, i) => seen.get(`i${i}`) === String(i)).every(Boolean),
      );
      await c.ask("DELETE", "/api/v1/namespaces/kt/configmaps/i3");
      await waitFor("the deletion", () => !seen.has("i3"));
    } finally {
      await informer.stop();
    }
  });
});
