/**
 * When the demo goes on, when it is done and when it gives up, decided from what the objects say.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "@kontinuum/controller";
import type { Addon, Instance, InstancePool, TalosCluster, Zone } from "../kinds/index.ts";
import { judge, milestones, type DemoWorld } from "./milestones.ts";

const apiVersion = "kontinuum.sh/v1alpha2";

function conditions(
  types: readonly string[],
  status: "True" | "False" = "True",
  reason = "Done",
): Condition[] {
  return types.map((type) => ({
    type,
    status,
    reason,
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  }));
}

/** A world in which everything is reached. */
function readyWorld(): DemoWorld {
  const meta = (name: string) => ({ metadata: { namespace: "kontinuum-system", name } });
  const zone: Zone = {
    apiVersion,
    kind: "Zone",
    ...meta("local-a"),
    spec: { region: "local", zone: "a" },
    status: { conditions: conditions(["Installed", "RegistryJoined", "Ready"]) },
  };
  const cluster: TalosCluster = {
    apiVersion,
    kind: "TalosCluster",
    ...meta("local-a"),
    spec: { controlPlane: { poolRef: { name: "local-a" } } },
    status: { conditions: conditions(["Bootstrapped", "ControlPlaneReady", "Ready"]) },
  };
  const pool: InstancePool = {
    apiVersion,
    kind: "InstancePool",
    ...meta("local-a"),
    spec: { selector: {}, replicas: 1 },
    status: { conditions: conditions(["Ready"]) },
  };
  const instance: Instance = {
    apiVersion,
    kind: "Instance",
    ...meta("node-1"),
    spec: { interfaces: ["127.64.0.10"] },
    status: { conditions: conditions(["Discovered", "Configured"]) },
  };
  const addons = ["gateway-api-crds", "cilium", "cert-manager"].map((releaseName): Addon => ({
    apiVersion,
    kind: "Addon",
    ...meta(releaseName),
    spec: { talosClusterRef: { name: "local-a" }, releaseName, chart: { name: releaseName } },
    status: { conditions: conditions(["Ready"]) },
  }));
  return { zone, cluster, pool, instances: [instance], addons };
}

test("everything reached is ready, also when no time is left", () => {
  const { reached, verdict, waitsFor } = judge(readyWorld(), 0, 0);
  assert.deepEqual([reached.length, verdict, waitsFor], [milestones.length, "ready", ""]);
  assert.deepEqual(judge(readyWorld(), milestones.length, 10).reached, []);
});

test("steps are reported once and in order", () => {
  const world = { ...readyWorld(), zone: undefined };
  const first = judge(world, 0, 1_000);
  assert.equal(first.verdict, "wait");
  assert.equal(first.reached.at(-1)?.text, "cluster ready");
  assert.deepEqual(judge(world, first.reached.length, 1_000).reached, []);
});

test("a cluster whose only machine is gone is waited for until the deadline, then given up with the reason", () => {
  const ready = readyWorld();
  const pool = ready.pool && {
    ...ready.pool,
    status: { conditions: conditions(["Ready"], "False", "CandidatesExhausted") },
  };
  // Cluster and zone still carry what was true before.
  const gone = { ...ready, instances: [], pool };
  const early = judge(gone, 0, 1);
  assert.deepEqual([early.verdict, early.reached.length], ["wait", 0]);
  const late = judge(gone, 1, 0);
  assert.equal(late.verdict, "late");
  assert.equal(late.waitsFor, 'waits for "pool claimed its machine": pool: CandidatesExhausted');
  const lost = { ...gone, instances: ready.instances };
  assert.equal(judge(lost, 0, 0).verdict, "late");
});

test("before anything was reported that is what is said", () => {
  const nothing = { zone: undefined, cluster: undefined, pool: undefined, instances: [], addons: [] };
  assert.match(judge(nothing, 0, 0).waitsFor, /machines discovered.*: nothing was reported yet/);
});
