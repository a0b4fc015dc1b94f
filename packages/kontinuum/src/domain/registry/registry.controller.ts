/**
 * The registry: this process states itself, and stale entries of others are removed.
 *
 * Stating oneself needs no lease: it concerns one object of one's own. Removing others' entries is done by
 * one hub process at a time.
 */
import {
  defineController,
  parseKey,
  secrets,
  watchOf,
  type CachedClient,
  type Controller,
  type DefinedController,
  type ReconcileResult,
  Client,
} from "@kontinuum/controller";
import { isCoded, messageOf } from "@kontinuum/std";
import { kontinuumKind, processSecretName, systemNamespace } from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { globalKey, leaseRetry } from "../zone-lease/zone-leases.ts";
import type { Registration } from "./registration.ts";
import { decideStaleness } from "./staleness.ts";

/** The controller `heartbeat`: states this process at once and in intervals, and leaves when it stops. */
export function heartbeatController(
  { timings }: Pick<DomainContext, "timings">,
  registration: Registration,
): Controller {
  return {
    name: "heartbeat",
    async run({ transport, edges, signal }) {
      const client = new Client(transport, { edges, userAgent: "kontinuum/heartbeat" });
      while (!signal.aborted) {
        try {
          await registration.beat(client);
        } catch (error) {
          edges.log.warn("the heartbeat failed; the next one tries again", { reason: messageOf(error) });
        }
        await edges.clock.sleep(timings.heartbeatMs, signal).catch(ignoreCancelled);
      }
    },
  };
}

function ignoreCancelled(error: unknown): void {
  if (!isCoded(error, "cancelled")) throw error;
}

/** The controller `registry`: removes what belongs to processes that are gone, and restores its own entry. */
export function registryController(
  { timings, leases }: DomainContext,
  registration: Registration,
): DefinedController {
  return defineController({
    name: "registry",
    watches: [watchOf(kontinuumKind.resource)],
    async reconcile(key, { client, edges, log }): Promise<ReconcileResult | void> {
      const ref = parseKey(key);
      if (ref.namespace !== systemNamespace) return;
      const entry = await client.find(kontinuumKind.resource, ref);
      if (!entry) {
        await removeSecret(client, ref.name);
        if (ref.name === registration.name) await registration.beat(client.live);
        return;
      }
      if (!(await leases.tryAcquire(client, globalKey)))
        return leaseRetry(timings.heartbeatMs / 2, edges.random);
      const decision = decideStaleness(entry, edges.clock.now(), timings.staleMs);
      if (decision.action === "recheck") return { requeueAfterMs: decision.afterMs };
      log.info("removes a process that no longer reports itself");
      const { uid } = entry.metadata;
      await client.deleteIfExists(
        kontinuumKind.resource,
        ref,
        uid === undefined ? {} : { preconditions: { uid } },
      );
    },
  });
}

async function removeSecret(client: CachedClient, process: string): Promise<void> {
  await client.deleteIfExists(secrets, { namespace: systemNamespace, name: processSecretName(process) });
}
