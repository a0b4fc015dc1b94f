/**
 * The configuring step: hands a claimed machine its configuration, and the cluster's secrets with it.
 *
 * Before anything is sent the intent is written, so that a crash in between never leaves a machine that
 * carries secrets and looks free. After such a crash the machine itself tells whether it was sent: it then
 * knows the cluster's keys. Nothing is sent unless the machine shows the certificate key and the UUID seen
 * at discovery.
 */
import { findCondition, isConditionTrue, type CachedClient } from "@kontinuum/controller";
import type { Clock, Log } from "@kontinuum/std";
import { generateMachineConfig, isTalosError, type SecretsBundle } from "@kontinuum/talos";
import {
  defaultKubernetesVersion,
  defaultTalosVersion,
  instanceKind,
  type Instance,
  type TalosCluster,
} from "../../kinds/index.ts";
import { withoutClaim } from "../instancepool/instancepool.claim.ts";
import { forgetMembership, reportMember } from "./member-status.ts";
import type { Member } from "./members.ts";
import { describeTalosFailure, type TalosAccess } from "./talos-access.ts";

/** What the step works with. */
export interface ConfigureContext {
  readonly client: CachedClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly access: TalosAccess;
  readonly bundle: SecretsBundle;
  readonly cluster: TalosCluster;
  /** `https://host:6443`. */
  readonly endpoint: string;
  readonly signal: AbortSignal;
}

/** Whether the machine has its configuration. */
export const isConfigured = (instance: Instance): boolean =>
  isConditionTrue(instance.status?.conditions, "Configured");

/** Configures one member. Returns it as it is now, or `undefined` when it is no member any more. */
export async function configureMember(
  context: ConfigureContext,
  member: Member,
): Promise<Member | undefined> {
  if (isConfigured(member.instance)) return member;
  const { log } = context;
  const intended = findCondition(member.instance.status?.conditions, "Configured") !== undefined;
  const report = (holds: boolean, reason: string, message: string): Promise<Instance> =>
    reportMember(context, instance, [{ type: "Configured", holds, reason, message }]);
  let instance = member.instance;
  if (!intended) instance = await report(false, "Configuring", "the configuration is being sent");
  try {
    await send(context, { ...member, instance });
    instance = await report(true, "ConfigApplied", "the machine took its configuration");
    log.info("configured a machine", { instance: instance.metadata.name, role: member.role });
  } catch (error) {
    if (context.signal.aborted) throw error;
    if (isTalosError(error, "identity_changed")) return await letGo(context, instance);
    if (intended && isTalosError(error, "certificate_required") && (await knowsOurKeys(context, member))) {
      instance = await report(true, "ConfigApplied", "the machine took its configuration");
    } else {
      log.warn("a machine did not take its configuration", { instance: instance.metadata.name });
      instance = await report(false, "Configuring", describeTalosFailure(error));
    }
  }
  return { ...member, instance };
}

async function send(context: ConfigureContext, { instance, role, address }: Member): Promise<void> {
  const { access, signal } = context;
  const { identity } = instance.status ?? {};
  const config = machineConfig(context, instance, role);
  await access.inMaintenance(address, identity?.certificateKey ?? "", (talos) =>
    talos.applyConfiguration(
      { config, mode: "reboot", ...(identity?.uuid ? { expectUuid: identity.uuid } : {}) },
      { signal },
    ),
  );
}

/** The machine's configuration. Its host name is the name of its Instance. */
function machineConfig(
  { bundle, cluster, endpoint }: ConfigureContext,
  instance: Instance,
  role: Member["role"],
): string {
  return generateMachineConfig({
    type: role,
    clusterName: cluster.metadata.name,
    endpoint,
    kubernetesVersion: cluster.spec.kubernetes?.version || defaultKubernetesVersion,
    talosVersion: cluster.spec.talos?.version || defaultTalosVersion,
    bundle,
    hostname: instance.metadata.name,
    allowSchedulingOnControlPlanes: true,
    // Any writable disk: without a disk or a selector a machine refuses its configuration.
    install: { diskSelector: {} },
    // Cilium brings the network and replaces kube-proxy.
    network: { cni: "none", kubeProxy: false },
  });
}

async function knowsOurKeys({ access, signal }: ConfigureContext, { address }: Member): Promise<boolean> {
  try {
    await access.asAdmin(address, (talos) => talos.version({ signal }));
    return true;
  } catch {
    return false;
  }
}

/** The machine rebooted, or another one answers: nothing was sent, so it is free to be discovered anew. */
async function letGo(context: ConfigureContext, instance: Instance): Promise<undefined> {
  const { client, log } = context;
  log.warn("a machine is not the one that was discovered; it is released", {
    instance: instance.metadata.name,
  });
  const undiscovered = {
    reason: "IdentityChanged",
    message: "the machine shows another identity than at its discovery; nothing was sent to it",
  };
  const forgotten = await forgetMembership(context, instance, undiscovered);
  await client.update(instanceKind.resource, withoutClaim(forgotten));
  return undefined;
}
