/**
 * The simulated cluster under unmodified clients: kubectl and helm with the kubeconfig that a simulated node handed out.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { systemClock, systemEdges } from "@kontinuum/std";
import {
  adminCredentials,
  connectTalos,
  generateMachineConfig,
  generateSecretsBundle,
  isTalosError,
  SimulatedRack,
} from "@kontinuum/talos";
import { findHelm, findKubectl } from "../services/kubernetes-tools.ts";

const kubectl = await findKubectl();
const helm = await findHelm();
const missing = [kubectl, helm].find((tool) => typeof tool !== "string");

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`;

const chart = {
  "Chart.yaml": "apiVersion: v2\nname: sample\nversion: 0.1.0\n",
  "templates/all.yaml": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: {{ .Release.Name }}}
spec:
  serviceName: {{ .Release.Name }}
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: main, image: "sample:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {"helm.sh/hook": pre-install, "helm.sh/hook-delete-policy": hook-succeeded}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: "hook:1"}]}
`,
  "values.yaml": "replicas: 2\n",
};

test(
  "kubectl and helm against a cluster of simulated nodes",
  { timeout: 180_000, skip: missing !== undefined && typeof missing !== "string" ? missing.missing : false },
  async (t) => {
    const edges = systemEdges();
    const folder = await mkdtemp(path.join(os.tmpdir(), "rack-clients-"));
    const rack = await SimulatedRack.create({
      machines: 2,
      edges,
      addressBase: `127.${150 + (process.pid % 90)}.7.10`,
    });
    t.after(async () => {
      await rack.close();
      await rm(folder, { recursive: true, force: true });
    });
    const kubeconfig = path.join(folder, "kubeconfig");
    await writeFile(kubeconfig, await bootCluster(rack), { mode: 0o600 });
    const run = async (tool: string, ...args: string[]): Promise<string> => {
      const env = { PATH: process.env["PATH"] ?? "", HOME: folder, KUBECONFIG: kubeconfig };
      const { stdout } = await promisify(execFile)(tool, args, { env, timeout: 60_000 });
      return stdout;
    };
    assert.ok(typeof kubectl === "string" && typeof helm === "string");
    const kube = (...args: string[]): Promise<string> => run(kubectl, ...args);

    await kube("wait", "--for=condition=Ready", "node", "--all", "--timeout=30s");
    assert.match(
      await kube("get", "nodes", "-o", "wide"),
      /cp-1 +Ready +control-plane .*Talos \(v1\.13\.0\)/,
    );
    assert.match(await kube("get", "nodes"), /w-1 +Ready/);
    assert.match(await kube("describe", "node", "cp-1"), /KubeletReady/);

    const manifest = path.join(folder, "web.yaml");
    await writeFile(manifest, deployment);
    await kube("apply", "-f", manifest);
    assert.match(
      await kube("rollout", "status", "deployment/web", "--timeout=30s"),
      /successfully rolled out/,
    );
    await kube("set", "image", "deployment/web", "web=web:2");
    await kube("rollout", "status", "deployment/web", "--timeout=30s");
    assert.equal(
      (
        await kube("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.containers[0].image}")
      ).trim(),
      "web:2 web:2",
    );
    const slices = await kube(
      "get",
      "endpointslices",
      "-l",
      "kubernetes.io/service-name=web",
      "-o",
      "jsonpath={.items[0].endpoints[*].addresses[0]}",
    );
    assert.equal(slices.split(" ").length, 2);
    await kube("scale", "deployment/web", "--replicas=3");
    await kube("wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/web", "--timeout=30s");
    await kube("rollout", "undo", "deployment/web");
    await kube("rollout", "status", "deployment/web", "--timeout=30s");
    assert.match(await kube("rollout", "history", "deployment/web"), /REVISION/);
    await kube("run", "one", "--image=one:1", "--restart=Never");
    await kube("wait", "--for=condition=Ready", "pod/one", "--timeout=30s");
    await kube("delete", "pod/one", "--timeout=30s");
    await kube("create", "job", "sum", "--image=sum:1");
    await kube("wait", "--for=condition=Complete", "job/sum", "--timeout=30s");
    await kube("delete", "deployment/web", "--cascade=foreground", "--timeout=30s");
    assert.equal((await kube("get", "pods", "-l", "app=web", "-o", "name")).trim(), "");

    for (const [file, text] of Object.entries(chart)) {
      await mkdir(path.dirname(path.join(folder, "sample", file)), { recursive: true });
      await writeFile(path.join(folder, "sample", file), text);
    }
    await run(helm, "install", "db", path.join(folder, "sample"), "--wait", "--timeout", "60s");
    assert.match(await kube("get", "statefulset", "db"), /db +2\/2/);
    await run(
      helm,
      "upgrade",
      "db",
      path.join(folder, "sample"),
      "--set",
      "replicas=1",
      "--wait",
      "--timeout",
      "60s",
    );
    assert.match(await kube("get", "statefulset", "db"), /db +1\/1/);
    await run(helm, "uninstall", "db", "--wait", "--timeout", "60s");
  },
);

/** A control plane and a worker; returns the kubeconfig the node handed out. */
async function bootCluster(rack: SimulatedRack): Promise<string> {
  const edges = systemEdges();
  const [first, second] = rack.nodes;
  assert.ok(first && second);
  const bundle = await generateSecretsBundle({ talosVersion: "v1.13.0", edges });
  const apply = async (address: string, type: "controlplane" | "worker", hostname: string): Promise<void> => {
    const config = generateMachineConfig({
      type,
      hostname,
      bundle,
      clusterName: "sample",
      endpoint: `https://${first.spec.address}:6443`,
      talosVersion: "v1.13.0",
      kubernetesVersion: "1.35.0",
      allowSchedulingOnControlPlanes: true,
      install: { diskSelector: {} },
      network: { cni: "none" },
    });
    using client = connectTalos({ address, credentials: { kind: "maintenance" }, edges });
    await client.applyConfiguration({ config });
  };
  await apply(first.spec.address, "controlplane", "cp-1");
  await apply(second.spec.address, "worker", "w-1");
  const credentials = await adminCredentials({ bundle, edges });
  using admin = connectTalos({ address: first.spec.address, credentials, edges });
  for (const until = systemClock.monotonic() + 30_000; ;) {
    try {
      await admin.bootstrap({ timeoutMs: 2_000 });
      break;
    } catch (error) {
      if (!isTalosError(error) || systemClock.monotonic() > until) throw error;
      await systemClock.sleep(100);
    }
  }
  const nodes = { controlPlane: [first.spec.address], workers: [second.spec.address] };
  await admin.healthCheck({ ...nodes, timeoutMs: 30_000 });
  return await admin.kubeconfig();
}
