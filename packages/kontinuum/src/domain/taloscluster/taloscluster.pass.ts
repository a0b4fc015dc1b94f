/**
 * One pass over a living cluster: every step that is due, in order, each safe to repeat.
 *
 * keys → endpoint → configure → bootstrap → kubeconfig → addons → left nodes → health → members → conditions. What must
 * never happen twice or differently (which keys, which endpoint, which machine starts etcd) is written
 * before it is acted on. A pass never waits for the next: it does what can be done now and reports the rest.
 */
import { isDeepStrictEqual } from "node:util";
import { isConditionTrue, type CachedClient } from "@kontinuum/controller";
import { CodedError, isCoded, messageOf, type Edges, type Log } from "@kontinuum/std";
import {
  endpointOf,
  generateSecretsBundle,
  parseSecretsBundle,
  serializeSecretsBundle,
  type SecretsBundle,
} from "@kontinuum/talos";
import {
  addonKind,
  defaultTalosVersion,
  instanceKind,
  systemNamespace,
  talosClusterKind,
  type TalosCluster,
  type TalosClusterStatus,
} from "../../kinds/index.ts";
import type { Cidr } from "../../config/cidr.ts";
import { seedAddons } from "../addon/addon.seed.ts";
import { mayDial } from "../instance/dial-policy.ts";
import { withDownstream } from "../downstream/downstream.ts";
import type { Timings } from "../timings.ts";
import { writeStatus } from "../transition-events.ts";
import {
  bundleText,
  clusterSecretName,
  ensureClusterSecret,
  kubeconfigText,
  storeKubeconfig,
} from "./cluster-secrets.ts";
import { reportMember } from "./member-status.ts";
import { membersOf, type Member } from "./members.ts";
import { describeTalosFailure, talosAccess, type TalosAccess } from "./talos-access.ts";
import { configureMember, isConfigured } from "./taloscluster.configure.ts";
import type { HealthMemory } from "./taloscluster.health.ts";
import { currentKubeconfig } from "./taloscluster.kubeconfig.ts";
import { removeLeftNodes } from "./taloscluster.nodes.ts";
import { addonsReport, clusterStatus, type ClusterReport } from "./taloscluster.status.ts";

/** What a pass works with. */
export interface PassContext {
  readonly client: CachedClient;
  readonly edges: Edges;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly timings: Timings;
  readonly health: HealthMemory;
  /** Special ranges that machines may be in. */
  readonly allowed: readonly Cidr[];
}

/** One pass over one cluster. */
export class ClusterPass {
  readonly #context: PassContext;
  #cluster: TalosCluster;
  #members: Member[] = [];

  constructor(context: PassContext, cluster: TalosCluster) {
    this.#context = context;
    this.#cluster = cluster;
  }

  /** Does what can be done now. Resolves with when to look again, in milliseconds. */
  async run(): Promise<number> {
    try {
      return await this.#steps();
    } catch (error) {
      // Versions we don't know, an endpoint that is no host: only a change of the spec helps.
      if (!isCoded(error, "invalid_argument")) throw error;
      await this.#report(notReady("InvalidSpec", error.message));
      return this.#context.timings.healthRecheckMs;
    }
  }

  async #steps(): Promise<number> {
    const { client, edges, timings } = this.#context;
    const secret = await ensureClusterSecret(client, this.#cluster, () => this.#newBundle());
    const bundle = parseSecretsBundle(bundleText(secret));
    const access = talosAccess(bundle, edges, this.#context.allowed);
    const { items } = await client.list(instanceKind.resource, {
      namespace: this.#cluster.metadata.namespace,
    });
    this.#members = membersOf(this.#cluster, items);
    await this.#settleEndpoint();
    const host = this.#cluster.status?.endpoint;
    if (host === undefined || this.#controlPlane().length === 0) {
      await this.#report(noMachines);
      return timings.retryMs;
    }
    await this.#checkEndpoint(host);
    const endpoint = endpointOf(host);
    await this.#configure(access, bundle, endpoint);
    const bootstrap = await this.#bootstrap(access);
    if (bootstrap) {
      await this.#report(bootstrap);
      return timings.retryMs;
    }
    const { name: clusterName } = this.#cluster.metadata;
    const kubeconfig = await currentKubeconfig(kubeconfigText(secret), {
      bundle,
      endpoint,
      clusterName,
      edges,
    });
    await storeKubeconfig(client, secret, kubeconfig);
    // Before the health check: machines become ready only after the addon that brings the network.
    await seedAddons(client, this.#cluster);
    await this.#forgetLeftMachines(kubeconfig);
    return this.#converge(access);
  }

  /** Best effort: while the cluster's own API is not up there is nobody to ask, and the next pass tries again. */
  async #forgetLeftMachines(kubeconfig: string): Promise<void> {
    const { edges, log, signal } = this.#context;
    const names = this.#members.map(({ instance }) => instance.metadata.name);
    try {
      const removed = await withDownstream(kubeconfig, edges, ({ client }) =>
        removeLeftNodes(client, names, signal),
      );
      if (removed.length > 0) log.info("removed nodes of machines that left", { nodes: removed });
    } catch (error) {
      if (signal.aborted) throw error;
      log.debug("the cluster's API does not answer yet", { reason: messageOf(error) });
    }
  }

  #controlPlane(): Member[] {
    return this.#members.filter(({ role }) => role === "controlplane");
  }

  async #newBundle(): Promise<string> {
    const talosVersion = this.#cluster.spec.talos?.version || defaultTalosVersion;
    return serializeSecretsBundle(await generateSecretsBundle({ talosVersion, edges: this.#context.edges }));
  }

  /** The address every configuration will name, and where the keys lie: chosen once, kept in status. */
  async #settleEndpoint(): Promise<void> {
    const endpoint = chooseEndpoint(this.#cluster, this.#controlPlane());
    await this.#save({
      ...this.#cluster.status,
      secretRef: { name: clusterSecretName(this.#cluster), namespace: systemNamespace },
      ...(endpoint === undefined ? {} : { endpoint }),
    });
  }

  /** The endpoint is dialled by this hub, and users choose it: it must not lead where machines may not be. */
  async #checkEndpoint(host: string): Promise<void> {
    const { edges, allowed } = this.#context;
    const addresses = await edges.network.resolve(host);
    const refused = addresses.find((address) => !mayDial(address, allowed));
    if (refused === undefined) return;
    throw new CodedError(
      "invalid_argument",
      `the endpoint ${host} is at ${refused}, which is not an address machines may have here`,
    );
  }

  /** Control plane always; workers once there is something they can join. */
  async #configure(access: TalosAccess, bundle: SecretsBundle, endpoint: string): Promise<void> {
    const { client, edges, log, signal } = this.#context;
    const ready = isConditionTrue(this.#cluster.status?.conditions, "Bootstrapped");
    const context = {
      client,
      clock: edges.clock,
      log,
      access,
      bundle,
      cluster: this.#cluster,
      endpoint,
      signal,
    };
    const members: Member[] = [];
    for (const member of this.#members) {
      const due = member.role === "controlplane" || ready;
      const now = due ? await configureMember(context, member) : member;
      if (now) members.push(now);
    }
    this.#members = members;
  }

  /** Starts etcd on one machine, once. A report when the cluster can't go on yet. */
  async #bootstrap(access: TalosAccess): Promise<readonly ClusterReport[] | undefined> {
    const { log, signal } = this.#context;
    if (isConditionTrue(this.#cluster.status?.conditions, "Bootstrapped")) return undefined;
    const configured = this.#controlPlane().filter(({ instance }) => isConfigured(instance));
    const chosen = this.#cluster.status?.bootstrapInstance;
    const member = configured.find(({ instance }) => instance.metadata.name === chosen) ?? configured[0];
    if (!member)
      return notReady("Bootstrapping", "waiting for a control-plane machine to take its configuration");
    await this.#save({ ...this.#cluster.status, bootstrapInstance: member.instance.metadata.name });
    try {
      const answer = await access.asAdmin(member.address, (talos) => talos.bootstrap({ signal }));
      log.info("bootstrapped the cluster", { instance: member.instance.metadata.name, answer });
    } catch (error) {
      if (signal.aborted) throw error;
      return notReady("Bootstrapping", `starting etcd: ${describeTalosFailure(error)}`);
    }
    await this.#report([
      { type: "Bootstrapped", holds: true, reason: "Bootstrapped", message: "etcd was started" },
    ]);
    return undefined;
  }

  /** Health, members, and what follows for the cluster. */
  async #converge(access: TalosAccess): Promise<number> {
    const { client, timings, health, signal } = this.#context;
    const { namespace, name } = this.#cluster.metadata;
    const key = `${namespace ?? ""}/${name}`;
    const problem = await health.check(
      key,
      this.#members.filter(({ instance }) => isConfigured(instance)),
      access,
      signal,
    );
    await this.#join(access, problem);
    if (problem !== undefined) {
      const was = isConditionTrue(this.#cluster.status?.conditions, "ControlPlaneReady");
      const seen = was || isFormerlyReady(this.#cluster) ? "Unhealthy" : "Bootstrapping";
      await this.#report(notReady(seen, problem));
      return timings.retryMs;
    }
    const { items: addons } = await client.list(addonKind.resource, { namespace });
    const ready = addonsReport(addons.filter(({ spec }) => spec.talosClusterRef.name === name));
    await this.#report([
      {
        type: "ControlPlaneReady",
        holds: true,
        reason: "Healthy",
        message: "the control plane passes its health check",
      },
      ready,
    ]);
    const settled =
      ready.holds &&
      this.#members.every(({ instance }) => isConditionTrue(instance.status?.conditions, "Ready"));
    return settled ? health.nextCheckMs(key) : timings.retryMs;
  }

  /** Asks machines that have not joined whether they have, and says of each whether it is well. */
  async #join(access: TalosAccess, problem: string | undefined): Promise<void> {
    const { client, edges, log, signal } = this.#context;
    const told = { client, clock: edges.clock, log };
    for (const [index, member] of this.#members.entries()) {
      let { instance } = member;
      if (!isConfigured(instance)) continue;
      if (!isConditionTrue(instance.status?.conditions, "Joined")) {
        const version = await access
          .asAdmin(member.address, (talos) => talos.version({ signal }))
          .catch(() => undefined);
        if (!version) continue;
        const joined = {
          type: "Joined",
          holds: true,
          reason: "Joined",
          message: "the machine answers to the cluster's keys",
        } as const;
        instance = await reportMember(told, instance, [joined], {
          talos: { version: version.tag },
        });
      }
      const well = problem === undefined;
      const message = problem ?? "the cluster passes its health check";
      const ready = { type: "Ready", holds: well, reason: well ? "Healthy" : "Unhealthy", message } as const;
      instance = await reportMember(told, instance, [ready]);
      this.#members[index] = { ...member, instance };
    }
  }

  async #report(reports: readonly ClusterReport[]): Promise<void> {
    await this.#save(clusterStatus(this.#cluster, reports, this.#context.edges.clock));
  }

  async #save(status: TalosClusterStatus): Promise<void> {
    if (isDeepStrictEqual(this.#cluster.status ?? {}, status)) return;
    const { client, edges, log } = this.#context;
    const told = { client, clock: edges.clock, log };
    this.#cluster = await writeStatus(told, talosClusterKind.resource, this.#cluster, status);
  }
}

/**
 * Host of the Kubernetes API: what the spec says, else the one in use, else the first machine. One in use is given up
 * only when its machine left the cluster and another one serves: machines find each other without it, but this hub
 * and new machines would knock at a closed door. Pure.
 */
export function chooseEndpoint(
  { spec, status }: TalosCluster,
  controlPlane: readonly Member[],
): string | undefined {
  if (spec.controlPlane.endpoint) return spec.controlPlane.endpoint;
  const used = status?.endpoint;
  if (used === undefined) return controlPlane[0]?.address;
  if (controlPlane.some(({ address }) => address === used)) return used;
  return controlPlane.find(({ instance }) => isConfigured(instance))?.address ?? used;
}

const noMachines: readonly ClusterReport[] = notReady(
  "WaitingForInstances",
  "the control-plane pool holds no discovered machine yet",
);

function notReady(reason: string, message: string): ClusterReport[] {
  return [
    { type: "ControlPlaneReady", holds: false, reason, message },
    { type: "Ready", holds: false, reason: "ControlPlaneNotReady", message },
  ];
}

/** A control plane that was well before is broken when it is not; one that never was is still starting. */
function isFormerlyReady({ status }: TalosCluster): boolean {
  return (status?.conditions ?? []).some(
    ({ type, reason }) => type === "ControlPlaneReady" && reason === "Unhealthy",
  );
}
