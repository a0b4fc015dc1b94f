/**
 * Frees machines: whatever leaves a cluster (deleted, scaled away, cluster gone) is reset here before anyone
 * else may have it, and nowhere else.
 */
import {
  addFinalizer,
  defineController,
  isDeleting,
  parseKey,
  removeFinalizer,
  watchOf,
  type DefinedController,
} from "@kontinuum/controller";
import { finalizers, instanceKind, talosClusterKind, type Instance } from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { needsReset, withoutClaim } from "../instancepool/instancepool.claim.ts";
import { forgetMembership } from "../taloscluster/member-status.ts";
import { describeTalosFailure } from "../taloscluster/talos-access.ts";
import type { EventContext } from "../transition-events.ts";
import { labelKey, leaseRetry, objectKey } from "../zone-lease/zone-leases.ts";
import { resetMachine } from "./instance-reset.reset.ts";
import { planReset } from "./reset-plan.ts";

const concurrency = 16;

/** The controller `instance-reset`. */
export function instanceResetController({ config, timings, leases }: DomainContext): DefinedController {
  return defineController({
    name: "instance-reset",
    concurrency,
    watches: [watchOf(instanceKind.resource), watchOf(talosClusterKind.resource, { map: () => [] })],
    async reconcile(key, { client, edges, log, signal }) {
      const instance = await client.find(instanceKind.resource, parseKey(key));
      if (!instance) return;
      const { namespace } = instance.metadata;
      const { items: clusters } = await client.list(talosClusterKind.resource, { namespace });
      const plan = planReset(instance, clusters, timings.teardownMs);
      if (plan.step === "nothing") return;
      const told = { client, clock: edges.clock, log };
      const lease = "cluster" in plan ? objectKey("taloscluster", plan.cluster) : labelKey(instance);
      if (!(await leases.tryAcquire(client, lease))) return leaseRetry(timings.retryMs, edges.random);
      switch (plan.step) {
        case "guard":
          if (addFinalizer(instance, finalizers.instance))
            await client.update(instanceKind.resource, instance);
          return;
        case "forget-membership":
          await forgetMembership(told, instance, undefined);
          return;
        case "finish":
          // Nobody is left who could reset it: it must show itself in maintenance mode before it is free.
          await free(told, instance, needsReset(instance) ? abandoned : undefined);
          return;
        case "reset": {
          const { items: siblings } = await client.list(instanceKind.resource, { namespace });
          const context = {
            client,
            edges,
            signal,
            probeMs: timings.probeMs,
            allowed: config.discovery.allowed,
          };
          try {
            await resetMachine(context, plan.cluster, instance, siblings);
          } catch (error) {
            if (signal.aborted) throw error;
            if (edges.clock.now() < plan.deadlineMs) {
              log.info("a machine could not be reset yet", { reason: describeTalosFailure(error) });
              return { requeueAfterMs: timings.retryMs };
            }
            log.warn("gives up resetting a machine; it may still run its old cluster", {
              reason: describeTalosFailure(error),
            });
            await free(told, instance, abandoned);
            return;
          }
          log.info("reset a machine");
          await free(told, instance, resetting);
        }
      }
    },
  });
}

const resetting = {
  reason: "Resetting",
  message: "the machine was reset and is expected back in maintenance mode",
};
const abandoned = {
  reason: "ResetAbandoned",
  message: "the machine could not be reset in time; it is free again once it answers in maintenance mode",
};

/** Status first, then claim or finalizer: dying in between repeats the second half only. */
async function free(
  context: EventContext,
  instance: Instance,
  why: { readonly reason: string; readonly message: string } | undefined,
): Promise<void> {
  if (isDeleting(instance)) {
    // Only what a reset did is worth telling of an object that goes away: so that it is not reset again.
    const told = needsReset(instance) && why ? await forgetMembership(context, instance, why) : instance;
    if (removeFinalizer(told, finalizers.instance)) await context.client.update(instanceKind.resource, told);
    return;
  }
  const told = await forgetMembership(context, instance, why);
  await context.client.update(instanceKind.resource, withoutClaim(told));
}
