/**
 * `cluster.ClusterService`: the streamed health check.
 */
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { ClusterService } from "../../gen/cluster/cluster_pb.ts";
import { deadlineExceeded, invalidArgument, unimplemented } from "../call-error.ts";
import { healthChecks, type HealthSubject } from "../health-check.ts";
import { isAddress } from "../node-config.ts";
import type { SimulatedNode } from "../node.ts";
import { callerOf } from "./call-context.ts";

/** The service, for a rack whose nodes health checks may reach. */
export function clusterService(
  nodeAt: (address: string) => SimulatedNode | undefined,
  intervalMs: number,
): ServiceImpl<typeof ClusterService> {
  return {
    async *healthCheck({ waitTimeout, clusterInfo }, context) {
      const { node } = callerOf(context);
      if (node.config?.role !== "controlplane") {
        throw unimplemented("cluster health check is only available on control plane nodes");
      }
      const clock = node.edges.clock;
      const deadline = clock.monotonic() + (waitTimeout ? durationMs(waitTimeout) : 0);
      const subject = subjectOf(
        node,
        clusterInfo?.controlPlaneNodes ?? [],
        clusterInfo?.workerNodes ?? [],
        nodeAt,
      );
      const nodes = [...subject.controlPlane, ...subject.workers];
      yield { message: `discovered nodes: [${nodes.map((ip) => JSON.stringify(ip)).join(" ")}]` };
      for (const { name, evaluate } of healthChecks) {
        yield { message: `waiting for ${name}: ...` };
        for (let last = ""; ;) {
          const problem = evaluate(subject);
          if (problem === undefined || problem === "skip") {
            yield { message: `waiting for ${name}: ${problem === "skip" ? "SKIP" : "OK"}` };
            break;
          }
          if (problem !== last) yield { message: `waiting for ${name}: ${problem}` };
          last = problem;
          const left = deadline - clock.monotonic();
          if (left <= 0) throw deadlineExceeded("context deadline exceeded");
          await clock.sleep(Math.min(intervalMs, left), context.signal);
        }
      }
    },
  };
}

function subjectOf(
  node: SimulatedNode,
  controlPlane: readonly string[],
  workers: readonly string[],
  nodeAt: HealthSubject["nodeAt"],
): HealthSubject {
  const { cluster } = node;
  if (!cluster) throw unimplemented("API is not implemented in maintenance mode");
  for (const address of [...controlPlane, ...workers]) {
    if (!isAddress(address))
      throw invalidArgument(`ParseAddr(${JSON.stringify(address)}): unable to parse IP`);
  }
  if (controlPlane.length + workers.length > 0) return { cluster, controlPlane, workers, nodeAt };
  const members = cluster.members();
  const of = (role: string): string[] =>
    members.filter((member) => member.role === role).map(({ address }) => address);
  return { cluster, controlPlane: of("controlplane"), workers: of("worker"), nodeAt };
}
