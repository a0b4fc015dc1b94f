/**
 * The steps from an empty folder to a joined zone, each recognised by what the objects say.
 */
import { findCondition, isConditionTrue, type Client, type Condition } from "@kontinuum/controller";
import {
  addonKind,
  instanceKind,
  instancePoolKind,
  systemNamespace,
  talosClusterKind,
  zoneKind,
  type Addon,
  type Instance,
  type InstancePool,
  type TalosCluster,
  type Zone,
} from "../kinds/index.ts";

/** What is looked at. */
export interface DemoWorld {
  readonly zone: Zone | undefined;
  readonly cluster: TalosCluster | undefined;
  readonly pool: InstancePool | undefined;
  readonly instances: readonly Instance[];
  readonly addons: readonly Addon[];
}

/** One step. */
export interface Milestone {
  readonly text: string;
  readonly reached: (world: DemoWorld) => boolean;
}

const has = (object: { status?: { conditions?: Condition[] } } | undefined, type: string): boolean =>
  isConditionTrue(object?.status?.conditions, type);
const some = (world: DemoWorld, type: string): boolean => world.instances.some((one) => has(one, type));
const addon = (world: DemoWorld, release: string): boolean =>
  has(
    world.addons.find(({ spec }) => spec.releaseName === release),
    "Ready",
  );

/** In the order they are expected. */
export const milestones: readonly Milestone[] = [
  { text: "machines discovered over the Talos API", reached: (world) => some(world, "Discovered") },
  { text: "pool claimed its machine", reached: (world) => has(world.pool, "Ready") },
  { text: "machine took its configuration", reached: (world) => some(world, "Configured") },
  { text: "etcd bootstrapped", reached: (world) => has(world.cluster, "Bootstrapped") },
  {
    text: "control plane healthy, kubeconfig minted",
    reached: (world) => has(world.cluster, "ControlPlaneReady"),
  },
  { text: "addon gateway-api-crds applied", reached: (world) => addon(world, "gateway-api-crds") },
  { text: "addon cilium installed with helm", reached: (world) => addon(world, "cilium") },
  { text: "addon cert-manager installed with helm", reached: (world) => addon(world, "cert-manager") },
  { text: "cluster ready", reached: (world) => has(world.cluster, "Ready") },
  { text: "zone's own server installed", reached: (world) => has(world.zone, "Installed") },
  { text: "zone's server joined the registry", reached: (world) => has(world.zone, "RegistryJoined") },
  { text: "zone ready", reached: (world) => has(world.zone, "Ready") },
];

/** What a look at the world means. */
export interface Judgement {
  /** Steps that were reached since the last look, in order. */
  readonly reached: readonly Milestone[];
  readonly verdict: "ready" | "wait" | "late";
  /** Which step is waited for, and why; empty when ready. */
  readonly waitsFor: string;
}

/**
 * Judges a world of which `passed` steps were reached before, with `leftMs` to go. Steps are taken in order: a zone that
 * still calls itself ready while its only machine is gone is not ready, and the deadline ends the wait.
 */
export function judge(world: DemoWorld, passed: number, leftMs: number): Judgement {
  const reached: Milestone[] = [];
  for (let step = milestones[passed]; step?.reached(world); step = milestones[passed + reached.length])
    reached.push(step);
  const missing = milestones[passed + reached.length];
  if (!missing) return { reached, verdict: "ready", waitsFor: "" };
  const waitsFor = `waits for "${missing.text}": ${whyNotReady(world)}`;
  return { reached, verdict: leftMs > 0 ? "wait" : "late", waitsFor };
}

/** Reads everything the steps look at. */
export async function readDemoWorld(client: Client, zone: string): Promise<DemoWorld> {
  const ref = { namespace: systemNamespace, name: zone };
  const [zoneObject, cluster, pool, instances, addons] = await Promise.all([
    client.find(zoneKind.resource, ref),
    client.find(talosClusterKind.resource, ref),
    client.find(instancePoolKind.resource, ref),
    client.list(instanceKind.resource, { namespace: systemNamespace }),
    client.list(addonKind.resource, { namespace: systemNamespace }),
  ]);
  return { zone: zoneObject, cluster, pool, instances: instances.items, addons: addons.items };
}

/** Why the zone is where it is, in one line, from the outside in. */
function whyNotReady({ zone, cluster, pool, instances, addons }: DemoWorld): string {
  const parts = [
    explain("zone", findCondition(zone?.status?.conditions, "Ready")),
    explain("cluster", findCondition(cluster?.status?.conditions, "Ready")),
    explain("pool", findCondition(pool?.status?.conditions, "Ready")),
    ...instances.map((one) =>
      explain(one.metadata.name, findCondition(one.status?.conditions, "Discovered")),
    ),
    ...addons.map((one) => explain(one.metadata.name, findCondition(one.status?.conditions, "Ready"))),
  ].filter((part) => part !== "");
  return parts.length === 0 ? "nothing was reported yet" : parts.join("; ");
}

function explain(name: string, condition: Condition | undefined): string {
  if (!condition || condition.status === "True") return "";
  return `${name}: ${condition.reason}${condition.message === "" ? "" : ` (${condition.message})`}`;
}
