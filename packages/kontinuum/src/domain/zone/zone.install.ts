/**
 * One pass over a living zone, up to the first thing that has to be waited for.
 */
import { isConditionTrue, type CachedClient } from "@kontinuum/controller";
import { isCoded, messageOf, type Edges } from "@kontinuum/std";
import {
  kontinuumKind,
  systemNamespace,
  talosClusterKind,
  type Kontinuum,
  type Zone,
} from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { ensureApplied } from "../downstream/apply.ts";
import { withDownstream, type Downstream } from "../downstream/downstream.ts";
import { RestPaths } from "../downstream/rest-paths.ts";
import { ensureNamespace } from "../ensure.ts";
import { findClusterSecret, kubeconfigText } from "../taloscluster/cluster-secrets.ts";
import { zoneEnvironment, zoneHost } from "./zone.environment.ts";
import { ensureIdentity } from "./zone.identity.ts";
import { isCertificateReady, networkObjects } from "./zone.network.ts";
import type { InstallationReason, ZoneOutcome } from "./zone.status.ts";
import { workloadObjects, zoneImage } from "./zone.workload.ts";

/** What a pass works with. */
export interface InstallContext {
  readonly domain: DomainContext;
  readonly client: CachedClient;
  readonly edges: Edges;
  readonly signal: AbortSignal;
  /** Version of this program: the zone runs the same. */
  readonly version: string;
  /** PEM authorities a zone must trust to reach this hub; empty: the system's. */
  readonly hubAuthorities: () => string;
}

/** Brings the zone as far as it can go now. */
export async function installZone(context: InstallContext, zone: Zone): Promise<ZoneOutcome> {
  const { client, edges, domain } = context;
  const { namespace, name } = zone.metadata;
  const cluster = await client.find(talosClusterKind.resource, { namespace, name });
  if (!cluster) {
    return { at: "cluster", reason: "TalosClusterNotFound", message: `there is no TalosCluster ${name}` };
  }
  if (!isConditionTrue(cluster.status?.conditions, "Ready")) {
    const ready = cluster.status?.conditions?.find(({ type }) => type === "Ready");
    const message = ready ? `the cluster waits: ${ready.message}` : "the cluster has not reported yet";
    return { at: "cluster", reason: "WaitingForTalosCluster", message };
  }
  const refusal = refusalOf(context, zone);
  if (refusal) return refusal;
  const secret = await findClusterSecret(client, cluster);
  const kubeconfig = secret && kubeconfigText(secret);
  if (kubeconfig === undefined) {
    return installation("DownstreamNotReady", "the cluster has no kubeconfig yet");
  }
  let installed: string;
  try {
    const outcome = await withDownstream(kubeconfig, edges, (downstream) =>
      install(context, zone, downstream),
    );
    if (typeof outcome !== "string") return outcome;
    installed = outcome;
  } catch (error) {
    if (context.signal.aborted) throw error;
    const reason =
      isCoded(error, "unavailable") || isCoded(error, "deadline_exceeded")
        ? "DownstreamNotReady"
        : "InstallFailed";
    return installation(
      reason,
      reason === "InstallFailed" ? messageOf(error) : "the zone's own API server does not answer",
    );
  }
  const { items } = await client.list(kontinuumKind.resource, { namespace: systemNamespace });
  const now = edges.clock.now();
  const processes = joinedProcesses(items, zone, now, domain.timings.staleMs);
  const [process] = processes;
  if (!process)
    return { at: "registry", installed, message: "the zone's server has not reported itself yet" };
  const staleInMs = Math.max(...processes.map(heartbeatMs)) + domain.timings.staleMs - now;
  return { at: "ready", installed, message: `process ${process.metadata.name} reports itself`, staleInMs };
}

const heartbeatMs = ({ status }: Kontinuum): number => Date.parse(status?.lastHeartbeatTime ?? "");

/**
 * The zone's processes that reported themselves lately, by name, so that the first stays the same. Pure.
 *
 * What was reported before this Zone was created came from the process of a removed zone of the same place, whose
 * key is refused by now. Times of objects are whole seconds, so the second of the creation itself does not count yet.
 */
export function joinedProcesses(
  processes: readonly Kontinuum[],
  { metadata, spec }: Zone,
  nowMs: number,
  staleMs: number,
): readonly Kontinuum[] {
  const created = Date.parse(metadata.creationTimestamp ?? "");
  const sinceMs = Number.isNaN(created) ? 0 : created + 1000;
  return processes
    .filter(
      (one) =>
        one.spec.region === spec.region &&
        one.spec.zone === spec.zone &&
        heartbeatMs(one) >= sinceMs &&
        Math.abs(nowMs - heartbeatMs(one)) < staleMs,
    )
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

function refusalOf({ domain: { config }, version }: InstallContext, zone: Zone): ZoneOutcome | undefined {
  if (!config.oidc && zoneHost(zone) !== undefined) {
    return installation(
      "AnonymousExposureRefused",
      "access to this hub is anonymous: a zone with a public domain would be open to everybody; configure OIDC or remove the domain",
    );
  }
  if (config.grpc.endpoint === "") {
    return installation(
      "NoStorageSecretFound",
      "this hub has no address for zones: set KONTINUUM_SERVER_GRPC_ENDPOINT",
    );
  }
  if (version === "") return installation("NoVersionFound", "this hub does not know its own version");
  return undefined;
}

/** Makes everything in the zone's cluster. What was installed, in words, or where it waits. */
async function install(
  context: InstallContext,
  zone: Zone,
  downstream: Downstream,
): Promise<string | ZoneOutcome> {
  const { domain, client, edges, signal, version, hubAuthorities } = context;
  const { config } = domain;
  const paths = new RestPaths(downstream.client);
  await ensureNamespace(downstream.client, systemNamespace);
  try {
    await ensureIdentity({ client, downstream, edges, hubAuthorities: hubAuthorities() }, zone);
  } catch (error) {
    if (signal.aborted || isCoded(error, "unavailable")) throw error;
    return installation("NoStorageSecretFound", `the zone's identity: ${messageOf(error)}`);
  }
  const workload = workloadObjects({
    environment: zoneEnvironment(config, zone),
    image: zoneImage(config.values.KONTINUUM_ZONE_IMAGE, version),
    probed: config.oidc !== undefined,
  });
  for (const object of workload) await ensureApplied(downstream, paths, object, systemNamespace, signal);
  const host = zoneHost(zone);
  if (host === undefined) return "installed; not exposed, because the zone has no domain";
  for (const object of networkObjects(config, host)) {
    await ensureApplied(downstream, paths, object, systemNamespace, signal);
  }
  if (await isCertificateReady(downstream, paths, signal)) return `installed at https://${host}`;
  return installation("WaitingForCertificate", `waiting for the certificate of ${host}`);
}

const installation = (reason: InstallationReason, message: string): ZoneOutcome => ({
  at: "installation",
  reason,
  message,
});
