/**
 * What runs on a node, as its kernel and its container runtimes would tell it: processes, containers, images, ports.
 *
 * All of it follows from services and pods; nothing here runs.
 */
import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ConnectRecordSchema,
  ContainerInfoSchema,
  ProcessInfoSchema,
} from "../gen/machine/machine_pb.ts";
import type { RunningPod } from "./kubernetes/kubernetes.ts";
import type { SimulatedNode } from "./node.ts";

const mebibyte = 1024 * 1024;

/** Services that Talos runs as containers of its own. */
const containerized = ["apid", "etcd", "kubelet", "trustd"];

/** Programs of the services that are no containers. */
const executables: Readonly<Record<string, string>> = {
  containerd: "/bin/containerd",
  cri: "/bin/containerd",
  udevd: "/usr/lib/systemd/systemd-udevd",
  dashboard: "/sbin/dashboard",
};

interface Program {
  readonly pid: number;
  readonly id: string;
  readonly executable: string;
}

/** The services that are processes, with ids that stay the same while they run. */
function programs(node: SimulatedNode): Program[] {
  return node
    .view()
    .services.filter(
      ({ id, state }) => state === "Running" && id !== "machined" && id !== "auditd" && id !== "syslogd",
    )
    .map(({ id }, index) => ({
      pid: 1000 + index * 40,
      id,
      executable: executables[id] ?? `/${id === "kubelet" ? "usr/local/bin/kubelet" : id}`,
    }));
}

/** `/proc`, as the process list shows it. */
export function processes(node: SimulatedNode): MessageInitShape<typeof ProcessInfoSchema>[] {
  const seconds = Math.max(1, node.journal.uptimeSeconds);
  const init = { pid: 1, id: "init", executable: "/sbin/init" };
  return [init, ...programs(node)].map(({ pid, id, executable }) => ({
    pid,
    ppid: pid === 1 ? 0 : 1,
    state: "S",
    threads: 8,
    cpuTime: seconds * 0.01,
    virtualMemory: BigInt(1200 * mebibyte),
    residentMemory: BigInt(60 * mebibyte),
    command: id,
    executable,
    args: executable,
    label: `system_u:system_r:${id}_t:s0`,
  }));
}

type Container = MessageInitShape<typeof ContainerInfoSchema>;

/** Containers of a namespace: Talos' own, or those of the pods. */
export function containers(node: SimulatedNode, namespace: string, pods: readonly RunningPod[]): Container[] {
  if (namespace === "system") {
    return programs(node)
      .filter(({ id }) => containerized.includes(id))
      .map(({ id, pid }) => ({
        namespace,
        id,
        uid: id,
        internalId: id,
        image: id === "kubelet" ? (node.config?.facts.images.kubelet ?? "") : `talos/${id}`,
        pid,
        status: "RUNNING",
        podId: id,
        name: id,
      }));
  }
  return pods.flatMap((pod, index) => {
    const podId = `${pod.namespace}/${pod.name}`;
    const sandbox: Container = {
      namespace,
      id: podId,
      uid: pod.uid,
      internalId: digest(podId),
      image: "registry.k8s.io/pause:3.10",
      pid: 5000 + index * 10,
      status: "SANDBOX_READY",
      podId,
      name: pod.name,
    };
    const own = pod.containers.map(({ name, image }, position): Container => {
      const internalId = digest(`${pod.uid}/${name}`);
      return {
        namespace,
        id: `${podId}:${name}:${internalId.slice(0, 12)}`,
        uid: pod.uid,
        internalId,
        image,
        pid: 5001 + index * 10 + position,
        status: "CONTAINER_RUNNING",
        podId,
        name,
      };
    });
    return [sandbox, ...own];
  });
}

/** A container's use of the machine: an idle one. */
export function usage(container: Container): { memoryUsage: bigint; cpuUsage: bigint } {
  const weight = (container.internalId ?? container.id ?? "").length % 7;
  return { memoryUsage: BigInt((20 + weight) * mebibyte), cpuUsage: BigInt(100_000_000 * (1 + weight)) };
}

/** An image on the node. */
export interface NodeImage {
  readonly name: string;
  readonly digest: string;
  readonly size: bigint;
}

/** An image by its reference; the same reference has always the same digest here. */
export function imageOf(name: string): NodeImage {
  return { name, digest: `sha256:${digest(name)}`, size: BigInt(40 * mebibyte + name.length * 100_000) };
}

/** References of the images a node has without anybody pulling them. */
export function presentImages(node: SimulatedNode, pods: readonly RunningPod[]): string[] {
  const { images } = node.config?.facts ?? {};
  const own = [images?.kubelet, images?.apiServer, images?.controllerManager, images?.scheduler];
  const references = [...own, ...pods.flatMap((pod) => pod.containers.map(({ image }) => image))];
  return [...new Set(references.filter((image) => image !== undefined && image !== ""))]
    .filter((image) => image !== undefined)
    .sort();
}

type Connection = MessageInitShape<typeof ConnectRecordSchema>;

/** Ports that programs listen on. */
export function listeners(node: SimulatedNode): Connection[] {
  const ports: Readonly<Record<string, readonly number[]>> = {
    apid: [50_000],
    trustd: [50_001],
    kubelet: [10_250],
    etcd: [2379, 2380],
  };
  const listen = (port: number, pid: number, name: string, localip: string): Connection => ({
    l4proto: "tcp",
    localip,
    localport: port,
    remoteip: "0.0.0.0",
    remoteport: 0,
    state: 10,
    inode: BigInt(10_000 + port),
    process: { pid, name },
  });
  const found = programs(node).flatMap(({ id, pid }) =>
    (ports[id] ?? []).map((port) => listen(port, pid, id, "0.0.0.0")),
  );
  if (node.cluster?.isServing && node.config?.role === "controlplane")
    found.push(listen(6443, 6000, "kube-apiserver", "0.0.0.0"));
  return found;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
