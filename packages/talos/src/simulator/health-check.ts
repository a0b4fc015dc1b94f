/**
 * The cluster health check of Talos: a fixed list of checks, each repeated until it passes.
 *
 * The given node lists are taken as the complete cluster: a node that is missing in Kubernetes or one too many
 * there keeps the check from passing, as it does on the real one. Checks that a simulated node can't fail
 * (memory and disk sizes follow from the machine) are still evaluated against the same limits.
 */
import { installDisk } from "../config/validate-for-node.ts";
import type { SimulatedCluster } from "./cluster.ts";
import { candidateDisks } from "./install-target.ts";
import type { SimulatedNode } from "./node.ts";

/** What is checked. */
export interface HealthSubject {
  readonly cluster: SimulatedCluster;
  readonly controlPlane: readonly string[];
  readonly workers: readonly string[];
  /** Any node of the cluster by its address. */
  readonly nodeAt: (address: string) => SimulatedNode | undefined;
}

/** A check: a reason why it does not pass yet, or `undefined`; `skip` when it does not apply. */
export interface HealthCheck {
  readonly name: string;
  readonly evaluate: (subject: HealthSubject) => string | undefined | "skip";
}

const mebibyte = 1024 ** 2;
const minimumMemoryMiB = { controlplane: 1848 - 150, worker: 1024 - 150 };
const minimumDiskBytes = 6 * 1024 * mebibyte;

const all = (subject: HealthSubject): readonly string[] => [...subject.controlPlane, ...subject.workers];

function each(
  addresses: readonly string[],
  subject: HealthSubject,
  problem: (node: SimulatedNode, address: string) => string | undefined,
): string | undefined {
  for (const address of addresses) {
    const node = subject.nodeAt(address);
    const found = node ? problem(node, address) : `${address}: connection refused`;
    if (found !== undefined) return found;
  }
  return undefined;
}

function serviceProblem(id: string) {
  return (node: SimulatedNode, address: string): string | undefined => {
    const service = node.view().services.find((candidate) => candidate.id === id);
    if (!service) return `${address}: service ${JSON.stringify(id)} not found`;
    if (service.state !== "Running")
      return `${address}: service ${JSON.stringify(id)} not in expected state "Running": current state [${service.state}]`;
    return service.healthy === true ? undefined : `${address}: service ${JSON.stringify(id)} is not healthy`;
  };
}

function sameMembers(expected: readonly string[], actual: readonly string[]): string | undefined {
  const missing = expected.filter((address) => !actual.includes(address));
  const unexpected = actual.filter((address) => !expected.includes(address));
  if (missing.length > 0)
    return `can't find expected node with IPs [${missing.map((ip) => JSON.stringify(ip)).join(" ")}]`;
  if (unexpected.length > 0)
    return `unexpected nodes with IPs [${unexpected.map((ip) => JSON.stringify(ip)).join(" ")}]`;
  return undefined;
}

const ready = (subject: HealthSubject): string | undefined =>
  each(all(subject), subject, (node, address) =>
    subject.cluster.nodeReady(node) === true
      ? undefined
      : `some nodes are not ready: [${JSON.stringify(address)}]`,
  );

const serving = ({ cluster }: HealthSubject): string | undefined =>
  cluster.isServing ? undefined : "no API server is answering";

/** In Talos' order. */
export const healthChecks: readonly HealthCheck[] = [
  {
    name: "etcd to be healthy",
    evaluate: (subject) => each(subject.controlPlane, subject, serviceProblem("etcd")),
  },
  {
    name: "etcd members to be consistent across nodes",
    evaluate: ({ cluster }) => (cluster.etcdMembers.length > 0 ? undefined : "etcd has no members"),
  },
  {
    name: "etcd members to be control plane nodes",
    evaluate: ({ cluster, controlPlane }) =>
      sameMembers(
        controlPlane,
        cluster.etcdMembers.map(({ address }) => address),
      ),
  },
  { name: "apid to be ready", evaluate: (subject) => each(all(subject), subject, serviceProblem("apid")) },
  {
    name: "all nodes memory sizes",
    evaluate: (subject) =>
      each(all(subject), subject, ({ spec, config }, address) => {
        const size = spec.memoryModulesMiB.reduce((sum, module) => sum + module, 0);
        const minimum = minimumMemoryMiB[config?.role ?? "worker"];
        return size >= minimum ? undefined : `${address}: memory is ${size} MiB, below ${minimum} MiB`;
      }),
  },
  {
    name: "all nodes disk sizes",
    evaluate: (subject) =>
      each(all(subject), subject, ({ spec, config }, address) => {
        const disk = config && installDisk(config.facts, candidateDisks(spec));
        return !disk || disk.sizeBytes >= minimumDiskBytes
          ? undefined
          : `${address}: disk ${disk.name} is too small`;
      }),
  },
  { name: "no diagnostics", evaluate: () => undefined },
  {
    name: "kubelet to be healthy",
    evaluate: (subject) => each(all(subject), subject, serviceProblem("kubelet")),
  },
  {
    name: "all nodes to finish boot sequence",
    evaluate: (subject) =>
      each(all(subject), subject, ({ stage }, address) =>
        stage === "running" ? undefined : `${address}: boot sequence is not finished: ${stage}`,
      ),
  },
  {
    name: "all k8s nodes to report",
    evaluate: (subject) =>
      sameMembers(
        all(subject),
        subject.cluster.nodes
          .filter((node) => subject.cluster.nodeReady(node) !== undefined)
          .map(({ spec }) => spec.address),
      ),
  },
  { name: "all control plane static pods to be running", evaluate: serving },
  { name: "all control plane components to be ready", evaluate: serving },
  {
    name: "all k8s nodes to report ready",
    evaluate: (subject) => (withoutCni(subject) ? "skip" : ready(subject)),
  },
  { name: "kube-proxy to report ready", evaluate: () => "skip" },
  { name: "coredns to report ready", evaluate: () => "skip" },
  { name: "all k8s nodes to report schedulable", evaluate: ready },
];

function withoutCni({ cluster }: HealthSubject): boolean {
  return cluster.nodes.some(({ config }) => config?.facts.cni === "none");
}
