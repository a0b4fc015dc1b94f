/**
 * The client against real TLS sockets: what it sends, what it makes of answers, and how it tells one
 * failure from another.
 */
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { systemEdges } from "@kontinuum/std";
import { ClusterService } from "../gen/cluster/cluster_pb.ts";
import { EventType, State } from "../gen/cosi/resource/state_pb.ts";
import { ApplyConfigurationRequest_Mode, MachineService } from "../gen/machine/machine_pb.ts";
import { DiskSpecSchema } from "../gen/resource/block/block_pb.ts";
import {
  MemoryModuleSpecSchema,
  ProcessorSpecSchema,
  SystemInformationSpecSchema,
} from "../gen/resource/hardware/hardware_pb.ts";
import { AddressStatusSpecSchema, LinkStatusSpecSchema } from "../gen/resource/network/network_pb.ts";
import { MachineStatusSpecSchema, VersionSpecSchema } from "../gen/resource/runtime/runtime_pb.ts";
import {
  generateAuthority,
  issueAdminCertificate,
  issueCertificate,
  type CertificateAndKey,
} from "../pki/certificates.ts";
import { startTlsNode, type TlsNode } from "../testing/tls-node.ts";
import { addressBytes } from "./addresses.ts";
import { connectTalos, type TalosClient } from "./client.ts";
import type { TalosCredentials } from "./credentials.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { tarOf } from "./kubeconfig-archive.test.ts";
import { probe } from "./probe.ts";
import { resourceKinds } from "./resource-kind.ts";
import { TalosError, type TalosErrorClass, type TalosErrorReason } from "./talos-error.ts";

const edges = systemEdges();
const uuid = "4c4c4544-0039-5a10-8053-b2c04f334232";

const resource = (id: string, protoSpec: Uint8Array) => ({
  metadata: { id, version: "1", phase: "running" },
  spec: { protoSpec, yamlSpec: "" },
});

function address(link: string, text: string, prefixLength: number) {
  const ip = addressBytes(text);
  assert(ip);
  const spec = create(AddressStatusSpecSchema, { address: { ip, prefixLength }, linkName: link });
  return resource(`${link}/${text}/${prefixLength}`, toBinary(AddressStatusSpecSchema, spec));
}

const link = (name: string, mac: number[]) =>
  resource(
    name,
    toBinary(
      LinkStatusSpecSchema,
      create(LinkStatusSpecSchema, { hardwareAddr: Uint8Array.from(mac), flags: 1, mtu: 1500, type: 1 }),
    ),
  );

const resources: Record<string, ReturnType<typeof resource>[]> = {
  "LinkStatuses.net.talos.dev": [link("eth0", [0x52, 0x54, 0, 0, 0, 1]), link("lo", [])],
  "AddressStatuses.net.talos.dev": [
    address("eth0", "192.0.2.10", 24),
    address("eth0", "fe80::1", 64),
    address("lo", "127.0.0.1", 8),
  ],
  "Disks.block.talos.dev": [
    resource(
      "sda",
      toBinary(
        DiskSpecSchema,
        create(DiskSpecSchema, { size: 100_000_000_000n, devPath: "/dev/sda", transport: "sata" }),
      ),
    ),
  ],
  "SystemInformations.hardware.talos.dev": [
    resource(
      "systeminformation",
      toBinary(
        SystemInformationSpecSchema,
        create(SystemInformationSpecSchema, { uuid: uuid.toUpperCase() }),
      ),
    ),
  ],
  "MemoryModules.hardware.talos.dev": [
    resource("DIMM-0", toBinary(MemoryModuleSpecSchema, create(MemoryModuleSpecSchema, { size: 8192 }))),
  ],
  "Processors.hardware.talos.dev": [
    resource("CPU-0", toBinary(ProcessorSpecSchema, create(ProcessorSpecSchema, { coreCount: 8 }))),
  ],
  "Versions.runtime.talos.dev": [
    resource("version", toBinary(VersionSpecSchema, create(VersionSpecSchema, { version: "v1.12.1" }))),
  ],
  "MachineStatuses.runtime.talos.dev": [
    resource(
      "machine",
      toBinary(
        MachineStatusSpecSchema,
        create(MachineStatusSpecSchema, { stage: 3, status: { ready: true } }),
      ),
    ),
  ],
};

/** What one test's node saw and shall do. */
interface Behaviour {
  readonly calls: { method: string; node: string | null; timeout: string | null }[];
  versionError?: ConnectError;
  kubeconfig?: Uint8Array[];
  bootstrapError?: ConnectError;
  health?: (context: HandlerContext) => AsyncGenerator<{ message: string }>;
  watchClosed?: () => void;
}

function routesOf(behaviour: Behaviour): (router: ConnectRouter) => void {
  const note = (method: string, { requestHeader }: HandlerContext): void => {
    behaviour.calls.push({
      method,
      node: requestHeader.get("node"),
      timeout: requestHeader.get("grpc-timeout"),
    });
  };
  return (router) => {
    router.service(MachineService, {
      version(_, context) {
        note("Version", context);
        if (behaviour.versionError) throw behaviour.versionError;
        return {
          messages: [
            {
              version: { tag: "v1.13.0", arch: "amd64" },
              platform: { name: "metal" },
              features: { rbac: true },
            },
          ],
        };
      },
      applyConfiguration({ mode }, context) {
        note("ApplyConfiguration", context);
        return {
          messages: [
            {
              mode: mode === 0 ? ApplyConfigurationRequest_Mode.NO_REBOOT : mode,
              modeDetails: "Applied",
              warnings: ["w"],
            },
          ],
        };
      },
      bootstrap(_, context) {
        note("Bootstrap", context);
        if (behaviour.bootstrapError) throw behaviour.bootstrapError;
        return { messages: [{}] };
      },
      async *kubeconfig(_, context) {
        note("Kubeconfig", context);
        for (const bytes of behaviour.kubeconfig ?? []) yield { bytes };
      },
      reset(request, context) {
        note(
          `Reset graceful=${request.graceful} reboot=${request.reboot} wipe=${request.systemPartitionsToWipe.map(({ label, wipe }) => `${label}:${wipe}`).join()}`,
          context,
        );
        return { messages: [{ actorId: "actor" }] };
      },
      serviceList: () => ({
        messages: [
          {
            services: [
              {
                id: "etcd",
                state: "Running",
                health: { healthy: true, lastMessage: "ok" },
                events: { events: [{ msg: "started", state: "Running", ts: { seconds: 1n } }] },
              },
              { id: "kubelet", state: "Waiting", health: { unknown: true } },
            ],
          },
        ],
      }),
      etcdMemberList: () => ({
        messages: [{ members: [{ id: 2n ** 63n, hostname: "cp-1", isLearner: true }] }],
      }),
      hostname: () => ({ messages: [] }),
      reboot: () => ({ messages: [{ metadata: { error: "not now" } }] }),
    });
    router.service(ClusterService, {
      async *healthCheck(request, context) {
        note(
          `HealthCheck ${request.waitTimeout?.seconds} ${request.clusterInfo?.controlPlaneNodes.join()} ${request.clusterInfo?.workerNodes.join()}`,
          context,
        );
        yield* behaviour.health?.(context) ?? [];
      },
    });
    router.service(State, {
      async *list({ type }) {
        for (const found of resources[type] ?? []) yield { resource: found };
      },
      get({ type, id }) {
        const found = resources[type]?.find(({ metadata }) => metadata.id === id);
        if (!found) throw new ConnectError("no such resource", Code.NotFound);
        return { resource: found };
      },
      async *watch({ type, options, apiVersion }, context) {
        assert.equal(apiVersion, 1);
        yield { event: [] };
        const [first] = resources[type] ?? [];
        if (options?.bootstrapContents && first) {
          yield {
            event: [{ eventType: EventType.CREATED, resource: first }, { eventType: EventType.BOOTSTRAPPED }],
          };
          yield { event: [{ eventType: EventType.UPDATED, resource: first, old: first }] };
          yield { event: [{ eventType: EventType.DESTROYED, resource: { metadata: { id: "sda" } } }] };
        }
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve, { once: true }));
        behaviour.watchClosed?.();
      },
    });
  };
}

async function rejectsWith(
  promise: Promise<unknown>,
  reason: TalosErrorReason,
  kind?: TalosErrorClass,
): Promise<TalosError> {
  let failure: unknown;
  try {
    await promise;
  } catch (error) {
    failure = error;
  }
  assert(failure instanceof TalosError, `expected a TalosError, got ${String(failure)}`);
  assert.equal(failure.reason, reason, failure.message);
  if (kind) assert.equal(failure.class, kind);
  return failure;
}

describe("maintenance mode", () => {
  const behaviour: Behaviour = { calls: [] };
  let node: TlsNode;
  before(async () => {
    node = await startTlsNode({ routes: routesOf(behaviour) });
  });
  after(() => node.close());
  const connect = (fingerprint?: string): TalosClient =>
    connectTalos({
      address: "127.0.0.1",
      port: node.port,
      edges,
      credentials: fingerprint === undefined ? { kind: "maintenance" } : { kind: "maintenance", fingerprint },
    });

  test("a probe tells version, identity and interfaces, in the node's order", async () => {
    const seen = await probe("127.0.0.1", { edges, port: node.port });
    assert.equal(seen.version, "v1.13.0");
    assert.equal(seen.uuid, uuid);
    assert.match(seen.fingerprint, /^[A-Za-z0-9+/]{43}=$/);
    assert.deepEqual(seen.interfaces, [
      { name: "eth0", mac: "52:54:00:00:00:01", addresses: ["192.0.2.10/24", "fe80::1/64"] },
      { name: "lo", mac: "", addresses: ["127.0.0.1/8"] },
    ]);
    assert.equal(seen.memory?.totalBytes, 8 * 1024 ** 3);
    assert.equal(seen.disks[0]?.sizeBytes, 100_000_000_000);
    assert.equal(seen.cpus[0]?.coreCount, 8);
  });

  test("a node that refuses Version still tells it as a resource", async () => {
    behaviour.versionError = new ConnectError(
      "API is not implemented in maintenance mode",
      Code.Unimplemented,
    );
    const seen = await probe("127.0.0.1", { edges, port: node.port });
    delete behaviour.versionError;
    assert.equal(seen.version, "v1.12.1");
  });

  test("a pinned key lets the same node in and stops another before any request", async () => {
    using first = connect();
    const { fingerprint, commonName } = await first.connect();
    assert.equal(commonName, "maintenance-service.talos.dev");
    using pinned = connect(fingerprint);
    assert.equal((await pinned.version()).tag, "v1.13.0");
    behaviour.calls.length = 0;
    using other = connect(Buffer.alloc(32).toString("base64"));
    await rejectsWith(other.applyConfiguration({ config: "secret" }), "identity_changed", "person");
    assert.deepEqual(behaviour.calls, []);
  });

  test("another SMBIOS UUID stops an apply before the configuration is sent", async () => {
    behaviour.calls.length = 0;
    using client = connect();
    await rejectsWith(
      client.applyConfiguration({ config: "secret", expectUuid: "00000000-0000-0000-0000-000000000000" }),
      "identity_changed",
    );
    assert.deepEqual(behaviour.calls, []);
    const applied = await client.applyConfiguration({ config: "x", expectUuid: uuid });
    assert.deepEqual(applied, { mode: "no-reboot", details: "Applied", warnings: ["w"] });
  });

  test("a watch tells what exists, then changes, and ends on the node when it is left", async () => {
    using client = connect();
    const closed = new Promise<void>((resolve) => (behaviour.watchClosed = resolve));
    const seen: string[] = [];
    for await (const event of client.state.watch(resourceKinds.disk)) {
      seen.push(event.type);
      if (event.type === "destroyed") break;
    }
    assert.deepEqual(seen, ["created", "bootstrapped", "updated", "destroyed"]);
    await closed;
  });

  test("a missing resource is undefined, a present one is decoded", async () => {
    using client = connect();
    assert.equal(await client.state.get(resourceKinds.disk, "sdz"), undefined);
    assert.deepEqual(await client.machineStatus(), {
      stage: "maintenance",
      ready: true,
      unmetConditions: [],
    });
  });

  test("an admin client sees that the certificate is not its cluster's", async () => {
    const ca = await generateAuthority({ organization: "talos", algorithm: "ed25519", edges });
    const { crt, key } = await issueAdminCertificate({ ca, edges });
    using client = connectTalos({
      address: "127.0.0.1",
      port: node.port,
      edges,
      credentials: { kind: "admin", ca: ca.crt, cert: crt, key },
    });
    await rejectsWith(client.version(), "untrusted_certificate", "wait");
  });
});

describe("a configured node", () => {
  const behaviour: Behaviour = { calls: [] };
  let node: TlsNode;
  let ca: CertificateAndKey;
  let credentials: TalosCredentials;
  before(async () => {
    ca = await generateAuthority({ organization: "talos", algorithm: "ed25519", edges });
    const { crt, key } = await issueAdminCertificate({ ca, edges });
    credentials = { kind: "admin", ca: ca.crt, cert: crt, key };
    node = await startTlsNode({ routes: routesOf(behaviour), ca });
  });
  after(() => node.close());
  const connect = (target?: string): TalosClient =>
    connectTalos({
      address: "127.0.0.1",
      port: node.port,
      edges,
      credentials,
      ...(target === undefined ? {} : { node: target }),
    });

  test("calls carry the deadline and the node they are routed to", async () => {
    behaviour.calls.length = 0;
    using client = connect("192.0.2.20");
    await client.version({ timeoutMs: 1500 });
    await client.version({ node: "192.0.2.21" });
    assert.deepEqual(behaviour.calls, [
      { method: "Version", node: "192.0.2.20", timeout: "1500m" },
      { method: "Version", node: "192.0.2.21", timeout: "30000m" },
    ]);
  });

  test("dialling without certificate says that the node is configured", async () => {
    using client = connectTalos({
      address: "127.0.0.1",
      port: node.port,
      edges,
      credentials: { kind: "maintenance" },
    });
    await rejectsWith(client.version(), "certificate_required", "person");
    await rejectsWith(probe("127.0.0.1", { edges, port: node.port }), "certificate_required");
  });

  test("a server certificate for other names is refused", async () => {
    const other = await startTlsNode({ routes: routesOf(behaviour), ca, names: ["192.0.2.1"] });
    using client = connectTalos({ address: "127.0.0.1", port: other.port, edges, credentials });
    await rejectsWith(client.version(), "untrusted_certificate");
    await other.close();
  });

  test("a certificate of another cluster gets nothing", async () => {
    const stranger = await generateAuthority({ organization: "talos", algorithm: "ed25519", edges });
    const { crt, key } = await issueCertificate({
      ca: stranger,
      edges,
      organizations: ["os:admin"],
      usage: "client",
    });
    using client = connectTalos({
      address: "127.0.0.1",
      port: node.port,
      edges,
      credentials: { kind: "admin", ca: ca.crt, cert: crt, key },
    });
    behaviour.calls.length = 0;
    // Node's TLS server hangs up without the alert that Go's sends.
    const failure = await rejectsWith(client.version(), "unreachable");
    assert.doesNotMatch(failure.message, /PRIVATE/);
    assert.deepEqual(behaviour.calls, []);
  });

  test("bootstrapping twice is no failure", async () => {
    using client = connect();
    assert.equal(await client.bootstrap(), "started");
    behaviour.bootstrapError = new ConnectError("etcd data directory is not empty", Code.AlreadyExists);
    assert.equal(await client.bootstrap(), "already");
    behaviour.bootstrapError = new ConnectError("bootstrap is not available yet", Code.FailedPrecondition);
    const failure = await rejectsWith(client.bootstrap(), "not_ready", "wait");
    assert.equal(failure.grpcCode, 9);
    delete behaviour.bootstrapError;
  });

  test("the kubeconfig comes in parts and is bounded", async () => {
    using client = connect();
    const archive = gzipSync(tarOf("kubeconfig", "apiVersion: v1\n", { cut: true }));
    behaviour.kubeconfig = [archive.subarray(0, 20), archive.subarray(20)];
    assert.equal(await client.kubeconfig(), "apiVersion: v1\n");
    behaviour.kubeconfig = [new Uint8Array(900_000), new Uint8Array(900_000)];
    await rejectsWith(client.kubeconfig(), "protocol", "fatal");
    behaviour.kubeconfig = [];
    await rejectsWith(client.kubeconfig(), "protocol");
  });

  test("the health check names the whole cluster, tells progress and ends with the stream", async () => {
    using client = connect();
    behaviour.calls.length = 0;
    behaviour.health = async function* () {
      yield { message: "waiting for etcd to be healthy: ..." };
      yield { message: "waiting for etcd to be healthy: OK" };
    };
    const progress: string[] = [];
    await client.healthCheck({
      controlPlane: ["192.0.2.10"],
      workers: ["192.0.2.20"],
      onProgress: (message) => progress.push(message),
    });
    assert.equal(behaviour.calls[0]?.method, "HealthCheck 60 192.0.2.10 192.0.2.20");
    assert.equal(progress.length, 2);
    // eslint-disable-next-line require-yield -- a stream that only fails
    behaviour.health = async function* () {
      throw new ConnectError("context deadline exceeded", Code.DeadlineExceeded);
    };
    await rejectsWith(client.healthCheck({ controlPlane: ["192.0.2.10"] }), "timeout", "retry");
  });

  test("a reset wipes what is listed and reboots", async () => {
    using client = connect();
    behaviour.calls.length = 0;
    assert.equal(await client.reset({ graceful: false, partitions: ["STATE", "EPHEMERAL"] }), "actor");
    assert.equal(
      behaviour.calls[0]?.method,
      "Reset graceful=false reboot=true wipe=STATE:true,EPHEMERAL:true",
    );
  });

  test("services and members come as plain values", async () => {
    using client = connect();
    const [etcd, kubelet] = await client.serviceList();
    assert.equal(etcd?.healthy, true);
    assert.equal(etcd?.events[0]?.at?.getTime(), 1000);
    assert.equal(kubelet?.healthy, undefined);
    const [member] = await client.etcdMemberList();
    assert.deepEqual(member, {
      id: 2n ** 63n,
      hostname: "cp-1",
      peerUrls: [],
      clientUrls: [],
      learner: true,
    });
  });

  test("an empty reply and an error inside a reply are failures", async () => {
    using client = connect();
    await rejectsWith(client.hostname(), "protocol");
    await rejectsWith(client.reboot(), "failed", "retry");
    await rejectsWith(client.shutdown(), "unsupported", "fatal");
  });

  test("every status code has a reason", async () => {
    using client = connect();
    const expected: [Code, TalosErrorReason][] = [
      [Code.Unknown, "failed"],
      [Code.InvalidArgument, "refused"],
      [Code.PermissionDenied, "denied"],
      [Code.Unauthenticated, "denied"],
      [Code.Unavailable, "unreachable"],
      [Code.NotFound, "not_found"],
      [Code.Unimplemented, "unsupported"],
      [Code.DataLoss, "protocol"],
      [Code.ResourceExhausted, "failed"],
    ];
    for (const [code, reason] of expected) {
      behaviour.versionError = new ConnectError("text of the node", code);
      const failure = await rejectsWith(client.version(), reason);
      assert.match(failure.message, /Version on 127\.0\.0\.1:\d+: text of the node/);
    }
    delete behaviour.versionError;
  });

  test("a lost connection is opened again by the next call", async () => {
    using client = connect();
    await client.version();
    behaviour.health = async function* (context) {
      yield { message: "waiting" };
      await new Promise((resolve) => context.signal.addEventListener("abort", resolve, { once: true }));
    };
    await rejectsWith(
      client.healthCheck({ controlPlane: [], onProgress: () => node.cut() }),
      "unreachable",
      "retry",
    );
    assert.equal((await client.version()).tag, "v1.13.0");
  });

  test("a closed client refuses calls", async () => {
    const client = connect();
    await client.version();
    client.close();
    await rejectsWith(client.version(), "cancelled");
  });
});

describe("nobody there", () => {
  test("a refused connection is unreachable", async () => {
    const server = net.createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as net.AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    using client = connectTalos({ address: "127.0.0.1", port, edges, credentials: { kind: "maintenance" } });
    await rejectsWith(client.version(), "unreachable", "retry");
  });

  test("a silent peer ends at the deadline, an aborted call at once", async () => {
    const sockets = new Set<net.Socket>();
    const server = net
      .createServer((socket) => sockets.add(socket.on("error", () => {})))
      .listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as net.AddressInfo;
    using client = connectTalos({ address: "127.0.0.1", port, edges, credentials: { kind: "maintenance" } });
    await rejectsWith(client.version({ timeoutMs: 50 }), "timeout", "retry");
    await rejectsWith(client.version({ signal: AbortSignal.abort() }), "cancelled");
    client.close();
    sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => server.close(resolve));
  });

  test("a peer that is no Talos node is told from one", async () => {
    const server = net.createServer((socket) =>
      socket
        .on("error", () => {})
        .resume()
        .end("HTTP/1.1 400 Bad Request\r\n\r\n"),
    );
    server.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as net.AddressInfo;
    using client = connectTalos({ address: "127.0.0.1", port, edges, credentials: { kind: "maintenance" } });
    await rejectsWith(client.version(), "unreachable");
    await new Promise((resolve) => server.close(resolve));
  });
});

test("a fingerprint is the hash of the public key, not of the certificate", async () => {
  const { X509Certificate } = await import("node:crypto");
  const ca = await generateAuthority({ algorithm: "ed25519", edges });
  const certificate = new X509Certificate(ca.crt);
  assert.equal(fingerprintOf(certificate).length, 44);
  assert.notEqual(fingerprintOf(certificate), Buffer.from(certificate.fingerprint256).toString("base64"));
});
