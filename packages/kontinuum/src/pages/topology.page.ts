/**
 * `/app/topology`: the whole installation in one picture, and what needs a look.
 */
import {
  age,
  compareTones,
  empty,
  html,
  linkButton,
  pageHead,
  section,
  shortAge,
  status,
  table,
  topologySvg,
  type Status,
  type Topology,
  type TopologyCell,
  type TopologyZone,
} from "@kontinuum/web";
import { labels, type Instance } from "../kinds/index.ts";
import { listHref, objectHref } from "./addresses.ts";
import { clusterWord, frame, zoneWord, type Visit } from "./frame.ts";
import { newest } from "./state/condition-lookup.ts";
import { instanceState, processState } from "./state/state.ts";
import { claimedBy, membersOf, poolsOf, processOf, type World } from "./world.ts";

/** Machine providers of this hub, for the picture. */
export interface ProviderView {
  readonly name: string;
  readonly detail: string;
  readonly healthy: boolean;
  readonly machines: number;
}

function cellOf(world: World, instance: Instance): TopologyCell {
  const { word, tone } = instanceState(instance);
  const name = instance.metadata.name;
  return {
    id: `i-${instance.metadata.uid ?? name}`,
    href: objectHref(world.namespace, "instances", name),
    title: `${name}: ${word}`,
    tone,
  };
}

/** Region and zone a machine is labelled with. */
const placeOf = (instance: Instance): string =>
  `${instance.metadata.labels?.[labels.region] ?? ""}/${instance.metadata.labels?.[labels.zone] ?? ""}`;

/** Turns the world into the picture's data; exported for its test. */
export function topologyOf(
  world: World,
  store: readonly string[],
  providers: readonly ProviderView[],
  nowMs: number,
): Topology {
  const hubs = world.processes.filter((process) => !process.spec.region);
  const regions = new Map<string, TopologyZone[]>();
  for (const zone of world.zones) {
    const clusters = world.clusters.filter((cluster) => cluster.metadata.name === zone.metadata.name);
    const heartbeat = processOf(world, zone)?.status?.lastHeartbeatTime;
    const word = zoneWord(world, zone, nowMs);
    const why = newest(zone.status?.conditions);
    const list = regions.get(zone.spec.region) ?? [];
    list.push({
      name: zone.spec.zone,
      href: objectHref(world.namespace, "zones", zone.metadata.name),
      word: word.word,
      tone: word.tone,
      detail: zone.spec.domain
        ? `${zone.spec.zone}.${zone.spec.region}.${zone.spec.domain}`
        : word.tone === "ok"
          ? zone.metadata.name
          : (why?.message ?? "not reconciled yet"),
      link: heartbeat === undefined ? "pending" : word.tone === "unknown" ? "silent" : "joined",
      linkText: heartbeat === undefined ? "not joined yet" : `${shortAge(nowMs - Date.parse(heartbeat))} ago`,
      clusters: clusters.map((cluster) => {
        const members = poolsOf(cluster).map(({ role, pool }) => ({
          role,
          machines: membersOf(world, pool),
        }));
        const of = (role: string): TopologyCell[] =>
          members
            .filter((item) => item.role === role)
            .flatMap((item) => item.machines.map((machine) => cellOf(world, machine)));
        return {
          name: cluster.metadata.name,
          href: objectHref(world.namespace, "talosclusters", cluster.metadata.name),
          controlPlane: of("control plane"),
          workers: of("worker"),
        };
      }),
      unclaimed: world.instances
        .filter(
          (instance) =>
            claimedBy(instance) === undefined &&
            instance.metadata.labels?.[labels.region] === zone.spec.region &&
            instance.metadata.labels?.[labels.zone] === zone.spec.zone,
        )
        .map((instance) => cellOf(world, instance)),
    });
    regions.set(zone.spec.region, list);
  }
  const placedZones = new Set(world.zones.map(({ spec }) => `${spec.region}/${spec.zone}`));
  return {
    hub: {
      replicas: hubs.map((process) => ({
        name: process.metadata.name,
        tone: processState(process, nowMs).tone,
        note: process.status?.version ?? "",
      })),
      store,
    },
    providers: providers.map(({ name, detail, healthy, machines }) => ({
      name,
      detail,
      tone: healthy ? "ok" : "bad",
      count: machines,
    })),
    regions: [...regions].map(([name, zones]) => ({ name, zones })),
    unclaimed: world.instances
      .filter((instance) => claimedBy(instance) === undefined && !placedZones.has(placeOf(instance)))
      .map((instance) => cellOf(world, instance)),
  };
}

interface Attention {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly href: string;
  readonly state: Status;
  readonly why: string;
  readonly since: string | undefined;
}

function attention(world: World, nowMs: number): Attention[] {
  const { namespace } = world;
  const list: Attention[] = [
    ...world.zones.map((zone) => ({
      id: `a-${zone.metadata.uid}`,
      kind: "Zone",
      name: zone.metadata.name,
      href: objectHref(namespace, "zones", zone.metadata.name),
      state: zoneWord(world, zone, nowMs),
      why: newest(zone.status?.conditions)?.message ?? "",
      since: newest(zone.status?.conditions)?.lastTransitionTime ?? zone.metadata.creationTimestamp,
    })),
    ...world.clusters.map((cluster) => ({
      id: `a-${cluster.metadata.uid}`,
      kind: "Cluster",
      name: cluster.metadata.name,
      href: objectHref(namespace, "talosclusters", cluster.metadata.name),
      state: clusterWord(world, cluster, nowMs),
      why: newest(cluster.status?.conditions)?.message ?? "",
      since: newest(cluster.status?.conditions)?.lastTransitionTime ?? cluster.metadata.creationTimestamp,
    })),
    ...world.instances.map((instance) => ({
      id: `a-${instance.metadata.uid}`,
      kind: "Instance",
      name: instance.metadata.name,
      href: objectHref(namespace, "instances", instance.metadata.name),
      state: instanceState(instance),
      why: newest(instance.status?.conditions)?.message ?? "",
      since: newest(instance.status?.conditions)?.lastTransitionTime ?? instance.metadata.creationTimestamp,
    })),
  ];
  return list
    .filter(({ state }) => state.tone !== "ok" && state.tone !== "free" && state.tone !== "off")
    .sort((a, b) => compareTones(a.state.tone, b.state.tone) || (a.name < b.name ? -1 : 1));
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Renders the page. */
export function topologyPage(
  visit: Visit,
  world: World,
  store: readonly string[],
  providers: readonly ProviderView[],
): string {
  const view = topologyOf(world, store, providers, visit.nowMs);
  const waiting = attention(world, visit.nowMs);
  const sentence = `${plural(view.regions.length, "region")}, ${plural(world.zones.length, "zone")}, ${plural(world.clusters.length, "cluster")}, ${plural(world.instances.length, "machine")}. ${waiting.length === 0 ? "Nothing needs attention." : `${plural(waiting.length, "object")} in progress or in need of attention.`}`;
  const picture = html`<div class="topology">
    ${topologySvg(view, `Topology. ${sentence}`, "wide")}${topologySvg(view, `Topology. ${sentence}`, "narrow")}
  </div>`;
  return frame(visit, world, {
    title: "Topology",
    active: "/app/topology",
    crumbs: [{ label: visit.namespace, href: listHref(visit.namespace, "instances") }, { label: "Topology" }],
    liveId: "topology-content",
    body: html`${pageHead({
      title: "Topology",
      sentence,
      verbs: html`${linkButton({ href: listHref(visit.namespace, "zones"), label: "Show as table" })}${linkButton({ href: "/app/zones/add", label: "Add zone", kind: "primary" })}`,
    })}
    ${
      world.zones.length === 0
        ? section({
            title: "Zones",
            body: empty({
              title: "No zones yet",
              text: "A zone is one site with its own cluster. Adding one needs a machine that has booted Talos, or a provider that can create it.",
              action: linkButton({ href: "/app/zones/add", label: "Add zone" }),
            }),
          })
        : picture
    }
    ${
      waiting.length === 0
        ? null
        : section({
            title: "Needs attention",
            count: waiting.length,
            body: table<Attention>({
              label: "Needs attention",
              rows: waiting.slice(0, 50),
              rowId: (row) => row.id,
              columns: [
                {
                  title: "Object",
                  isName: true,
                  cell: (row) => html`${row.kind} <a href="${row.href}">${row.name}</a>`,
                },
                { title: "State", cell: (row) => status(row.state) },
                { title: "Why", cell: (row) => row.why || "-" },
                { title: "Since", align: "right", cell: (row) => age(row.since, visit.nowMs) },
              ],
            }),
          })
    }`,
  });
}
