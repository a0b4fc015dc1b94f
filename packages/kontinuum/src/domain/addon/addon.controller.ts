/**
 * Addons: charts kept installed in clusters, in waves, and their health.
 *
 * Each pass takes the same steps in the same order (wait for the cluster, resolve, install, definitions,
 * pods) and reports the first that does not hold. Nothing is uninstalled when an addon is switched off.
 */
import {
  defineController,
  isDeleting,
  parseKey,
  watchOf,
  type CachedClient,
  type DefinedController,
} from "@kontinuum/controller";
import { at, isCoded, messageOf, stringAt, type Edges } from "@kontinuum/std";
import {
  addonKind,
  annotations,
  instanceKind,
  talosClusterKind,
  type Addon,
  type TalosCluster,
} from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { writeStatus } from "../transition-events.ts";
import { withDownstream, type Downstream } from "../downstream/downstream.ts";
import { findClusterSecret, kubeconfigText } from "../taloscluster/cluster-secrets.ts";
import { membersOf } from "../taloscluster/members.ts";
import { leaseRetry, objectKey } from "../zone-lease/zone-leases.ts";
import { applyDocuments } from "./addon.apply.ts";
import { missingDefinition } from "./addon.definitions.ts";
import { unhealthyPart } from "./addon.health.ts";
import { helmInstall, releaseDescription } from "./addon.helm-install.ts";
import { isEnabled, resolveAddon, type ResolvedAddon } from "./addon.resolve.ts";
import { addonStatus, type AddonOutcome } from "./addon.status.ts";
import { chartValues, valuesContext } from "./addon.values.ts";
import { blockedBy } from "./addon.waves.ts";
import { chartDocuments } from "./chart-documents.ts";
import type { ChartFetcher } from "./chart-fetch.ts";
import { localChart, type ChartSource } from "./chart-source.ts";
import { pinFor, pinOf } from "./addon.pin.ts";
import type { Helm } from "./helm.ts";

/** Charts worked on at the same time. */
const concurrency = 4;

/** The controller `addon`. `helm` is asked for when the first chart is due, so that a hub without clusters needs none. */
export function addonController(
  context: DomainContext,
  helm: () => Promise<Helm>,
  fetcher: ChartFetcher,
): DefinedController {
  const { timings, leases } = context;
  return defineController({
    name: "addon",
    concurrency,
    watches: [watchOf(addonKind.resource)],
    async reconcile(key, { client, edges, signal, log }) {
      let addon = await client.find(addonKind.resource, parseKey(key));
      if (!addon || isDeleting(addon) || !isEnabled(addon)) return;
      const { namespace } = addon.metadata;
      const cluster = await client.find(talosClusterKind.resource, {
        namespace,
        name: addon.spec.talosClusterRef.name,
      });
      if (!cluster || isDeleting(cluster)) return;
      const lease = objectKey("taloscluster", cluster);
      if (!(await leases.tryAcquire(client, lease))) {
        return leaseRetry(timings.retryMs, edges.random);
      }
      const { items: siblings } = await client.list(addonKind.resource, { namespace });
      if (blockedBy(addon, siblings).length > 0) return { requeueAfterMs: timings.retryMs };
      const secret = await findClusterSecret(client, cluster);
      const kubeconfig = secret && kubeconfigText(secret);
      if (kubeconfig === undefined) return { requeueAfterMs: timings.retryMs };
      const replicas = await controlPlaneReplicas(client, cluster);
      const known = addon;
      const outcome = await leases.whileHeld(client, lease, signal, (held) => {
        const pass = new AddonPass(context, edges, held, helm, fetcher);
        return withDownstream(kubeconfig, edges, (downstream) =>
          pass.run(known, cluster, replicas, downstream, async (pin) => {
            addon = await client.update(addonKind.resource, withPin(known, pin));
          }),
        );
      });
      const status = addonStatus(addon, outcome, edges.clock);
      if (status) {
        await writeStatus({ client, clock: edges.clock, log }, addonKind.resource, addon, status);
        log.info("looked at an addon", { reason: outcome.reason });
      }
      return { requeueAfterMs: outcome.reason === "Healthy" ? timings.addonResyncMs : timings.retryMs };
    },
  });
}

function withPin(addon: Addon, pin: string): Addon {
  const { metadata } = addon;
  return {
    ...addon,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [annotations.chartDigest]: pin } },
  };
}

async function controlPlaneReplicas(client: CachedClient, cluster: TalosCluster): Promise<number> {
  const { items } = await client.list(instanceKind.resource, { namespace: cluster.metadata.namespace });
  return membersOf(cluster, items).filter(({ role }) => role === "controlplane").length;
}

/** One pass over one addon. */
class AddonPass {
  readonly #context: DomainContext;
  readonly #edges: Edges;
  readonly #signal: AbortSignal;
  readonly #helm: () => Promise<Helm>;
  readonly #fetcher: ChartFetcher;

  constructor(
    context: DomainContext,
    edges: Edges,
    signal: AbortSignal,
    helm: () => Promise<Helm>,
    fetcher: ChartFetcher,
  ) {
    this.#fetcher = fetcher;
    this.#context = context;
    this.#edges = edges;
    this.#signal = signal;
    this.#helm = helm;
  }

  /** `pinned` is told the pin of a fetched chart before it is installed, when it is another than the addon's. */
  async run(
    addon: Addon,
    cluster: TalosCluster,
    replicas: number,
    downstream: Downstream,
    pinned: (pin: string) => Promise<void>,
  ): Promise<AddonOutcome> {
    const kubeVersion = await this.#versionOf(downstream);
    if (kubeVersion === undefined)
      return { reason: "ClusterUnreachable", message: "the cluster's own API server does not answer" };
    let resolved: ResolvedAddon;
    let documents;
    let chart: ChartSource;
    try {
      resolved = resolveAddon(addon);
      chart = await this.#chart(addon, resolved, pinned);
      const values = chartValues(resolved.defaults, resolved.values, valuesContext(cluster, replicas));
      documents = await this.#install(resolved, chart, values, downstream, kubeVersion);
    } catch (error) {
      if (this.#signal.aborted || isCoded(error, "cancelled")) throw error;
      return { reason: "InstallFailed", message: messageOf(error) };
    }
    const missing = await missingDefinition(downstream, documents, this.#signal);
    if (missing !== undefined) return { reason: "CRDsNotReady", message: missing };
    const labelled = `${resolved.chart.name}-${resolved.chart.version ?? ""}`;
    const release = { release: resolved.release, chart: labelled, namespace: resolved.namespace };
    const unhealthy = await unhealthyPart(downstream, release, this.#signal);
    if (unhealthy !== undefined) return { reason: "NotHealthy", message: unhealthy };
    return { reason: "Healthy", message: `${resolved.release} is installed in ${resolved.namespace}` };
  }

  /** Kubernetes version of the cluster, or `undefined` while it can't be reached. */
  async #versionOf({ client }: Downstream): Promise<string | undefined> {
    try {
      const version = await client.request("GET", "/version", { signal: this.#signal });
      return stringAt(version, "gitVersion") ?? "v1.35.0";
    } catch (error) {
      if (!isCoded(error, "unavailable") && !isCoded(error, "deadline_exceeded")) throw error;
      return undefined;
    }
  }

  /** The chart from the offline folder, else fetched and pinned. */
  async #chart(
    addon: Addon,
    resolved: ResolvedAddon,
    pinned: (pin: string) => Promise<void>,
  ): Promise<ChartSource> {
    const { KONTINUUM_CHART_DIR: folder } = this.#context.config.values;
    const local = await localChart(resolved.chart, resolved.release, folder);
    if (local) return local;
    const fetched = await this.#fetcher.fetch(resolved.chart, pinOf(addon), this.#signal);
    const pin = pinFor(addon, fetched);
    if (pin !== pinOf(addon)) await pinned(pin);
    return { chart: fetched.file, digest: fetched.digest };
  }

  /** Installs by the addon's method; returns the objects of the chart. */
  async #install(
    resolved: ResolvedAddon,
    chart: ChartSource,
    values: Record<string, unknown>,
    downstream: Downstream,
    kubeVersion: string,
  ) {
    const helm = await this.#helm();
    const { timings } = this.#context;
    const call = { timeoutMs: timings.installMs, signal: this.#signal };
    const rendered = await helm.template(resolved, chart, values, kubeVersion, call);
    const documents = chartDocuments(rendered);
    if (resolved.method === "KubectlApply") {
      await applyDocuments(downstream, resolved.release, documents, resolved.namespace, this.#signal);
    } else {
      const target = {
        kubeconfig: downstream.kubeconfig,
        release: resolved.release,
        namespace: resolved.namespace,
      };
      const description = releaseDescription(chart, values);
      await helmInstall(helm, target, chart, values, { description, call, clock: this.#edges.clock });
    }
    return documents.filter((document) => at(document, "kind") !== undefined);
  }
}
