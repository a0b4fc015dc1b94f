import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import {
  Client,
  configMaps,
  customResourceDefinitions,
  kubeconfigTransport,
  secrets,
  services,
  type KubeObject,
  type Resource,
  type Service,
} from "@kontinuum/controller";
import { at, stringAt, systemEdges } from "@kontinuum/std";
import { isTrue } from "./kubernetes/conditions.ts";
import {
  customKind,
  daemonSets,
  deployments,
  endpointSlices,
  jobs,
  nodes,
  pods,
  statefulSets,
} from "./kubernetes/kinds.ts";
import type { PodProcess, PodRunner, RunnablePod } from "./kubernetes/pod-runner.ts";
import { isReady } from "./kubernetes/pod-set.ts";
import { eventually, freshAddressBase, instantTiming, startRack, TestCluster } from "./rack.fixture.ts";
import { SimulatedRack, type RackOptions } from "./rack.ts";

const edges = systemEdges();

async function boot(t: TestContext, options: Partial<RackOptions> = {}) {
  const rack = await startRack(t, options);
  return { rack, ...(await bootCluster(t, rack)) };
}

async function bootCluster(t: TestContext, rack: SimulatedRack) {
  const address = rack.nodes[0]?.spec.address ?? "";
  const cluster = await TestCluster.create(address);
  await cluster.apply(address, cluster.config("controlplane", "cp-1"));
  const admin = await cluster.admin(t, address);
  await eventually("bootstrap", () => admin.bootstrap({ timeoutMs: 2000 }));
  const client = await connect(t, await admin.kubeconfig());
  await eventually("a registered node", () => client.find(nodes, { name: "cp-1" }));
  return { cluster, admin, client };
}

async function connect(t: TestContext, kubeconfig: string): Promise<Client> {
  const transport = kubeconfigTransport(kubeconfig, { edges });
  t.after(() => transport.close());
  return new Client(transport, { edges });
}

const template = (app: string, more: object = {}) => ({
  metadata: { labels: { app } },
  spec: {
    containers: [
      { name: "main", image: `registry.example/${app}:1`, ports: [{ name: "http", containerPort: 8080 }] },
    ],
    ...more,
  },
});

const workload = (kind: string, name: string, spec: object) => ({
  apiVersion: kind === "Job" ? "batch/v1" : "apps/v1",
  kind,
  metadata: { name, namespace: "default" },
  spec: {
    ...(kind === "Job" ? {} : { selector: { matchLabels: { app: name } } }),
    template: template(name),
    ...spec,
  },
});

async function apply<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  object: KubeObject,
): Promise<T> {
  return client.apply(resource, object, { fieldManager: "test", force: true });
}

async function podsOf(client: Client, app: string) {
  const { items } = await client.list(pods, { namespace: "default", labels: { matchLabels: { app } } });
  return items;
}

test(
  "deployments roll, stateful sets count, daemon sets spread, jobs complete",
  { timeout: 90_000 },
  async (t) => {
    const { rack, cluster, client } = await boot(t, { machines: 3 });
    for (const [index, name] of ["w-1", "w-2"].entries()) {
      await cluster.apply(rack.nodes[index + 1]?.spec.address ?? "", cluster.config("worker", name));
    }
    await eventually("three nodes", async () => (await client.list(nodes)).items.length === 3);

    await apply(client, deployments, workload("Deployment", "web", { replicas: 2 }));
    await eventually(
      "two ready pods",
      async () => (await podsOf(client, "web")).filter(isReady).length === 2,
    );
    const addresses = (await podsOf(client, "web")).map(({ status }) => status?.podIP);
    assert.equal(new Set(addresses).size, 2, "each pod has an address of its own");
    const next = template("web", {});
    await apply(
      client,
      deployments,
      workload("Deployment", "web", {
        replicas: 3,
        template: { ...next, metadata: { labels: { app: "web", v: "2" } } },
      }),
    );
    await eventually("the roll-out", async () => {
      const all = await podsOf(client, "web");
      return all.length === 3 && all.every((pod) => isReady(pod) && pod.metadata.labels?.["v"] === "2");
    });
    await eventually("its status", async () => {
      const { status, metadata } = await client.get(deployments, { namespace: "default", name: "web" });
      return at(status, "updatedReplicas") === 3 && at(status, "observedGeneration") === metadata.generation;
    });

    await apply(client, statefulSets, workload("StatefulSet", "db", { replicas: 2, serviceName: "db" }));
    await eventually("db-0 and db-1", async () => {
      const all = await podsOf(client, "db");
      return (
        all
          .map(({ metadata }) => metadata.name)
          .sort()
          .join() === "db-0,db-1" && all.every(isReady)
      );
    });

    await apply(client, daemonSets, workload("DaemonSet", "agent", {}));
    await eventually("one agent per node", async () => {
      const all = (await podsOf(client, "agent")).filter(isReady);
      return new Set(all.map(({ spec }) => spec.nodeName)).size === 3 && all.length === 3;
    });

    await apply(
      client,
      jobs,
      workload("Job", "once", { completions: 2, template: template("once", { restartPolicy: "Never" }) }),
    );
    await eventually("completion", async () => {
      const job = await client.get(jobs, { namespace: "default", name: "once" });
      return job.status?.succeeded === 2 && isTrue(job.status.conditions, "Complete");
    });

    await client.delete(deployments, { namespace: "default", name: "web" }, { propagation: "Background" });
    await client.patch(
      statefulSets,
      { namespace: "default", name: "db" },
      { type: "merge", patch: { spec: { replicas: 1 } } },
    );
    await eventually("db-1 is gone", async () => (await podsOf(client, "db")).length === 1);

    await rack.nodes[2]?.powerOff();
    await eventually("the node is not ready", async () => {
      const node = await client.get(nodes, { name: "w-2" });
      return !isTrue(node.status?.conditions, "Ready");
    });
  },
);

test(
  "services find their pods; stand-ins answer for certificates, gateways and load balancers",
  { timeout: 60_000 },
  async (t) => {
    const { client, rack } = await boot(t);
    await apply(client, deployments, workload("Deployment", "web", { replicas: 1 }));
    const balanced: Service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace: "default" },
      spec: {
        type: "LoadBalancer",
        selector: { app: "web" },
        ports: [{ name: "http", port: 80, targetPort: "http" }],
      },
    };
    await apply(client, services, balanced);
    const slice = await eventually("a ready endpoint", async () => {
      const { items } = await client.list(endpointSlices, {
        namespace: "default",
        labels: { matchLabels: { "kubernetes.io/service-name": "web" } },
      });
      return items.find(({ endpoints }) => at(endpoints, 0, "conditions", "ready") === true);
    });
    assert.equal(slice.ports?.[0]?.port, 8080, "the named port of the pod");
    const [pod] = await podsOf(client, "web");
    assert.equal(at(slice.endpoints, 0, "addresses", 0), pod?.status?.podIP);
    const service = await eventually("an address", async () => {
      const found = await client.get(services, { namespace: "default", name: "web" });
      return found.status?.loadBalancer?.ingress?.[0] ? found : undefined;
    });
    assert.equal(service.status?.loadBalancer?.ingress?.[0]?.ip, rack.nodes[0]?.spec.address);

    const definition = (group: string, kind: string, plural: string) => ({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: {
        name: `${plural}.${group}`,
        annotations: { "api-approved.kubernetes.io": "unapproved, for a test" },
      },
      spec: {
        group,
        scope: "Namespaced",
        names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
            subresources: { status: {} },
          },
        ],
      },
    });
    await apply(
      client,
      customResourceDefinitions,
      definition("cert-manager.io", "Certificate", "certificates"),
    );
    await apply(
      client,
      customResourceDefinitions,
      definition("gateway.networking.k8s.io", "Gateway", "gateways"),
    );
    const certificates = customKind("cert-manager.io", "v1", "Certificate", "certificates");
    const gateways = customKind("gateway.networking.k8s.io", "v1", "Gateway", "gateways");
    const make = (kind: string, group: string, spec: object) => ({
      apiVersion: `${group}/v1`,
      kind,
      metadata: { name: "x", namespace: "default" },
      spec,
    });
    await eventually("the kinds", () =>
      apply(
        client,
        certificates,
        make("Certificate", "cert-manager.io", { secretName: "x-tls", dnsNames: ["a.example"] }),
      ),
    );
    await eventually("the kinds", () =>
      apply(
        client,
        gateways,
        make("Gateway", "gateway.networking.k8s.io", { listeners: [{ name: "https" }] }),
      ),
    );
    const ready = await eventually("a certificate", async () => {
      const { status } = await client.get(certificates, { namespace: "default", name: "x" });
      return stringAt(status, "conditions", 0, "status") === "True" ? status : undefined;
    });
    assert.match(stringAt(ready, "conditions", 0, "message") ?? "", /stand-in/);
    const secret = await client.get(secrets, { namespace: "default", name: "x-tls" });
    assert.match(Buffer.from(secret.data?.["tls.crt"] ?? "", "base64").toString(), /BEGIN CERTIFICATE/);
    await eventually("a programmed gateway", async () => {
      const { status } = await client.get(gateways, { namespace: "default", name: "x" });
      return stringAt(status, "addresses", 0, "value") === rack.nodes[0]?.spec.address;
    });
  },
);

/** A runner that runs nothing and remembers what it was given. */
class RecordingRunner implements PodRunner {
  readonly image = /^registry\.example\/zone:/;
  readonly started: RunnablePod[] = [];
  running = 0;
  readonly #ends: ((code: number) => void)[] = [];

  start(pod: RunnablePod): Promise<PodProcess> {
    this.started.push(pod);
    this.running++;
    const exited = Promise.withResolvers<{ code: number }>();
    let isOver = false;
    const end = (code: number): void => {
      if (isOver) return;
      isOver = true;
      this.running--;
      exited.resolve({ code });
    };
    this.#ends.push(end);
    return Promise.resolve({ exited: exited.promise, stop: () => Promise.resolve(end(0)) });
  }

  /** The last process ends by itself. */
  crash(code: number): void {
    this.#ends.at(-1)?.(code);
  }
}

const zone = (spec: object = {}) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "zone", namespace: "default" },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: "zone" } },
    template: {
      metadata: { labels: { app: "zone" } },
      spec: {
        containers: [
          {
            name: "zone",
            image: "registry.example/zone:v1",
            ports: [{ name: "http", containerPort: 8080 }],
            env: [
              { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
              { name: "GREETING", value: "hello $(NAME)" },
              { name: "KEY", valueFrom: { secretKeyRef: { name: "zone-env", key: "SECRET" } } },
            ],
            envFrom: [{ secretRef: { name: "zone-env" } }, { configMapRef: { name: "zone-env" } }],
            volumeMounts: [
              { name: "tmp", mountPath: "/tmp" },
              { name: "identity", mountPath: "/etc/identity", readOnly: true },
            ],
          },
        ],
        volumes: [
          { name: "tmp", emptyDir: {} },
          {
            name: "identity",
            secret: { secretName: "zone-identity", items: [{ key: "tls.key", path: "tls.key" }] },
          },
        ],
        ...spec,
      },
    },
  },
});

test(
  "a runner gets environment, mounts and an address, waits for what is missing, and is restarted",
  { timeout: 60_000 },
  async (t) => {
    const runner = new RecordingRunner();
    const { client, rack } = await boot(t, { runners: [runner] });
    await apply(client, deployments, zone());
    await eventually("the reason it waits", async () => {
      const [pod] = await podsOf(client, "zone");
      return (
        stringAt(pod?.status?.containerStatuses, 0, "state", "waiting", "reason") ===
        "CreateContainerConfigError"
      );
    });
    const metadata = (name: string) => ({ name, namespace: "default" });
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    await client.create(configMaps, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadata("zone-env"),
      data: { NAME: "zone" },
    });
    await client.create(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: metadata("zone-env"),
      data: { SECRET: base64("s3") },
    });
    await client.create(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: metadata("zone-identity"),
      data: { "tls.key": base64("k"), other: base64("o") },
    });
    await eventually("a start", () => runner.started.length === 1);
    const [given] = runner.started;
    assert.ok(given);
    const [pod] = await podsOf(client, "zone");
    assert.deepEqual(given.env, {
      NAME: "zone",
      SECRET: "s3",
      KEY: "s3",
      GREETING: "hello zone",
      POD_IP: given.address,
    });
    assert.equal(given.address, pod?.status?.podIP);
    assert.deepEqual(given.ports, [{ name: "http", port: 8080 }]);
    assert.equal((await stat(given.privateDir)).mode & 0o777, 0o700);
    const mounted = given.mounts["/etc/identity"] ?? "";
    assert.equal(await readFile(path.join(mounted, "tls.key"), "utf8"), "k");
    await assert.rejects(readFile(path.join(mounted, "other")), "only the listed keys");
    assert.ok(given.mounts["/tmp"]?.startsWith(given.privateDir));
    await eventually("a ready pod", async () => (await podsOf(client, "zone")).some(isReady));

    runner.crash(3);
    await eventually("back-off", async () => {
      const [failed] = await podsOf(client, "zone");
      return (
        stringAt(failed?.status?.containerStatuses, 0, "state", "waiting", "reason") === "CrashLoopBackOff"
      );
    });
    await eventually("a restart", () => runner.started.length === 2);
    await eventually("ready again", async () => (await podsOf(client, "zone")).some(isReady));

    await client.patch(
      deployments,
      { namespace: "default", name: "zone" },
      { type: "merge", patch: { spec: { replicas: 0 } } },
    );
    await eventually(
      "its end",
      async () => runner.running === 0 && (await podsOf(client, "zone")).length === 0,
    );
    await assert.rejects(stat(given.privateDir), "the private folder goes with the pod");
    await rack.close();
  },
);

test("a rack over the same folder goes on: node, objects and pods", { timeout: 60_000 }, async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "rack-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const runner = new RecordingRunner();
  const options: RackOptions = {
    machines: 1,
    edges,
    addressBase: freshAddressBase(),
    timing: instantTiming,
    statePath: folder,
    runners: [runner],
  };
  const first = await SimulatedRack.create(options);
  const { client, admin } = await bootCluster(t, first);
  const kubeconfig = await admin.kubeconfig();
  const metadata = { name: "zone-env", namespace: "default" };
  await client.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { NAME: "zone" } });
  await client.create(secrets, { apiVersion: "v1", kind: "Secret", metadata, data: { SECRET: "czM=" } });
  await client.create(secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...metadata, name: "zone-identity" },
    data: { "tls.key": "aw==" },
  });
  await apply(client, deployments, zone());
  await eventually("a ready pod", async () => (await podsOf(client, "zone")).some(isReady));
  const before = (await podsOf(client, "zone"))[0];
  await first.close();
  assert.equal(runner.running, 0);

  const second = await SimulatedRack.create(options);
  t.after(() => second.close());
  const again = await connect(t, kubeconfig);
  await eventually("the same pod, started again", () => runner.started.length === 2);
  await eventually("ready", async () => (await podsOf(again, "zone")).some(isReady));
  const after = (await podsOf(again, "zone"))[0];
  assert.equal(after?.metadata.uid, before?.metadata.uid);
  assert.equal(after?.status?.podIP, before?.status?.podIP);
  assert.equal(second.nodes[0]?.stage, "running");
  for (const file of ["machines/node-001.json"]) {
    assert.equal((await stat(path.join(folder, file))).mode & 0o777, 0o600);
  }
});
