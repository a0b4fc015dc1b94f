/**
 * Clusters: the list, and one cluster with its pools, machines, addons and kubeconfig.
 */
import {
  age,
  conditions,
  empty,
  facts,
  html,
  linkButton,
  pageHead,
  section,
  snippet,
  status,
  statusChip,
  table,
} from "@kontinuum/web";
import { defaultKubernetesVersion, defaultTalosVersion, type TalosCluster } from "../kinds/index.ts";
import { listHref, objectHref } from "./addresses.ts";
import { conditionViews } from "./condition-view.ts";
import { clusterWord, frame, type Visit } from "./frame.ts";
import { poolState } from "./state/state.ts";
import { membersOf, poolsOf, type World } from "./world.ts";
import { clusterSections } from "./zone.page.ts";

/** All clusters of a namespace. */
export function clustersPage(visit: Visit, world: World): string {
  const href = listHref(visit.namespace, "talosclusters");
  const body =
    world.clusters.length === 0
      ? empty({
          title: "No clusters yet",
          text: "A cluster is made when a zone is added.",
          action: linkButton({ href: "/app/zones/add", label: "Add zone" }),
        })
      : table<TalosCluster>({
          label: "Clusters",
          rows: world.clusters,
          rowId: (cluster) => `c-${cluster.metadata.uid}`,
          isLeaving: (cluster) => cluster.metadata.deletionTimestamp !== undefined,
          columns: [
            {
              title: "Name",
              isName: true,
              cell: ({ metadata }) =>
                html`<a href="${objectHref(visit.namespace, "talosclusters", metadata.name)}"
                  >${metadata.name}</a
                >`,
            },
            { title: "State", cell: (cluster) => status(clusterWord(world, cluster, visit.nowMs)) },
            { title: "Control plane pool", cell: ({ spec }) => spec.controlPlane.poolRef.name },
            { title: "Talos", priority: 2, cell: ({ spec }) => spec.talos?.version ?? "default" },
            { title: "Kubernetes", priority: 2, cell: ({ spec }) => spec.kubernetes?.version ?? "default" },
            {
              title: "Age",
              align: "right",
              cell: ({ metadata }) => age(metadata.creationTimestamp, visit.nowMs),
            },
          ],
        });
  return frame(visit, world, {
    title: "Clusters",
    active: href,
    crumbs: [{ label: visit.namespace, href: listHref(visit.namespace, "instances") }, { label: "Clusters" }],
    liveId: "talosclusters-content",
    body: html`${pageHead({ title: "Clusters" })}${section({ title: "Clusters", count: world.clusters.length, body })}`,
  });
}

/** One cluster; `hasKubeconfig` says whether one can be downloaded. */
export function clusterPage(
  visit: Visit,
  world: World,
  cluster: TalosCluster,
  hasKubeconfig: boolean,
): string {
  const name = cluster.metadata.name;
  const list = listHref(visit.namespace, "talosclusters");
  const pools = poolsOf(cluster);
  return frame(visit, world, {
    title: name,
    active: list,
    crumbs: [{ label: "Clusters", href: list }, { label: name }],
    liveId: "taloscluster-content",
    body: html`${pageHead({ title: name, chip: statusChip(clusterWord(world, cluster, visit.nowMs)) })}
      <div class="cols detail">
        <div class="stack">
          ${section({
            title: "Pools",
            count: pools.length,
            body: table<(typeof pools)[number]>({
              label: "Pools",
              rows: pools,
              rowId: ({ role, pool }) => `p-${role.replaceAll(" ", "-")}-${pool}`,
              columns: [
                { title: "Pool", isName: true, cell: ({ pool }) => pool },
                { title: "Role", cell: ({ role }) => role },
                {
                  title: "State",
                  cell: ({ pool }) => {
                    const found = world.pools.find((item) => item.metadata.name === pool);
                    return found ? status(poolState(found, membersOf(world, pool).length)) : "Pending";
                  },
                },
                {
                  title: "Replicas",
                  align: "right",
                  cell: ({ pool }) => {
                    const found = world.pools.find((item) => item.metadata.name === pool);
                    return found ? `${found.status?.readyReplicas ?? 0}/${found.spec.replicas}` : "Pending";
                  },
                },
              ],
            }),
          })}
          ${clusterSections(visit, world, name)}
          ${section({
            title: "Kubeconfig",
            body: hasKubeconfig
              ? html`<div class="section-body stack">
                  <p>
                    ${linkButton({ href: `${objectHref(visit.namespace, "talosclusters", name)}/kubeconfig`, label: "Download kubeconfig" })}
                  </p>
                  ${snippet("kubeconfig-cli", `kontinuum config import ${name}-kubeconfig.yaml`)}
                </div>`
              : html`<p class="section-body">Bootstrapping has not finished; there is no kubeconfig yet.</p>`,
          })}
        </div>
        <div class="stack">
          ${section({
            title: "Facts",
            body: facts([
              ["Talos", cluster.spec.talos?.version ?? `default (${defaultTalosVersion})`],
              ["Kubernetes", cluster.spec.kubernetes?.version ?? `default (${defaultKubernetesVersion})`],
              ["Endpoint", cluster.status?.endpoint],
              ["Added", age(cluster.metadata.creationTimestamp, visit.nowMs, " ago")],
            ]),
          })}
          ${section({ title: "Conditions", body: conditions(conditionViews(cluster.status?.conditions), visit.nowMs) })}
        </div>
      </div>`,
  });
}
