/**
 * Resources that follow from what a node is doing: stage, services, hostname, role, disk, cluster.
 */
import { addressBytes } from "../client/addresses.ts";
import { resourceKinds, type ResourceKind } from "../client/resource-kind.ts";
import { MachineConfigSpecSchema } from "../gen/resource/config/config_pb.ts";
import {
  MachineType,
  NethelpersFamily,
  NethelpersRouteProtocol,
  RuntimeMachineStage,
  RuntimeSELinuxState,
} from "../gen/resource/enums/enums_pb.ts";
import { MemberSpecSchema } from "../gen/resource/etcd/etcd_pb.ts";
import { ResolverStatusSpecSchema, StatusSpecSchema } from "../gen/resource/network/network_pb.ts";
import { blockResources } from "./block-resources.ts";
import { MetaKeySpecSchema } from "../gen/resource/runtime/runtime_pb.ts";
import { StatusSpecSchema as TimeStatusSpecSchema } from "../gen/resource/time/time_pb.ts";
import { linkAddresses } from "./hardware-resources.ts";
import { nodeNameOf } from "./node-config.ts";
import type { NodeStage, NodeView } from "./node-view.ts";
import { describe } from "./resource-descriptions.ts";
import type { ResourceDescription } from "./resource-store.ts";

const kind = <D extends ResourceKind["schema"]>(
  namespace: string,
  type: string,
  schema: D,
): ResourceKind<D> => ({
  namespace,
  type,
  schema,
});

const networkStatus = kind("network", "NetworkStatuses.net.talos.dev", StatusSpecSchema);
const resolverStatus = kind("network", "ResolverStatuses.net.talos.dev", ResolverStatusSpecSchema);
const etcdMember = kind("etcd", "EtcdMembers.etcd.talos.dev", MemberSpecSchema);
const metaKey = kind("runtime", "MetaKeys.runtime.talos.dev", MetaKeySpecSchema);
const timeStatus = kind("runtime", "TimeStatuses.v1alpha1.talos.dev", TimeStatusSpecSchema);
const machineConfig = kind("config", "MachineConfigs.config.talos.dev", MachineConfigSpecSchema);

/** All of them. */
export function stateResources(view: NodeView): ResourceDescription[] {
  return [
    machineStatus(view),
    ...services(view),
    ...identity(view),
    ...network(view),
    ...routes(view),
    ...blockResources(view),
    ...upkeep(view),
    ...cluster(view),
    ...configuration(view),
  ];
}

const stages: Readonly<Record<NodeStage, RuntimeMachineStage>> = {
  off: RuntimeMachineStage.MACHINE_STAGE_UNKNOWN,
  booting: RuntimeMachineStage.MACHINE_STAGE_BOOTING,
  installing: RuntimeMachineStage.MACHINE_STAGE_INSTALLING,
  maintenance: RuntimeMachineStage.MACHINE_STAGE_MAINTENANCE,
  running: RuntimeMachineStage.MACHINE_STAGE_RUNNING,
  rebooting: RuntimeMachineStage.MACHINE_STAGE_REBOOTING,
  "shutting down": RuntimeMachineStage.MACHINE_STAGE_SHUTTING_DOWN,
  resetting: RuntimeMachineStage.MACHINE_STAGE_RESETTING,
  upgrading: RuntimeMachineStage.MACHINE_STAGE_UPGRADING,
};

function machineStatus({ stage, unmetConditions }: NodeView): ResourceDescription {
  const isChecked = stage === "booting" || stage === "running";
  const unmet = isChecked ? unmetConditions.map(({ name, reason }) => ({ name, reason })) : [];
  const ready = unmet.length === 0;
  return describe(
    resourceKinds.machineStatus,
    "machine",
    "runtime.MachineStatusController",
    { stage: stages[stage], status: { ready, unmetConditions: unmet } },
    { stage, status: { ready, unmetConditions: unmet } },
  );
}

function services(view: NodeView): ResourceDescription[] {
  return view.services.map(({ id, state, healthy }) => {
    const spec = { running: state === "Running", healthy: healthy ?? false, unknown: healthy === undefined };
    return describe(resourceKinds.service, id, "v1alpha1.ServiceController", spec, spec);
  });
}

function identity({ spec, hostname, talosVersion, config }: NodeView): ResourceDescription[] {
  const [short = hostname, ...domain] = hostname.split(".");
  const name = { hostname: short, domainname: domain.join(".") };
  const type = config === undefined ? "unknown" : config.role;
  const platform = {
    platform: "metal",
    hostname: "",
    region: "",
    zone: "",
    instanceType: "",
    instanceId: "",
    providerId: "",
  };
  const security = { secureBoot: false, bootedWithUki: true };
  return [
    describe(resourceKinds.hostnameStatus, "hostname", "network.HostnameSpecController", name, name),
    describe(
      resourceKinds.version,
      "version",
      "runtime.VersionController",
      { version: talosVersion, name: "Talos" },
      { version: talosVersion, name: "Talos" },
    ),
    describe(
      resourceKinds.machineType,
      "machine-type",
      "config.MachineTypeController",
      {
        machineType:
          config === undefined
            ? MachineType.TYPE_UNKNOWN
            : config.role === "worker"
              ? MachineType.TYPE_WORKER
              : MachineType.TYPE_CONTROL_PLANE,
      },
      type,
    ),
    describe(
      resourceKinds.platformMetadata,
      "platformmetadata",
      "network.PlatformConfigController",
      platform,
      { ...platform, instanceId: spec.uuid },
    ),
    describe(
      resourceKinds.securityState,
      "securitystate",
      "runtime.SecurityStateController",
      { ...security, seLinuxState: RuntimeSELinuxState.SE_LINUX_STATE_PERMISSIVE },
      { ...security, selinuxState: "enabled, permissive" },
    ),
  ];
}

function network({ spec }: NodeView): ResourceDescription[] {
  const ready = { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true };
  const own = linkAddresses(spec).filter(({ link, address }) => link !== "lo" && !address.startsWith("fe80"));
  const addresses = own.map(({ address, prefixLength }) => ({
    ip: addressBytes(address) ?? new Uint8Array(),
    prefixLength,
  }));
  const sortAlgorithm = "v1";
  const display = {
    sortAlgorithm,
    addresses: own.map(({ address, prefixLength }) => `${address}/${prefixLength}`),
  };
  const sets = ["default", "current", "accumulative", "routed"] as const;
  return [
    describe(networkStatus, "status", "network.StatusController", ready, ready),
    describe(
      resolverStatus,
      "resolvers",
      "network.ResolverSpecController",
      { dnsServers: [], searchDomains: [] },
      { dnsServers: [] },
    ),
    ...sets.map((id) =>
      describe(
        resourceKinds.nodeAddress,
        id,
        "network.NodeAddressController",
        { addresses: id === "default" ? addresses.slice(0, 1) : addresses },
        id === "default" ? { ...display, addresses: display.addresses.slice(0, 1) } : display,
      ),
    ),
  ];
}

function upkeep({ meta, isTimeSynced }: NodeView): ResourceDescription[] {
  const time = { synced: isTimeSynced, epoch: 0, syncDisabled: false };
  return [
    describe(timeStatus, "node", "time.SyncController", { ...time, epoch: 0n }, time),
    ...Object.entries(meta).map(([key, value]) =>
      describe(
        metaKey,
        `0x${Number(key).toString(16).padStart(2, "0")}`,
        "runtime.MetaController",
        { value },
        { value },
      ),
    ),
  ];
}

function routes({ spec }: NodeView): ResourceDescription[] {
  const [link] = spec.links;
  if (!link) return [];
  const [a = "127", b = "0"] = spec.address.split(".");
  const gateway = `${a}.${b}.0.1`;
  return [
    describe(
      resourceKinds.routeStatus,
      `inet4/${gateway}//1024`,
      "network.RouteStatusController",
      {
        family: NethelpersFamily.FAMILY_INET4,
        gateway: { ip: addressBytes(gateway) ?? new Uint8Array() },
        outLinkIndex: 2,
        outLinkName: link.name,
        table: 254,
        priority: 1024,
        type: 1,
        protocol: NethelpersRouteProtocol.PROTOCOL_STATIC,
      },
      {
        family: "inet4",
        dst: "",
        src: "",
        gateway,
        outLinkIndex: 2,
        outLinkName: link.name,
        table: "main",
        priority: 1024,
        scope: "global",
        type: "unicast",
        flags: "",
        protocol: "static",
      },
    ),
  ];
}

function cluster(view: NodeView): ResourceDescription[] {
  const { config, hostname, kubernetesReady, etcdMemberId } = view;
  if (config === undefined) return [];
  const nodename = nodeNameOf(hostname);
  const status = { nodename, nodeReady: kubernetesReady ?? false, unschedulable: false };
  return [
    describe(
      resourceKinds.nodename,
      "nodename",
      "k8s.NodenameController",
      { nodename, hostnameVersion: "1" },
      { nodename, hostnameVersion: "1" },
    ),
    ...(kubernetesReady === undefined
      ? []
      : [describe(resourceKinds.nodeStatus, nodename, "k8s.NodeStatusController", status, status)]),
    ...(etcdMemberId === undefined
      ? []
      : [
          describe(
            etcdMember,
            "local",
            "etcd.MemberController",
            { memberId: etcdMemberId },
            { memberID: etcdMemberId },
          ),
        ]),
    ...view.members.map((member) => {
      const operatingSystem = `Talos (${member.talosVersion})`;
      const isControlPlane = member.role === "controlplane";
      return describe(
        resourceKinds.member,
        nodeNameOf(member.hostname),
        "cluster.MemberController",
        {
          nodeId: member.id,
          addresses: [{ ip: addressBytes(member.address) ?? new Uint8Array() }],
          hostname: member.hostname,
          machineType: isControlPlane ? MachineType.TYPE_CONTROL_PLANE : MachineType.TYPE_WORKER,
          operatingSystem,
          ...(isControlPlane ? { controlPlane: { apiServerPort: 6443n } } : {}),
        },
        {
          nodeId: member.id,
          addresses: [member.address],
          hostname: member.hostname,
          machineType: member.role,
          operatingSystem,
          ...(isControlPlane ? { controlPlane: { port: 6443 } } : {}),
        },
      );
    }),
  ];
}

function configuration({ config }: NodeView): ResourceDescription[] {
  if (config === undefined) return [];
  const spec = { yamlMarshalled: Buffer.from(config.text, "utf8") };
  // The display is one text with all documents in it, which the annotation tells clients.
  const annotations = { "talos.dev/yaml-spec": "1" };
  return ["v1alpha1", "persistent"].map((id) => ({
    ...describe(machineConfig, id, "config.AcquireController", spec, config.text),
    annotations,
  }));
}
