/**
 * The calls of `machine.MachineService` about what runs on a node: processes, containers, logs, ports, packets.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import { ContainerdNamespace, ContainerDriver } from "../../gen/common/common_pb.ts";
import { NetstatRequest_Filter as Filter, type MachineService } from "../../gen/machine/machine_pb.ts";
import { invalidArgument, notFound, unknownError } from "../call-error.ts";
import { containers, listeners, processes, usage } from "../node-programs.ts";
import type { SimulatedNode } from "../node.ts";
import { callerOf } from "./call-context.ts";
import { imagesOn, pullImage } from "./image-service.ts";
import { readable, untilCancelled } from "./preconditions.ts";

/** containerd's namespaces. */
const kubernetesNamespace = "k8s.io";
const systemNamespace = "system";
/** Bytes of a packet that are kept unless the caller says how many. */
const snapBytes = 4096;

interface ContainerQuery {
  readonly namespace: string;
  readonly driver: ContainerDriver;
}

/** See the module's comment. */
export const programCalls: Partial<ServiceImpl<typeof MachineService>> = {
  processes: (_request, context) => ({ messages: [{ processes: processes(readable(context)) }] }),

  async containers(request, context) {
    return { messages: [{ containers: await containersOf(readable(context), request) }] };
  },

  async stats(request, context) {
    const found = await containersOf(readable(context), request);
    const stats = found.map((container) => ({
      namespace: request.namespace,
      id: container.id ?? "",
      podId: container.podId ?? "",
      name: container.name ?? "",
      ...usage(container),
    }));
    return { messages: [{ stats }] };
  },

  async restart(request, context) {
    const { node } = callerOf(context);
    const found = await containersOf(node, request);
    if (!found.some(({ id }) => id === request.id))
      throw unknownError(`container ${JSON.stringify(request.id.slice(0, 200))} not found`);
    return { messages: [{}] };
  },

  /** The history of a Talos service; pods have written nothing, because they run nothing here. */
  async *logs({ id, namespace, driver, follow, tailLines }, context) {
    const node = readable(context);
    if (namespace !== systemNamespace && id !== "kubelet") {
      const found = await containersOf(node, { namespace, driver });
      if (!found.some((container) => container.id === id))
        throw unknownError(`container ${JSON.stringify(id.slice(0, 200))} not found`);
    } else {
      const service = node.view().services.find((candidate) => candidate.id === id);
      if (!service) throw unknownError(`log ${JSON.stringify(id.slice(0, 200))} was not registered`);
      const lines = service.events.map(
        ({ at, state, message }) => `${new Date(at).toISOString()} ${id} (${state}): ${message}\n`,
      );
      yield { bytes: Buffer.from((tailLines > 0 ? lines.slice(-tailLines) : lines).join("")) };
    }
    if (follow) await untilCancelled(context);
  },

  logsContainers: (_request, context) => ({
    messages: [
      {
        ids: readable(context)
          .view()
          .services.map(({ id }) => id),
      },
    ],
  }),

  netstat({ filter, l4proto }, context) {
    const node = readable(context);
    const isAny = !l4proto || l4proto.tcp || l4proto.tcp6;
    return { messages: [{ connectrecord: filter === Filter.CONNECTED || !isAny ? [] : listeners(node) }] };
  },

  /** The head of a capture; then nothing, because no packet passes a simulated link. */
  async *packetCapture({ interface: name, snapLen }, context) {
    const { node } = callerOf(context);
    if (name !== "lo" && !node.spec.links.some((link) => link.name === name))
      throw notFound(`interface ${JSON.stringify(name.slice(0, 100))} not found`);
    yield { bytes: captureHead(snapLen || snapBytes) };
    await untilCancelled(context);
  },

  async *imageList({ namespace }, context) {
    for (const { name, digest, size } of await imagesOn(readable(context), legacyNamespace(namespace)))
      yield { name, digest, size };
  },

  async imagePull({ namespace, reference }, context) {
    await pullImage(callerOf(context).node, legacyNamespace(namespace), reference);
    return { messages: [{}] };
  },
};

async function containersOf(node: SimulatedNode, { namespace, driver }: ContainerQuery) {
  if (namespace === "") throw invalidArgument("namespace can't be empty");
  if (driver !== ContainerDriver.CRI && driver !== ContainerDriver.CONTAINERD)
    throw invalidArgument(`unsupported driver ${JSON.stringify(String(driver))}`);
  if (driver === ContainerDriver.CRI && namespace !== kubernetesNamespace)
    throw unknownError("CRI inspector is supported only for K8s namespace");
  const pods = namespace === kubernetesNamespace ? ((await node.cluster?.podsOn(node)) ?? []) : [];
  return containers(node, namespace, pods);
}

function legacyNamespace(namespace: ContainerdNamespace): ContainerdNamespace {
  if (namespace !== ContainerdNamespace.NS_CRI && namespace !== ContainerdNamespace.NS_SYSTEM)
    throw invalidArgument(`invalid namespace ${namespace}`);
  return namespace;
}

/** The head of a capture file (libpcap 2.4, little endian, Ethernet). */
function captureHead(snapLength: number): Buffer {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(0xa1b2c3d4, 0);
  head.writeUInt16LE(2, 4);
  head.writeUInt16LE(4, 6);
  head.writeUInt32LE(snapLength, 16);
  head.writeUInt32LE(1, 20);
  return head;
}
