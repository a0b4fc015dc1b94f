/**
 * What a cluster decides: who its members are, which endpoint it has, what it reports of its addons.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedClock, systemEdges } from "@kontinuum/std";
import { generateSecretsBundle } from "@kontinuum/talos";
import { addon, cluster, condition, holding, instance } from "../objects.fixture.ts";
import { addressOf, claimedOf, membersOf, poolNames } from "./members.ts";
import { talosAccess } from "./talos-access.ts";
import { chooseEndpoint } from "./taloscluster.pass.ts";
import { leftNodes } from "./taloscluster.nodes.ts";
import { addonsReport, clusterStatus } from "./taloscluster.status.ts";

const machine = (name: string, pool: string, address: string, ...conditions: string[]) =>
  instance(
    name,
    { ...holding(...conditions), metadata: { labels: { "kontinuum.sh/claimed-by": pool } } },
    { interfaces: [address] },
  );

test("members: control plane first, by name, only those that were seen and stay", () => {
  const owner = cluster("c", ["w"]);
  const all = [
    machine("w1", "w", "10.0.0.9", "Discovered"),
    machine("b", "cp", "10.0.0.2", "Discovered"),
    machine("a", "cp", "10.0.0.1", "Configured"),
    machine("unseen", "cp", "10.0.0.3"),
    machine("theirs", "other", "10.0.0.4", "Discovered"),
    instance("leaving", {
      ...holding("Discovered"),
      metadata: { labels: { "kontinuum.sh/claimed-by": "cp" }, annotations: { "kontinuum.sh/release": "x" } },
    }),
  ];
  assert.deepEqual(
    membersOf(owner, all).map(({ instance: { metadata }, role }) => `${metadata.name} ${role}`),
    ["a controlplane", "b controlplane", "w1 worker"],
  );
  assert.deepEqual(membersOf(owner, all.toReversed()), membersOf(owner, all));
  assert.equal(claimedOf(owner, all).length, 5);
  assert.deepEqual(poolNames(owner), ["w", "cp"]);
});

test("a machine is dialled where it answered, else at a usable interface, else at its first candidate", () => {
  const interfaces = [
    { name: "lo", addresses: ["127.0.0.1/8"] },
    { name: "eth0", addresses: ["fe80::1/64", "10.0.0.7/24"] },
  ];
  assert.equal(addressOf(instance("a", { status: { interfaces } })), "10.0.0.7");
  assert.equal(
    addressOf(instance("a", { status: { interfaces, identity: { address: "10.1.1.1" } } })),
    "10.1.1.1",
  );
  assert.equal(addressOf(instance("a")), "10.0.0.1");
  assert.equal(addressOf(instance("a", {}, {})), undefined);
});

test("the endpoint is chosen once, and anew only when its machine is gone and another one serves", () => {
  const a = machine("a", "cp", "10.0.0.1", "Configured");
  const b = machine("b", "cp", "10.0.0.2", "Configured");
  const fresh = machine("c", "cp", "10.0.0.3", "Discovered");
  const choose = (endpoint: string | undefined, ...machines: ReturnType<typeof machine>[]) => {
    const owner = cluster("c", [], endpoint === undefined ? {} : { status: { endpoint } });
    return chooseEndpoint(owner, membersOf(owner, machines));
  };
  assert.equal(choose(undefined), undefined);
  assert.equal(choose(undefined, b, a), "10.0.0.1");
  assert.equal(choose("10.0.0.2", a, b), "10.0.0.2");
  assert.equal(choose("10.0.0.9", a, b), "10.0.0.1");
  assert.equal(choose("10.0.0.9", fresh), "10.0.0.9");
  const named = {
    ...cluster("c"),
    spec: { controlPlane: { poolRef: { name: "cp" }, endpoint: "api.example" } },
  };
  assert.equal(chooseEndpoint(named, membersOf(named, [a])), "api.example");
});

test("the Node of a machine that left goes; one of a member, or that still runs, stays", () => {
  const node = (name: string, ready: "True" | "False" | "Unknown") => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name },
    status: { conditions: [{ type: "Ready", status: ready }] },
  });
  const bare = { apiVersion: "v1", kind: "Node", metadata: { name: "bare" } };
  const all = [node("a", "True"), node("b", "False"), node("left", "Unknown"), node("running", "True"), bare];
  assert.deepEqual(leftNodes(all, ["a", "b"]), ["left", "bare"]);
});

test("Ready lists every enabled addon that is not, and goes back when one breaks", () => {
  const good = addon("c-cilium", { releaseName: "cilium" }, holding("Ready"));
  const bad = addon(
    "c-web",
    { releaseName: "web" },
    { status: { conditions: [condition("Ready", "False", "NotHealthy")] } },
  );
  assert.deepEqual(addonsReport([good]).reason, "AddonsInstalled");
  assert.equal(addonsReport([good, bad, addon("new")]).message, "new: Pending, web: NotHealthy");
  assert.equal(addonsReport([addon("off", { enabled: false })]).holds, true);
  const clock = new SimulatedClock();
  const ready = clusterStatus(cluster("c"), [addonsReport([good])], clock);
  const broken = clusterStatus(cluster("c", [], { status: ready }), [addonsReport([bad])], clock);
  assert.equal(broken.conditions?.[0]?.status, "False");
});

test("keys are not used towards an address that was written into an object behind discovery's back", async () => {
  const edges = systemEdges();
  const bundle = await generateSecretsBundle({ talosVersion: "v1.13.0", edges });
  const access = talosAccess(bundle, edges, []);
  const never = (): Promise<never> => Promise.reject(new Error("must not be called"));
  await assert.rejects(access.asAdmin("169.254.169.254", never), /not an address machines may have/);
  await assert.rejects(access.inMaintenance("127.0.0.1", "", never), /not an address machines may have/);
});
