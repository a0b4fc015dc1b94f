/**
 * Words and tones of objects, the generated kubeconfig, and the refusals at the edge of the pages.
 */
import assert from "node:assert/strict";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { test } from "node:test";
import type { Condition } from "@kontinuum/controller";
import { parse } from "yaml";
import type { Instance, Kontinuum, TalosCluster, Zone } from "../kinds/index.ts";
import { hubKubeconfig } from "./kubeconfig.ts";
import { isLoopbackHost, isSameOrigin } from "./route-adapter.ts";
import { clusterState, instanceState, processState, zoneState } from "./state/state.ts";
import { topologyOf } from "./topology.page.ts";

const now = Date.UTC(2026, 0, 1, 12);
const at = (secondsAgo: number): string => new Date(now - secondsAgo * 1000).toISOString();

function condition(type: string, status: Condition["status"], reason: string, secondsAgo = 10): Condition {
  return { type, status, reason, message: "", lastTransitionTime: at(secondsAgo) };
}

function instance(conditions: Condition[], labels: Record<string, string> = {}, deleting = false): Instance {
  return {
    apiVersion: "kontinuum.sh/v1alpha2",
    kind: "Instance",
    metadata: { name: "i", labels, ...(deleting ? { deletionTimestamp: at(1) } : {}) },
    spec: {},
    status: { conditions },
  };
}

const claimed = { "kontinuum.sh/claimed-by": "pool" };

test("an instance's state is the first row that applies", () => {
  const cases: [Instance, string, string][] = [
    [instance([]), "Discovering", "busy"],
    [instance([condition("Discovered", "True", "Discovered")]), "Unclaimed", "free"],
    [instance([condition("Discovered", "False", "ProbeFailed")]), "No answer", "warn"],
    [instance([condition("Discovered", "False", "NoInterfaces")]), "No address", "warn"],
    [instance([condition("Discovered", "True", "Discovered")], claimed), "Configuring", "busy"],
    [instance([condition("Configured", "True", "ConfigApplied")], claimed), "Joining", "busy"],
    [instance([condition("Joined", "True", "Joined")], claimed), "Joined", "ok"],
    [instance([condition("Ready", "True", "Healthy")], claimed), "Ready", "ok"],
    [instance([condition("Ready", "False", "Unhealthy")], claimed), "Unhealthy", "bad"],
    [instance([condition("Configured", "True", "ConfigApplied")], claimed, true), "Resetting", "leaving"],
    [instance([], {}, true), "Deleting", "leaving"],
  ];
  for (const [object, word, tone] of cases) assert.deepEqual(instanceState(object), { word, tone });
});

function zone(conditions: Condition[]): Zone {
  return {
    apiVersion: "kontinuum.sh/v1alpha2",
    kind: "Zone",
    metadata: { name: "eu-hel01", namespace: "kontinuum-system" },
    spec: { region: "eu", zone: "hel01" },
    status: { conditions },
  };
}

function process(secondsAgo: number | undefined): Kontinuum {
  return {
    apiVersion: "kontinuum.sh/v1alpha2",
    kind: "Kontinuum",
    metadata: { name: "p" },
    spec: { region: "eu", zone: "hel01" },
    status: secondsAgo === undefined ? {} : { role: "Worker", lastHeartbeatTime: at(secondsAgo) },
  };
}

test("a zone says what it waits for, and losing contact wins over being ready", () => {
  const ready = [
    condition("RegistryJoined", "True", "RegistryJoined"),
    condition("Ready", "True", "RegistryJoined"),
  ];
  assert.equal(zoneState(zone([]), undefined, undefined, now).word, "Pending");
  assert.equal(zoneState(zone(ready), process(5), undefined, now).word, "Ready");
  assert.equal(zoneState(zone(ready), process(91), undefined, now).word, "No contact");
  assert.equal(zoneState(zone(ready), process(5), { word: "Degraded", tone: "warn" }, now).word, "Degraded");
  const waiting = zone([condition("ClusterReady", "False", "WaitingForTalosCluster")]);
  assert.deepEqual(zoneState(waiting, undefined, undefined, now), { word: "Waiting", tone: "wait" });
  const blocked = zone([condition("Installed", "False", "NoStorageSecretFound")]);
  assert.deepEqual(zoneState(blocked, undefined, undefined, now), { word: "Blocked", tone: "bad" });
});

test("addons that take longer than 15 minutes are a warning", () => {
  const cluster = (secondsAgo: number): TalosCluster => ({
    apiVersion: "kontinuum.sh/v1alpha2",
    kind: "TalosCluster",
    metadata: { name: "c" },
    spec: { controlPlane: { poolRef: { name: "c" } } },
    status: { conditions: [condition("Ready", "False", "AddonNotHealthy", secondsAgo)] },
  });
  assert.equal(clusterState(cluster(60), false, now).word, "Installing addons");
  assert.equal(clusterState(cluster(901), false, now).tone, "warn");
});

test("a process is online, late or gone by its heartbeat", () => {
  assert.deepEqual(
    [undefined, 5, 91, 301].map((age) => processState(process(age), now).word),
    ["Starting", "Online", "Late", "Gone"],
  );
});

test("a machine appears once in the picture: in its cluster, or unclaimed in its zone", () => {
  const place = { "kontinuum.sh/region": "eu", "kontinuum.sh/zone": "hel01" };
  const named = (name: string, labels: Record<string, string>): Instance => ({
    ...instance([condition("Discovered", "True", "Discovered")], labels),
    metadata: { name, labels },
  });
  const view = topologyOf(
    {
      namespace: "kontinuum-system",
      zones: [zone([])],
      clusters: [
        {
          apiVersion: "kontinuum.sh/v1alpha2",
          kind: "TalosCluster",
          metadata: { name: "eu-hel01" },
          spec: { controlPlane: { poolRef: { name: "eu-hel01" } } },
        },
      ],
      pools: [],
      instances: [named("a", { ...place, "kontinuum.sh/claimed-by": "eu-hel01" }), named("b", place)],
      addons: [],
      processes: [process(3)],
    },
    [],
    [],
    now,
  );
  const drawn = view.regions[0]?.zones[0];
  assert.deepEqual(
    drawn?.clusters[0]?.controlPlane.map((cell) => cell.title),
    ["a: Configuring"],
  );
  assert.deepEqual(
    drawn?.unclaimed.map((cell) => cell.title),
    ["b: Unclaimed"],
  );
  assert.equal(drawn?.linkText, "3s ago");
});

test("the kubeconfig names what the contract fixes and skips verification only for local https", () => {
  const plain = parse(hubKubeconfig({ scheme: "http", host: "hub.example:8080" }, undefined));
  assert.equal(plain["current-context"], "kontinuum-hub.example");
  assert.equal(plain.clusters[0].cluster.server, "http://hub.example:8080");
  assert.deepEqual(plain.users, []);
  const oidc = parse(
    hubKubeconfig(
      { scheme: "https", host: "127.0.0.1:8443" },
      { issuerUrl: "https://idp", clientId: "kontinuum" },
    ),
  );
  assert.equal(oidc.clusters[0].cluster["insecure-skip-tls-verify"], true);
  assert.equal(oidc.contexts[0].name, "oidc@kontinuum-127.0.0.1");
  assert.ok(oidc.users[0].user.exec.args.includes("--oidc-extra-scope=groups"));
  const remote = parse(hubKubeconfig({ scheme: "https", host: "hub.example" }, undefined));
  assert.equal(remote.clusters[0].cluster["insecure-skip-tls-verify"], undefined);
  const local = { scheme: "https", host: "127.0.0.1:8443" } as const;
  const own = parse(hubKubeconfig(local, { issuerUrl: "https://idp", clientId: "kontinuum" }, "PEM"));
  assert.deepEqual(own.clusters[0].cluster, {
    server: "https://127.0.0.1:8443",
    "certificate-authority-data": Buffer.from("PEM").toString("base64"),
  });
  const open = parse(hubKubeconfig(local, undefined, "PEM"));
  assert.deepEqual(open.clusters[0].cluster, { server: "http://127.0.0.1:8443" });
});

test("a form of another origin is refused, one of this origin and a plain client are not", () => {
  const request = (headers: Record<string, string>): IncomingMessage => {
    const message = new IncomingMessage(new Socket());
    message.headers = { host: "hub:8080", ...headers };
    return message;
  };
  assert.ok(isSameOrigin(request({ origin: "http://hub:8080" })));
  assert.ok(isSameOrigin(request({})));
  assert.ok(!isSameOrigin(request({ origin: "http://evil.example" })));
  assert.ok(!isSameOrigin(request({ origin: "null" })));
  assert.ok(!isSameOrigin(request({ "sec-fetch-site": "cross-site" })));
});

test("only names of this machine open the pages while nobody signs in", () => {
  for (const host of ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "127.9.9.9"])
    assert.ok(isLoopbackHost(host), host);
  for (const host of [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.0.0.1",
    "[::2]:1",
    "",
  ]) {
    assert.ok(!isLoopbackHost(host), host);
  }
});
