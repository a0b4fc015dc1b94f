/**
 * Discovery: finds out which registered machines answer as Talos in maintenance mode, and what they are.
 *
 * Claimed machines are never probed: they belong to a cluster and no longer answer this way.
 */
import { isDeepStrictEqual } from "node:util";
import {
  defineController,
  isDeleting,
  parseKey,
  watchOf,
  type DefinedController,
} from "@kontinuum/controller";
import { instanceKind, labels, type Instance } from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { writeStatus } from "../transition-events.ts";
import { labelKey, leaseRetry } from "../zone-lease/zone-leases.ts";
import { probeCandidates, type Probe } from "./instance.probe.ts";
import { discoveredStatus } from "./instance.status.ts";

/** Machines probed at the same time. */
const concurrency = 16;

/** Its own report is no reason to probe again. */
function onlyStatusChanged(before: Instance, after: Instance): boolean {
  const facts = ({ metadata, spec }: Instance): unknown => [
    metadata.labels,
    metadata.deletionTimestamp,
    spec,
  ];
  return isDeepStrictEqual(facts(before), facts(after));
}

/** The controller `instance`. `probe` asks one address. */
export function instanceController(context: DomainContext, probe: Probe): DefinedController {
  const { timings, leases, config } = context;
  return defineController({
    name: "instance",
    concurrency,
    watches: [watchOf(instanceKind.resource, { ignore: onlyStatusChanged })],
    async reconcile(key, { client, edges, signal, log }) {
      const instance = await client.find(instanceKind.resource, parseKey(key));
      if (!instance || isDeleting(instance) || instance.metadata.labels?.[labels.claimedBy] !== undefined)
        return;
      if (!(await leases.tryAcquire(client, labelKey(instance)))) {
        return leaseRetry(timings.probeRetryMs, edges.random);
      }
      const outcome = await probeCandidates(instance.spec, probe, {
        allowed: config.discovery.allowed,
        timeoutMs: timings.probeMs,
        signal,
      });
      const status = discoveredStatus(instance, outcome, edges.clock);
      if (status) {
        await writeStatus({ client, clock: edges.clock, log }, instanceKind.resource, instance, status);
        log.info("probed a machine", { result: outcome.result });
      }
      return { requeueAfterMs: outcome.result === "found" ? timings.probeRecheckMs : timings.probeRetryMs };
    },
  });
}
