/**
 * A client of one Talos node: the calls a control plane makes, with plain values in and out.
 *
 * Nothing is dialled before the first call, every call has a deadline, and every failure is a
 * `TalosError` that says what to do next. A client belongs to one address and one identity; close it
 * when done. Interpreting what a sequence of calls means is the caller's.
 */
import { durationFromMs, timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient, type Client } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Edges } from "@kontinuum/std";
import { ClusterService } from "../gen/cluster/cluster_pb.ts";
import { State } from "../gen/cosi/resource/state_pb.ts";
import { ImageService } from "../gen/machine/image_pb.ts";
import { LifecycleService } from "../gen/machine/lifecycle_pb.ts";
import { MachineService } from "../gen/machine/machine_pb.ts";
import { Caller, defaultTimeoutMs, onlyReply, type CallOptions } from "./call.ts";
import { tlsOptionsOf, type TalosCredentials } from "./credentials.ts";
import {
  addressFact,
  cpuFact,
  diskFact,
  linkFact,
  machineStatusFact,
  memoryFact,
  systemInformationFact,
  type AddressFact,
  type CpuFact,
  type DiskFact,
  type LinkFact,
  type MachineStatusFact,
  type MemoryFact,
  type SystemInformationFact,
} from "./facts.ts";
import { archiveBytesMax, unpackKubeconfig } from "./kubeconfig-archive.ts";
import {
  applyModeNames,
  applyModes,
  rebootModes,
  wipeModes,
  type ApplyRequest,
  type ApplyResult,
  type EtcdMemberFact,
  type HealthCheckRequest,
  type ResetRequest,
  type ServiceFact,
  type VersionFact,
} from "./requests.ts";
import { resourceKinds } from "./resource-kind.ts";
import { GrpcSession, type TalosPeer } from "./grpc-session.ts";
import { StateReader } from "./state-reader.ts";
import { isTalosError, TalosError } from "./talos-error.ts";
import { upgradeNode, type UpgradeRequest, type UpgradeResult, type UpgradeServices } from "./upgrade.ts";

/** Port of the Talos API. */
export const talosPort = 50_000;
/** Largest message either way, in bytes (Talos API). */
export const messageBytesMax = 32 * 1024 * 1024;
/** How much longer than the node we wait for the end of its health check, in milliseconds. */
const healthGraceMs = 5_000;

/** Where, as whom and with what to connect. */
export interface ConnectOptions {
  /** IP address or host name of the node to dial. */
  readonly address: string;
  /** Default {@link talosPort}. */
  readonly port?: number;
  readonly credentials: TalosCredentials;
  readonly edges: Edges;
  /** Route every call to this node through the dialled one. A call's own `node` wins. */
  readonly node?: string;
}

/** A client for one node. Nothing is dialled before the first call. */
export function connectTalos(options: ConnectOptions): TalosClient {
  return new TalosClient(options);
}

/** One node. Make it with {@link connectTalos}. */
export class TalosClient {
  /** The node's resources, typed. */
  readonly state: StateReader;
  readonly #machine: Client<typeof MachineService>;
  readonly #cluster: Client<typeof ClusterService>;
  readonly #upgrading: Pick<UpgradeServices, "images" | "lifecycle">;
  readonly #session: GrpcSession;
  readonly #caller: Caller;

  constructor(options: ConnectOptions) {
    const port = options.port ?? talosPort;
    const { credentials } = options;
    const pinned = credentials.kind === "maintenance" ? credentials.fingerprint : undefined;
    this.#session = new GrpcSession({
      address: options.address,
      port,
      tls: tlsOptionsOf(credentials, options.address),
      edges: options.edges,
      ...(pinned === undefined ? {} : { pinned }),
    });
    const transport = createGrpcTransport({
      baseUrl: this.#session.authority,
      sessionManager: this.#session,
      readMaxBytes: messageBytesMax,
      writeMaxBytes: messageBytesMax,
      acceptCompression: [],
    });
    this.#caller = new Caller(this.#session, options.edges, `${options.address}:${port}`, options.node);
    this.#machine = createClient(MachineService, transport);
    this.#cluster = createClient(ClusterService, transport);
    this.#upgrading = {
      images: createClient(ImageService, transport),
      lifecycle: createClient(LifecycleService, transport),
    };
    this.state = new StateReader(createClient(State, transport), this.#caller);
  }

  /** The node seen on the last connection; `undefined` before the first. */
  get peer(): TalosPeer | undefined {
    return this.#session.peer;
  }

  /** Connects now, and tells who answered. */
  connect(options: CallOptions = {}): Promise<TalosPeer> {
    return this.#caller.unary("connect", options, async () => {
      await this.#session.connect();
      const { peer } = this.#session;
      if (!peer) throw new TalosError("protocol", `${this.#session.authority} showed no certificate`);
      return peer;
    });
  }

  /** Ends the connection and every call on it. */
  close(): void {
    this.#session.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** What the node runs. Maintenance mode before Talos 1.13 answers `unsupported`. */
  async version(options: CallOptions = {}): Promise<VersionFact> {
    const { messages } = await this.#caller.unary("Version", options, (wire) =>
      this.#machine.version({}, wire),
    );
    const { version, platform, features } = onlyReply("Version", messages);
    return {
      tag: version?.tag ?? "",
      platform: platform?.name ?? "",
      arch: version?.arch ?? "",
      configured: features?.rbac ?? false,
    };
  }

  /** Network links, by name. */
  async links(options: CallOptions = {}): Promise<LinkFact[]> {
    return (await this.state.list(resourceKinds.linkStatus, options)).map(linkFact);
  }

  /** Addresses on all links, by link name and address. */
  async addresses(options: CallOptions = {}): Promise<AddressFact[]> {
    const found = await this.state.list(resourceKinds.addressStatus, options);
    return found.map(addressFact).filter((fact) => fact !== undefined);
  }

  /** Disks, by kernel name. */
  async disks(options: CallOptions = {}): Promise<DiskFact[]> {
    return (await this.state.list(resourceKinds.disk, options)).map(diskFact);
  }

  /** What SMBIOS says, or `undefined` on a platform without it. */
  async systemInformation(options: CallOptions = {}): Promise<SystemInformationFact | undefined> {
    const [found] = await this.state.list(resourceKinds.systemInformation, options);
    return found && systemInformationFact(found);
  }

  /** Installed memory. */
  async memory(options: CallOptions = {}): Promise<MemoryFact> {
    return memoryFact(await this.state.list(resourceKinds.memoryModule, options));
  }

  /** Processor sockets. */
  async cpus(options: CallOptions = {}): Promise<CpuFact[]> {
    return (await this.state.list(resourceKinds.processor, options)).map(cpuFact);
  }

  /** Stage and readiness, or `undefined` when the node does not tell. */
  async machineStatus(options: CallOptions = {}): Promise<MachineStatusFact | undefined> {
    const found = await this.state.get(resourceKinds.machineStatus, "machine", options);
    return found && machineStatusFact(found);
  }

  /** The node's host name. */
  async hostname(options: CallOptions = {}): Promise<string> {
    const { messages } = await this.#caller.unary("Hostname", options, (wire) =>
      this.#machine.hostname({}, wire),
    );
    return onlyReply("Hostname", messages).hostname;
  }

  /**
   * Hands the node its configuration. In maintenance mode this starts the installation; the answer
   * only says that the configuration was taken.
   */
  async applyConfiguration(request: ApplyRequest, options: CallOptions = {}): Promise<ApplyResult> {
    if (request.expectUuid !== undefined) await this.#expectUuid(request.expectUuid, options);
    const { messages } = await this.#caller.unary("ApplyConfiguration", options, (wire) =>
      this.#machine.applyConfiguration(
        {
          data: Buffer.from(request.config, "utf8"),
          mode: applyModes[request.mode ?? "reboot"],
          dryRun: request.dryRun ?? false,
          ...(request.tryTimeoutMs === undefined
            ? {}
            : { tryModeTimeout: durationFromMs(request.tryTimeoutMs) }),
        },
        wire,
      ),
    );
    const reply = onlyReply("ApplyConfiguration", messages);
    const mode = applyModeNames.find((name) => applyModes[name] === reply.mode) ?? "reboot";
    return { mode, details: reply.modeDetails, warnings: [...reply.warnings] };
  }

  /** Starts etcd on the first control-plane member. `already`: its data directory is not empty. */
  async bootstrap(options: CallOptions = {}): Promise<"started" | "already"> {
    try {
      await this.#caller.unary("Bootstrap", options, (wire) => this.#machine.bootstrap({}, wire));
      return "started";
    } catch (error) {
      if (isTalosError(error, "already_done")) return "already";
      throw error;
    }
  }

  /**
   * The admin kubeconfig the node generates from its configuration. It is a node's word: take only
   * what `parseNodeKubeconfig` takes. It does not prove that the API server runs.
   */
  async kubeconfig(options: CallOptions = {}): Promise<string> {
    const parts: Uint8Array[] = [];
    let size = 0;
    const stream = this.#caller.stream("Kubeconfig", options, (wire) => this.#machine.kubeconfig({}, wire));
    for await (const { metadata, bytes } of stream) {
      if (metadata?.error) throw new TalosError("failed", `Kubeconfig: ${metadata.error}`);
      size += bytes.length;
      if (size > archiveBytesMax)
        throw new TalosError("protocol", "the node's kubeconfig archive exceeds 1 MiB");
      parts.push(bytes);
    }
    return Buffer.from(await unpackKubeconfig(Buffer.concat(parts))).toString("utf8");
  }

  /**
   * Resolves when the whole cluster passes Talos' health checks; fails with `timeout` when it does
   * not within `timeoutMs` (default 60 s).
   */
  async healthCheck(request: HealthCheckRequest): Promise<void> {
    const timeoutMs = request.timeoutMs ?? 2 * defaultTimeoutMs;
    const options = { ...request, timeoutMs: timeoutMs + healthGraceMs };
    const stream = this.#caller.stream("HealthCheck", options, (wire) =>
      this.#cluster.healthCheck(
        {
          waitTimeout: durationFromMs(timeoutMs),
          clusterInfo: {
            controlPlaneNodes: [...request.controlPlane],
            workerNodes: [...(request.workers ?? [])],
          },
        },
        wire,
      ),
    );
    for await (const { metadata, message } of stream) {
      if (metadata?.error) throw new TalosError("failed", `HealthCheck: ${metadata.error}`);
      request.onProgress?.(message);
    }
  }

  /** Starts wiping the node; the answer is its actor id. The node's return is for the caller to watch. */
  async reset(request: ResetRequest, options: CallOptions = {}): Promise<string> {
    const { messages } = await this.#caller.unary("Reset", options, (wire) =>
      this.#machine.reset(
        {
          graceful: request.graceful,
          reboot: request.reboot ?? true,
          systemPartitionsToWipe: (request.partitions ?? []).map((label) => ({ label, wipe: true })),
          userDisksToWipe: [...(request.userDisks ?? [])],
          mode: wipeModes[request.wipe ?? "all"],
        },
        wire,
      ),
    );
    return onlyReply("Reset", messages).actorId;
  }

  /** Reboots the node; the answer is its actor id. */
  async reboot(
    options: CallOptions & { readonly mode?: "default" | "powercycle" | "force" } = {},
  ): Promise<string> {
    const { messages } = await this.#caller.unary("Reboot", options, (wire) =>
      this.#machine.reboot({ mode: rebootModes[options.mode ?? "default"] }, wire),
    );
    return onlyReply("Reboot", messages).actorId;
  }

  /** Powers the node off; the answer is its actor id. */
  async shutdown(options: CallOptions & { readonly force?: boolean } = {}): Promise<string> {
    const { messages } = await this.#caller.unary("Shutdown", options, (wire) =>
      this.#machine.shutdown({ force: options.force ?? false }, wire),
    );
    return onlyReply("Shutdown", messages).actorId;
  }

  /**
   * Installs another Talos image and reboots into it; from 1.13 on it waits for the installer, so give a `timeoutMs` of
   * minutes. A failed installation is `refused`.
   */
  upgrade(request: UpgradeRequest, options: CallOptions = {}): Promise<UpgradeResult> {
    const machine = this.#machine;
    return upgradeNode({ machine, caller: this.#caller, ...this.#upgrading }, request, options);
  }

  /** The node's services. */
  async serviceList(options: CallOptions = {}): Promise<ServiceFact[]> {
    const { messages } = await this.#caller.unary("ServiceList", options, (wire) =>
      this.#machine.serviceList({}, wire),
    );
    return onlyReply("ServiceList", messages).services.map(({ id, state, health, events }) => ({
      id,
      state,
      healthy: !health || health.unknown ? undefined : health.healthy,
      lastMessage: health?.lastMessage ?? "",
      events: (events?.events ?? []).map((event) => ({
        message: event.msg,
        state: event.state,
        at: event.ts && timestampDate(event.ts),
      })),
    }));
  }

  /** Members of etcd as this control-plane node sees them. */
  async etcdMemberList(options: CallOptions = {}): Promise<EtcdMemberFact[]> {
    const { messages } = await this.#caller.unary("EtcdMemberList", options, (wire) =>
      this.#machine.etcdMemberList({}, wire),
    );
    return onlyReply("EtcdMemberList", messages).members.map((member) => ({
      id: member.id,
      hostname: member.hostname,
      peerUrls: [...member.peerUrls],
      clientUrls: [...member.clientUrls],
      learner: member.isLearner,
    }));
  }

  /** Removes a dead member: for nodes that did not leave etcd themselves. */
  async etcdRemoveMember(id: bigint, options: CallOptions = {}): Promise<void> {
    await this.#caller.unary("EtcdRemoveMemberByID", options, (wire) =>
      this.#machine.etcdRemoveMemberByID({ memberId: id }, wire),
    );
  }

  async #expectUuid(expected: string, options: CallOptions): Promise<void> {
    const seen = (await this.systemInformation(options))?.uuid;
    if (seen === expected.toLowerCase()) return;
    throw new TalosError(
      "identity_changed",
      `the machine has SMBIOS UUID ${seen ?? "none"}, not ${expected} as at discovery: nothing was sent; discover it again`,
    );
  }
}
