/**
 * The shell around this product's pages: its navigation, its notices.
 */
import { notice, shell, needsAttention, type Content } from "@kontinuum/web";
import { listHref } from "./addresses.ts";
import { instanceState, zoneState, clusterState } from "./state/state.ts";
import { processOf, type World } from "./world.ts";

/** What every page knows of its visitor and its server. */
export interface Visit {
  readonly namespace: string;
  readonly namespaces: readonly string[];
  readonly user: string;
  /** Everybody may do everything. */
  readonly anonymous: boolean;
  readonly nowMs: number;
  /** Process name and version, for the foot. */
  readonly foot: string;
  /** Address of the page, for the live re-read. */
  readonly path: string;
}

/** Renders one page. */
export function frame(
  visit: Visit,
  world: World | undefined,
  options: {
    readonly title: string;
    readonly active: string;
    readonly crumbs: readonly { readonly label: string; readonly href?: string }[];
    /** Root id of the part that re-reads itself; absent for pages that do not. */
    readonly liveId?: string;
    readonly body: Content;
  },
): string {
  const { namespace } = visit;
  const attention = (number: number): { count?: { tone: "warn"; number: number } } =>
    number > 0 ? { count: { tone: "warn", number } } : {};
  const badZones = world
    ? world.zones.filter((zone) => needsAttention(zoneWord(world, zone, visit.nowMs).tone)).length
    : 0;
  const badInstances = world
    ? world.instances.filter((item) => needsAttention(instanceState(item).tone)).length
    : 0;
  return shell({
    title: options.title,
    product: "Kontinuum",
    groups: [
      { entries: [{ label: "Topology", href: "/app/topology" }] },
      {
        title: "Cloud",
        entries: [
          { label: "Zones", href: listHref(namespace, "zones"), ...attention(badZones) },
          { label: "Clusters", href: listHref(namespace, "talosclusters") },
          { label: "Instances", href: listHref(namespace, "instances"), ...attention(badInstances) },
        ],
      },
      {
        title: "Access",
        entries: [
          { label: "Registry", href: listHref(namespace, "kontinuums") },
          { label: "Connect", href: "/app/connect" },
          ...(visit.anonymous ? [] : [{ label: "Sign out", href: "/app/logout" }]),
        ],
      },
    ],
    active: options.active,
    tenant: { current: namespace, all: visit.namespaces, href: (name) => listHref(name, "instances") },
    crumbs: options.crumbs,
    foot: visit.foot,
    user: visit.user,
    ...(options.liveId === undefined
      ? {}
      : { live: { href: visit.path, everySeconds: 5, id: options.liveId } }),
    notices: visit.anonymous
      ? notice({
          tone: "warn",
          fact: "Anonymous mode.",
          rest: "Everyone who can reach this address can change everything.",
        })
      : null,
    body: options.body,
  });
}

/** The state of a zone, with what it needs of the rest of the world. */
export function zoneWord(
  world: World,
  zone: World["zones"][number],
  nowMs: number,
): ReturnType<typeof zoneState> {
  const cluster = world.clusters.find((item) => item.metadata.name === zone.metadata.name);
  return zoneState(zone, processOf(world, zone), cluster && clusterWord(world, cluster, nowMs), nowMs);
}

/** The state of a cluster, with that of its members. */
export function clusterWord(
  world: World,
  cluster: World["clusters"][number],
  nowMs: number,
): ReturnType<typeof clusterState> {
  const pools = new Set([
    cluster.spec.controlPlane.poolRef.name,
    ...(cluster.spec.workers ?? []).map((worker) => worker.poolRef.name),
  ]);
  const bad = world.instances.some(
    (instance) =>
      pools.has(instance.metadata.labels?.["kontinuum.sh/claimed-by"] ?? "") &&
      instanceState(instance).tone === "bad",
  );
  return clusterState(cluster, bad, nowMs);
}
