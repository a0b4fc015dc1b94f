/**
 * A cluster for storage set-ups: the real API server of this project, and a stand-in for the controllers and kubelets
 * that a real cluster would have. It reports workloads as available, Ceph as ready and drivers as registered, over the
 * same HTTP API as they would.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createServer, type ApiServer } from "@kontinuum/kapi";
import { at, stringAt, systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";

const lookEveryMs = 20;
/** Who has it may do everything in the cluster. */
export const clusterToken = "t0ken-of-the-cluster";

/** A running cluster. */
export interface ClusterFixture extends AsyncDisposable {
  readonly url: string;
  /** A kubeconfig that reaches it. */
  readonly kubeconfig: string;
  ask(method: string, path: string, body?: unknown): Promise<unknown>;
  /** Whether controllers act; false holds every set-up where it waits. */
  acting: boolean;
}

/** A certificate for 127.0.0.1 and its key, PEM. */
export interface ClusterTls {
  readonly cert: string;
  readonly key: string;
}

/** Starts an API server and the stand-in; files go to `folder`. */
export async function startCluster(folder: string, tls?: ClusterTls): Promise<ClusterFixture> {
  const store = await openStore("memory://", systemEdges());
  const server: ApiServer = createServer({
    storage: store,
    listen: { port: 0, ...(tls ? { tls } : {}) },
    auth: {
      authenticators: [
        {
          name: "token",
          authenticate: ({ bearer }) =>
            Promise.resolve(
              bearer === clusterToken ? { name: "kryton", groups: ["system:authenticated"] } : "invalid",
            ),
        },
      ],
      authorizers: [
        { authorize: () => Promise.resolve({ decision: "allow", reason: "a cluster of a test" }) },
      ],
    },
  });
  await server.start();
  const transport = server.transport(server.loopback);
  const ask = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const response = await transport({
      method,
      path,
      headers: { "content-type": type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body) chunks.push(chunk);
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  };
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(
    kubeconfig,
    JSON.stringify({
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      clusters: [{ name: "c", cluster: { server: server.url } }],
      users: [{ name: "u", user: { token: clusterToken } }],
    }),
  );
  const stop = new AbortController();
  const fixture: ClusterFixture = {
    url: server.url,
    kubeconfig,
    ask,
    acting: true,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await controllers;
      await server.stop(1_000);
      await store.close();
    },
  };
  const controllers = act(fixture, stop.signal);
  return fixture;
}

async function act(cluster: ClusterFixture, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (cluster.acting) await settle(cluster);
    await pause(lookEveryMs);
  }
}

async function settle({ ask }: ClusterFixture): Promise<void> {
  const items = async (path: string): Promise<readonly unknown[]> => {
    const found = at(await ask("GET", path), "items");
    return Array.isArray(found) ? found : [];
  };
  for (const plural of ["deployments", "daemonsets"]) {
    for (const item of await items(`/apis/apps/v1/${plural}`)) {
      const generation = at(item, "metadata", "generation");
      if (at(item, "status", "observedGeneration") === generation) continue;
      const path = `/apis/apps/v1/namespaces/${stringAt(item, "metadata", "namespace")}/${plural}/${stringAt(item, "metadata", "name")}`;
      const replicas = Number(at(item, "spec", "replicas") ?? 1);
      const counts =
        plural === "deployments"
          ? { replicas, availableReplicas: replicas, readyReplicas: replicas }
          : { desiredNumberScheduled: 1, numberReady: 1, currentNumberScheduled: 1, numberMisscheduled: 0 };
      await ask("PATCH", `${path}/status`, { status: { observedGeneration: generation, ...counts } });
      const driver = drivers[stringAt(item, "metadata", "name") ?? ""];
      if (driver !== undefined) await register(ask, driver);
    }
  }
  for (const plural of ["cephclusters", "cephblockpools"]) {
    for (const item of await items(`/apis/ceph.rook.io/v1/${plural}`)) {
      if (stringAt(item, "status", "phase") === "Ready") continue;
      const path = `/apis/ceph.rook.io/v1/namespaces/rook-ceph/${plural}/${stringAt(item, "metadata", "name")}`;
      await ask("PATCH", `${path}/status`, { status: { phase: "Ready" } });
    }
  }
}

/** Which workload registers which driver once it runs. */
const drivers: Readonly<Record<string, string>> = {
  "longhorn-driver-deployer": "driver.longhorn.io",
  "rook-ceph-operator": "rook-ceph.rbd.csi.ceph.com",
};

async function register(ask: ClusterFixture["ask"], name: string): Promise<void> {
  const driver = {
    apiVersion: "storage.k8s.io/v1",
    kind: "CSIDriver",
    metadata: { name },
    spec: { attachRequired: true },
  };
  await ask("POST", "/apis/storage.k8s.io/v1/csidrivers", driver);
}

/** Writes a folder of manifests as an operator would: small, but of the kinds that the real releases hold. */
export async function writeManifests(folder: string): Promise<void> {
  const files: Record<string, readonly object[]> = {
    "snapshot-controller/crds.yaml": [
      definition("snapshot.storage.k8s.io", "VolumeSnapshotClass", "volumesnapshotclasses", "Cluster"),
      definition("snapshot.storage.k8s.io", "VolumeSnapshotContent", "volumesnapshotcontents", "Cluster"),
      definition("snapshot.storage.k8s.io", "VolumeSnapshot", "volumesnapshots", "Namespaced"),
    ],
    "snapshot-controller/controller.yaml": [
      account("kube-system", "snapshot-controller"),
      deployment("kube-system", "snapshot-controller"),
    ],
    "longhorn/kustomization.yaml": [
      { apiVersion: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization", resources: ["longhorn.yaml"] },
    ],
    "longhorn/longhorn.yaml": [
      deployment("longhorn-system", "longhorn-driver-deployer"),
      daemonSet("longhorn-system", "longhorn-manager"),
      account("longhorn-system", "longhorn-service-account"),
      definition("longhorn.io", "Volume", "volumes", "Namespaced"),
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "longhorn-system" } },
    ],
    "rook-ceph/rook.yaml": [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "rook-ceph" } },
      definition("ceph.rook.io", "CephCluster", "cephclusters", "Namespaced"),
      definition("ceph.rook.io", "CephBlockPool", "cephblockpools", "Namespaced"),
      deployment("rook-ceph", "rook-ceph-operator"),
      {
        apiVersion: "ceph.rook.io/v1",
        kind: "CephCluster",
        metadata: { name: "rook-ceph", namespace: "rook-ceph" },
        spec: { cephVersion: { image: "registry.example/ceph@sha256:0" }, storage: { useAllDevices: true } },
      },
    ],
  };
  for (const [name, objects] of Object.entries(files)) {
    await mkdir(join(folder, name, ".."), { recursive: true });
    await writeFile(join(folder, name), objects.map((object) => `---\n${JSON.stringify(object)}\n`).join(""));
  }
}

/** A definition whose objects keep whatever fields they have. */
export function definition(group: string, kind: string, plural: string, scope: string): object {
  const version = group === "longhorn.io" ? "v1beta2" : "v1";
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      ...(group.endsWith("k8s.io")
        ? { annotations: { "api-approved.kubernetes.io": "unapproved, for tests" } }
        : {}),
    },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  };
}

function account(namespace: string, name: string): object {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } };
}

function workload(name: string): object {
  const labels = { app: name };
  const containers = [{ name: "main", image: `registry.example/${name}:v1` }];
  return { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } };
}

function deployment(namespace: string, name: string): object {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: { replicas: 1, ...workload(name) },
  };
}

function daemonSet(namespace: string, name: string): object {
  return { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name, namespace }, spec: workload(name) };
}
