/**
 * Zones: what travels into one, what is installed, and what is reported.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, SimulatedClock } from "@kontinuum/std";
import { parseConfig } from "../../config/config.ts";
import { readValues } from "../../config/variables.ts";
import { covers } from "../downstream/apply.ts";
import { kontinuum, zone } from "../objects.fixture.ts";
import { zoneEnvironment, zoneHost } from "./zone.environment.ts";
import { joinedProcesses } from "./zone.install.ts";
import { teardownStatus, zoneStatus } from "./zone.status.ts";
import { describeZone } from "./zone.wait.ts";
import { pullPolicy, workloadObjects, zoneImage } from "./zone.workload.ts";

const config = parseConfig(
  readValues({
    KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true",
    KONTINUUM_SERVER_GRPC_ENDPOINT: "hub.example:443",
    KONTINUUM_SERVER_STORAGE: "postgres://user:secret@db/k",
    KONTINUUM_SERVER_TLS_CERT_FILE: "/tls.crt",
    KONTINUUM_SERVER_TLS_KEY_FILE: "/tls.key",
    KONTINUUM_CHART_DIR: "/charts",
  }),
);
const clock = new SimulatedClock();

test("a zone gets its own placement and the hub's address, and none of the hub's secrets", () => {
  const environment = zoneEnvironment(config, zone("eu", "a", { domain: "example.com" }));
  assert.deepEqual(environment.secret, { KONTINUUM_SERVER_STORAGE: "grpc://eu-a@hub.example:443" });
  assert.equal(environment.plain["KONTINUUM_SERVER_REGION"], "eu");
  assert.equal(environment.plain["KONTINUUM_OIDC_REDIRECT_URL"], "https://a.eu.example.com/app");
  const everything = JSON.stringify(environment);
  for (const leak of ["secret@", "/tls.key", "/charts", "KRYTON"])
    assert.doesNotMatch(everything, new RegExp(leak));
  assert.equal(zoneHost(zone("eu", "a")), undefined);
});

test("the workload is hardened, and its pod changes exactly when its environment does", () => {
  const build = (domain: string | undefined) => {
    const environment = zoneEnvironment(config, zone("eu", "a", domain === undefined ? {} : { domain }));
    return workloadObjects({ environment, image: "img:v1.0.0", probed: true });
  };
  const deployment = build(undefined).find(({ kind }) => kind === "Deployment");
  const pod = (path: (string | number)[]) => at(deployment, "spec", "template", "spec", ...path);
  assert.equal(pod(["securityContext", "runAsNonRoot"]), true);
  assert.equal(pod(["containers", 0, "securityContext", "readOnlyRootFilesystem"]), true);
  assert.equal(pod(["containers", 0, "volumeMounts", 1, "readOnly"]), true);
  assert.deepEqual(build(undefined), build(undefined));
  assert.notDeepEqual(build(undefined), build("example.com"));
});

test("the image runs this version unless it names one; only what can't change is not pulled again", () => {
  assert.equal(zoneImage("ghcr.io/x/kontinuum", "v1.2.3"), "ghcr.io/x/kontinuum:v1.2.3");
  assert.equal(zoneImage("reg:5000/x/kontinuum", "dev"), "reg:5000/x/kontinuum:dev");
  assert.equal(zoneImage("x/kontinuum:v9", "dev"), "x/kontinuum:v9");
  assert.equal(zoneImage("x/kontinuum@sha256:abc", "dev"), "x/kontinuum@sha256:abc");
  assert.equal(pullPolicy("x:v1.2.3"), "IfNotPresent");
  assert.equal(pullPolicy("x:v1.2.3-rc.1"), "IfNotPresent");
  assert.equal(pullPolicy("x@sha256:abc"), "IfNotPresent");
  for (const image of ["x:dev", "x:latest", "x:1.2.3", "x:v1"])
    assert.equal(pullPolicy(image), "Always", image);
});

test("a process joined when it reported itself lately from the same place", () => {
  const beat = (name: string, place: object, time: string) =>
    kontinuum(name, { ...place }, { status: { lastHeartbeatTime: time } });
  const now = Date.parse("2026-01-01T00:05:00Z");
  const here = { region: "eu", zone: "a" };
  const all = [
    beat("z", here, "2026-01-01T00:04:00Z"),
    beat("b", here, "2026-01-01T00:04:00Z"),
    beat("a", { region: "eu", zone: "b" }, "2026-01-01T00:04:00Z"),
    beat("0", here, "2025-12-31T00:00:00Z"),
    kontinuum("1", here),
  ];
  const names = (processes: typeof all, one = zone("eu", "a"), at = now): string[] =>
    joinedProcesses(processes, one, at, 300_000).map(({ metadata }) => metadata.name);
  assert.deepEqual(names(all), ["b", "z"]);
  assert.deepEqual(names([]), []);
  assert.deepEqual(names(all, undefined, now + 239_999), ["b", "z"]);
  assert.deepEqual(names(all, undefined, now + 240_000), [], "silent for five minutes");
});

test("a process of a removed zone of the same place is no process of the new one", () => {
  const beat = (time: string) =>
    kontinuum("p", { region: "eu", zone: "a" }, { status: { lastHeartbeatTime: time } });
  const now = Date.parse("2026-01-01T00:05:00Z");
  const young = zone("eu", "a", {}, { metadata: { creationTimestamp: "2026-01-01T00:04:30Z" } });
  const joined = (time: string): boolean => joinedProcesses([beat(time)], young, now, 300_000).length === 1;
  assert.equal(joined("2026-01-01T00:04:29Z"), false);
  assert.equal(
    joined("2026-01-01T00:04:30Z"),
    false,
    "the second of the creation: before or after, nobody knows",
  );
  assert.equal(joined("2026-01-01T00:04:31Z"), true);
  assert.equal(joined("2026-01-01T00:10:00Z"), false, "a heartbeat from a future that would keep it ready");
});

test("Ready mirrors what decides it, and a removed teardown leaves no trace", () => {
  const one = zone("eu", "a");
  const view = (status: { conditions?: { type: string; status: string; reason: string }[] }) =>
    Object.fromEntries(
      (status.conditions ?? []).map(({ type, status: holds, reason }) => [type, `${holds} ${reason}`]),
    );
  const waiting = { at: "cluster", reason: "WaitingForTalosCluster", message: "m" } as const;
  assert.deepEqual(view(zoneStatus(one, waiting, clock)), {
    ClusterReady: "False WaitingForTalosCluster",
    Ready: "False WaitingForTalosCluster",
  });
  const ready = zoneStatus(one, { at: "ready", installed: "i", message: "m", staleInMs: 1 }, clock);
  assert.deepEqual(view(ready), {
    ClusterReady: "True ClusterReady",
    Installed: "True Installed",
    RegistryJoined: "True RegistryJoined",
    Ready: "True RegistryJoined",
  });
  const leaving = zone(
    "eu",
    "a",
    {},
    {
      status: teardownStatus(zone("eu", "a", {}, { status: ready }), "DownstreamTeardownFailed", "m", clock),
    },
  );
  assert.equal(view(leaving.status ?? {})["Teardown"], "False DownstreamTeardownFailed");
  assert.equal("Teardown" in view(zoneStatus(leaving, waiting, clock)), false);
});

test("the line for people is the newest condition", () => {
  assert.equal(describeZone(undefined), "waiting for the zone to appear");
  assert.equal(describeZone(zone("eu", "a")), "waiting for the first status");
  const status = zoneStatus(zone("eu", "a"), { at: "registry", installed: "i", message: "not yet" }, clock);
  assert.match(describeZone(zone("eu", "a", {}, { status })), /^ClusterReady=True \(ClusterReady\)/);
});

test("what is wanted is compared as a part of what is there", () => {
  const present = { spec: { replicas: 1, extra: true, list: [{ a: 1, defaulted: 2 }] } };
  assert.equal(covers(present, { spec: { replicas: 1, list: [{ a: 1 }] } }), true);
  assert.equal(covers(present, { spec: { list: [{ a: 2 }] } }), false);
  assert.equal(covers(present, { spec: { list: [] } }), false);
  assert.equal(covers(present, { spec: { missing: "" } }), true);
  assert.equal(covers(present, { spec: { missing: 1 } }), false);
});
