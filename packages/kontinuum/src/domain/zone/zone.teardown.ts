/**
 * Removing a zone: its own server first, then its cluster, and the Zone itself only when the machines are
 * free.
 *
 * The namespace stays: cert-manager lives in it and is still needed while the rest goes. Everything in the
 * cluster disappears with its machines anyway; what is removed by hand is what reaches outside.
 */
import { removeFinalizer, secrets, type CachedClient } from "@kontinuum/controller";
import { messageOf, type Edges, type JsonObject, type Log } from "@kontinuum/std";
import {
  finalizers,
  identitySecretName,
  kontinuumKind,
  systemNamespace,
  talosClusterKind,
  zoneAuthSecretName,
  zoneKind,
  type Zone,
} from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { writeStatus } from "../transition-events.ts";
import { ensureAbsent } from "../downstream/apply.ts";
import { withDownstream, type Downstream } from "../downstream/downstream.ts";
import { RestPaths } from "../downstream/rest-paths.ts";
import { findClusterSecret, kubeconfigText } from "../taloscluster/cluster-secrets.ts";
import { zoneEnvironment } from "./zone.environment.ts";
import { networkObjects } from "./zone.network.ts";
import { teardownStatus } from "./zone.status.ts";
import { workloadObjects } from "./zone.workload.ts";

/** What the teardown works with. */
export interface TeardownContext {
  readonly domain: DomainContext;
  readonly client: CachedClient;
  readonly edges: Edges;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** One step. True when the zone is let go. */
export async function tearDownZone(context: TeardownContext, zone: Zone): Promise<boolean> {
  const { client, edges, domain, signal } = context;
  const { namespace, name } = zone.metadata;
  const cluster = await client.find(talosClusterKind.resource, { namespace, name });
  if (!cluster) {
    await forget(client, zone);
    if (removeFinalizer(zone, finalizers.zone)) await client.update(zoneKind.resource, zone);
    return true;
  }
  const deadlineMs = Date.parse(zone.metadata.deletionTimestamp ?? "") + domain.timings.teardownMs;
  if (cluster.metadata.deletionTimestamp === undefined) {
    const secret = await findClusterSecret(client, cluster);
    const kubeconfig = secret && kubeconfigText(secret);
    try {
      if (kubeconfig !== undefined) {
        await withDownstream(kubeconfig, edges, (downstream) => removeServer(context, zone, downstream));
      }
    } catch (error) {
      if (signal.aborted) throw error;
      if (edges.clock.now() < deadlineMs) {
        const until = new Date(deadlineMs).toISOString();
        await report(
          context,
          zone,
          "DownstreamTeardownFailed",
          `${stable(error)}; goes on without it at ${until}`,
        );
        return false;
      }
    }
    try {
      await client.deleteIfExists(talosClusterKind.resource, { namespace, name });
    } catch (error) {
      await report(context, zone, "TalosClusterDeleteFailed", messageOf(error));
      return false;
    }
  }
  await report(context, zone, "WaitingForMachines", "the cluster's machines are being reset");
  return false;
}

/**
 * Removes what the hub remembers of the zone: its keys, refused since the removal began, and the entries of its
 * processes, so that a new zone of the same place starts with neither.
 */
async function forget(client: CachedClient, zone: Zone): Promise<void> {
  const auth = { namespace: systemNamespace, name: zoneAuthSecretName(zone.metadata.name) };
  const secret = await client.live.find(secrets, auth);
  if (secret?.metadata.ownerReferences?.some(({ uid }) => uid === zone.metadata.uid) === true)
    await client.deleteIfExists(secrets, auth);
  const { items } = await client.live.list(kontinuumKind.resource, { namespace: systemNamespace });
  for (const { metadata, spec } of items) {
    if (spec.region !== zone.spec.region || spec.zone !== zone.spec.zone) continue;
    await client.deleteIfExists(kontinuumKind.resource, { namespace: systemNamespace, name: metadata.name });
  }
}

async function removeServer(
  { domain, signal }: TeardownContext,
  zone: Zone,
  downstream: Downstream,
): Promise<void> {
  const paths = new RestPaths(downstream.client);
  const outward = networkObjects(domain.config, "removed.invalid").reverse();
  const workload = workloadObjects({
    environment: zoneEnvironment(domain.config, zone),
    image: "",
    probed: false,
  })
    .filter((object) => object["kind"] !== "Namespace")
    .reverse();
  const identity: JsonObject = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: identitySecretName, namespace: systemNamespace },
  };
  for (const object of [...outward, ...workload, identity]) {
    await ensureAbsent(downstream, paths, object, systemNamespace, signal);
  }
}

async function report(
  { client, edges, log }: TeardownContext,
  zone: Zone,
  reason: string,
  message: string,
): Promise<void> {
  const ready = zone.status?.conditions?.find(({ type }) => type === "Teardown");
  if (ready?.reason === reason && ready.message === message) return;
  const status = teardownStatus(zone, reason, message, edges.clock);
  await writeStatus({ client, clock: edges.clock, log }, zoneKind.resource, zone, status);
}

// Connection errors name ports and try counts, which differ each time.
function stable(error: unknown): string {
  return messageOf(error).startsWith("cannot connect")
    ? "the zone's own API server does not answer"
    : messageOf(error);
}
