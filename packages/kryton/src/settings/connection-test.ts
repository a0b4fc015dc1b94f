/**
 * Tests of the connections this installation lives on, as administrators ask for them.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import type { Probe } from "../integrations/atlas.ts";
import { formatTime } from "../model/bytes.ts";
import { limited } from "../provider-contract/limited.ts";
import type { ClusterStorage } from "../storage-inventory/contract.ts";
import type { StorageSetup } from "../storage-setup/setup.ts";
import type { Provider } from "../provider-contract/contract.ts";

const providerLimitMs = 5_000;
const clusterLimitMs = 8_000;

/** All probes and the verdict. */
export interface ConnectionReport {
  readonly healthy: boolean;
  readonly probes: readonly Probe[];
  readonly testedAt: string;
}

/** What is tested. */
export interface Connections {
  readonly provider: Provider;
  readonly cluster: ClusterStorage | undefined;
  readonly setup: StorageSetup | undefined;
  readonly edges: Edges;
}

/** Runs every probe. Never rejects. */
export async function testConnections(connections: Connections): Promise<ConnectionReport> {
  const { provider, cluster, setup, edges } = connections;
  const probes: Probe[] = [
    await timed("provider", edges, providerLimitMs, "The provider answers.", (signal) =>
      provider.health({ signal, progress: () => {} }),
    ),
  ];
  if (setup) {
    probes.push(
      await timed("kubernetes", edges, clusterLimitMs, "The cluster answers.", (signal) =>
        setup.reach(signal),
      ),
    );
  }
  if (cluster) {
    probes.push(
      await timed("storage", edges, clusterLimitMs, "Storage classes can be listed.", async (signal) => {
        await cluster.classes(signal);
      }),
    );
  } else if (provider.name === "kubevirt") {
    probes.push({ name: "kubernetes", status: "fail", message: "No connection to a cluster is configured." });
  }
  if (setup && !(await setup.available())) {
    probes.push({
      name: "install-scripts",
      status: "warn",
      message: "There are no manifests of a storage system.",
      hint: "Put them into the folder of KRYTON_STORAGE_MANIFESTS to set storage up from here.",
    });
  }
  return {
    healthy: probes.every(({ status }) => status !== "fail"),
    probes,
    testedAt: formatTime(edges.clock.now()),
  };
}

async function timed(
  name: string,
  edges: Edges,
  limitMs: number,
  good: string,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<Probe> {
  const startedAt = edges.clock.monotonic();
  const latency = (): number => Math.round(edges.clock.monotonic() - startedAt);
  try {
    await limited(edges.clock, limitMs, work);
    return { name, status: "pass", message: good, latencyMs: latency() };
  } catch (error) {
    return { name, status: "fail", message: messageOf(error), latencyMs: latency() };
  }
}
