/**
 * The resetting step: makes a machine forget its cluster, so that it boots into maintenance mode again.
 *
 * Its Talos keeps the installed system; only state and ephemeral data are wiped. A control-plane machine leaves
 * etcd first while a peer is there; the last one has nothing to leave. Nobody waits here for the machine to
 * come back: discovery sees it when it does.
 */
import type { CachedClient } from "@kontinuum/controller";
import { CodedError, type Edges } from "@kontinuum/std";
import { parseSecretsBundle, probe } from "@kontinuum/talos";
import { labels, type Instance, type TalosCluster } from "../../kinds/index.ts";
import type { Cidr } from "../../config/cidr.ts";
import { mayDial } from "../instance/dial-policy.ts";
import { bundleText, findClusterSecret } from "../taloscluster/cluster-secrets.ts";
import { addressOf, membersOf, type Member, type Role } from "../taloscluster/members.ts";
import { talosAccess } from "../taloscluster/talos-access.ts";
import { isConfigured } from "../taloscluster/taloscluster.configure.ts";

const wiped = ["STATE", "EPHEMERAL"] as const;

/** Through which machine a reset goes. */
export interface ResetRoute {
  readonly address: string;
  /** The machine to reset, when it is not the one that is dialled. */
  readonly node?: string;
  readonly graceful: boolean;
}

/** Decides the way: through a control-plane peer, else directly. Pure. */
export function resetRoute(
  target: { readonly address: string; readonly role: Role },
  peers: readonly Member[],
): ResetRoute {
  const peer = peers.find(
    ({ role, address, instance }) =>
      role === "controlplane" && address !== target.address && isConfigured(instance),
  );
  if (!peer) return { address: target.address, graceful: false };
  return { address: peer.address, node: target.address, graceful: true };
}

/** Resets the machine. Fails with a coded error when it could not be told to. */
export async function resetMachine(
  context: {
    readonly client: CachedClient;
    readonly edges: Edges;
    readonly signal: AbortSignal;
    readonly probeMs: number;
    /** Special ranges that machines may be in. */
    readonly allowed: readonly Cidr[];
  },
  cluster: TalosCluster,
  instance: Instance,
  siblings: readonly Instance[],
): Promise<void> {
  const { client, edges, signal, probeMs } = context;
  const address = addressOf(instance);
  if (address === undefined) throw new CodedError("failed_precondition", "the machine has no address");
  const waits = async (): Promise<boolean> =>
    mayDial(address, context.allowed) &&
    probe(address, { edges, signal, timeoutMs: probeMs }).then(
      () => true,
      () => false,
    );
  // Whether the configuration was sent is not known: a machine that still waits for one needs no reset.
  if (!isConfigured(instance) && (await waits())) return;
  const secret = await findClusterSecret(client, cluster);
  if (!secret) throw new CodedError("failed_precondition", "the keys of its cluster are gone");
  const access = talosAccess(parseSecretsBundle(bundleText(secret)), edges, context.allowed);
  const role = roleOf(cluster, instance);
  const route = resetRoute({ address, role }, membersOf(cluster, siblings));
  try {
    await access.asAdmin(
      route.address,
      (talos) => talos.reset({ graceful: route.graceful, reboot: true, partitions: wiped }, { signal }),
      route.node,
    );
  } catch (error) {
    // An earlier attempt may have done it without our hearing of it.
    if (signal.aborted || !(await waits())) throw error;
  }
}

function roleOf(cluster: TalosCluster, { metadata }: Instance): Role {
  return metadata.labels?.[labels.claimedBy] === cluster.spec.controlPlane.poolRef.name
    ? "controlplane"
    : "worker";
}
