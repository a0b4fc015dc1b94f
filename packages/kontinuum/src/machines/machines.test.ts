/**
 * The seams around machines: who may use the machine API, what a zone's process is given, what the rack keeps.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { namespaces } from "@kontinuum/controller";
import type { Authenticator as ApiAuthenticator } from "@kontinuum/kapi";
import type { DemoGuest } from "@kontinuum/kryton";
import { systemEdges } from "@kontinuum/std";
import { mayHaveKey } from "../cli/kms.command.ts";
import { instance } from "../domain/objects.fixture.ts";
import { sharedSignIn, startMachineApi } from "./machine-api.ts";
import { VirtualRack, talosImage } from "./virtual-rack.ts";
import { kontinuumZoneRunner, serverEnvironment } from "./zone-runner.ts";
import { eventually, startTestServer, testConfig } from "../domain/server.fixture.ts";
import { openProjects, projectLabel } from "./projects.ts";

const tokens: ApiAuthenticator = {
  name: "test",
  authenticate: ({ bearer }) =>
    Promise.resolve(
      bearer === "admin"
        ? { name: "ada", groups: ["ops"] }
        : bearer === "user"
          ? { name: "bob", groups: [] }
          : ("invalid" as const),
    ),
};

test("administrators of the hub are admins of every project, others hold none, strangers are nobody", async () => {
  const signIn = sharedSignIn([tokens], ["ops"]);
  const as = (authorization?: string) =>
    signIn.authenticate({
      header: (name) => (name === "authorization" ? authorization : undefined),
      remoteAddress: "",
    });
  assert.deepEqual(await as("Bearer admin"), { name: "ada", role: "admin", projects: ["*"] });
  assert.deepEqual(await as("Bearer user"), { name: "bob", role: "viewer", projects: [] });
  assert.equal(await as("Bearer stranger"), undefined);
  assert.equal(await as("Basic admin"), undefined);
  assert.equal(await as(), undefined);
});

test("the machine API is not open while the hub is signed in to", async () => {
  const config = testConfig({
    KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "false",
    KONTINUUM_OIDC_ISSUER_URL: "https://issuer.example",
    KONTINUUM_OIDC_ADMIN_GROUPS: "ops",
  });
  const environment = { KRYTON_PROVIDER: "demo", KRYTON_AUTH_MODE: "disabled" };
  await assert.rejects(
    startMachineApi({
      environment,
      edges: systemEdges(),
      config,
      authenticators: [],
      transport: () => Promise.reject(new Error("must not be asked")),
    }),
    /KRYTON_AUTH_MODE=disabled is refused/,
  );
});

test("a zone's process gets its pod's environment and nothing of ours", () => {
  process.env["SECRET_OF_THE_HUB"] = "x";
  const environment = serverEnvironment({
    name: "pod-1",
    address: "127.1.2.3",
    privateDir: "/pods/1",
    env: { KONTINUUM_SERVER_ADDR: ":8080", KONTINUUM_SERVER_REGION: "eu" },
    mounts: { "/tmp": "/pods/1/tmp", "/etc/kontinuum/etcd-identity": "/pods/1/identity" },
  });
  delete process.env["SECRET_OF_THE_HUB"];
  assert.deepEqual(environment, {
    HOME: "/pods/1",
    PATH: "/usr/bin:/bin",
    KONTINUUM_SERVER_REGION: "eu",
    TMPDIR: "/pods/1/tmp",
    KONTINUUM_SERVER_ADDR: "127.1.2.3:8080",
    KONTINUUM_SERVER_IDENTITY_DIR: "/pods/1/identity",
    KONTINUUM_SERVER_NAME: "pod-1",
  });
});

test("the runner takes our image and no other", () => {
  const { image } = kontinuumZoneRunner(systemEdges());
  for (const ours of [
    "ghcr.io/nicklasfrahm-dev/kontinuum:dev",
    "kontinuum",
    "reg:5000/kontinuum@sha256:abc",
  ]) {
    assert.match(ours, image);
  }
  for (const other of ["ghcr.io/x/not-kontinuum:v1", "kontinuum-tools:v1", "nginx"])
    assert.doesNotMatch(other, image);
});

test("a disk key goes to a registered machine at its own address only", () => {
  const machine = instance("a", {
    status: {
      identity: { uuid: "4C4C4544-0000-1000-8000-000000000001" },
      interfaces: [{ name: "eth0", addresses: ["10.0.0.7/24"] }],
    },
  });
  const uuid = "4c4c4544-0000-1000-8000-000000000001";
  assert.equal(mayHaveKey(machine, { nodeUuid: uuid, address: "10.0.0.7" }), true);
  assert.equal(mayHaveKey(machine, { nodeUuid: uuid, address: "10.0.0.1" }), true);
  assert.equal(mayHaveKey(machine, { nodeUuid: uuid, address: "10.0.0.8" }), false);
  assert.equal(mayHaveKey(machine, { nodeUuid: "other", address: "10.0.0.7" }), false);
  assert.equal(mayHaveKey(instance("b"), { nodeUuid: "", address: "10.0.0.1" }), false);
});

test("a machine of the rack finds its address again", async () => {
  const statePath = await mkdtemp(path.join(os.tmpdir(), "kontinuum-rack-"));
  const open = () =>
    VirtualRack.open({
      edges: systemEdges(),
      statePath,
      addressBase: `127.${64 + (process.pid % 60)}.103.10`,
      runners: [],
    });
  const guest = (id: string): DemoGuest => ({
    id,
    project: "default",
    spec: {
      name: id,
      image: talosImage.id,
      compute: { cpu: 2, memoryMiB: 2048 },
      disk: { sizeGiB: 16 },
      network: {},
    },
  });
  let rack = await open();
  try {
    assert.equal(rack.handles(talosImage.id), true);
    assert.equal(rack.handles("ubuntu"), false);
    const first = await rack.create(guest("a"));
    const second = await rack.create(guest("b"));
    assert.notDeepEqual(first.ipAddresses, second.ipAddresses);
    assert.deepEqual((await rack.create(guest("a"))).ipAddresses, first.ipAddresses);
    await rack.close();
    rack = await open();
    await rack.start(guest("b"));
    assert.deepEqual((await rack.create(guest("b"))).ipAddresses, second.ipAddresses);
    await rack.delete(guest("a"));
    assert.deepEqual((await rack.create(guest("c"))).ipAddresses, first.ipAddresses);
  } finally {
    await rack.close();
    await rm(statePath, { recursive: true, force: true });
  }
});

test("projects are labelled namespaces: named ones are made, others followed, deleted ones gone", async () => {
  const server = await startTestServer();
  const projects = await openProjects(server.transport, ["default", "ci"], server.edges);
  try {
    assert.deepEqual(projects.list(), ["ci", "default"]);
    const metadata = { name: "qa", labels: { [projectLabel]: "" } };
    await server.client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata });
    await eventually("qa is a project", async () => projects.list().includes("qa"));
    await server.client.patch(
      namespaces,
      { name: "ci" },
      { type: "merge", patch: { metadata: { labels: { [projectLabel]: null } } } },
    );
    await eventually("ci is none any more", async () => !projects.list().includes("ci"));
    assert.equal(projects.list().includes("kube-system"), false);
  } finally {
    await projects.close();
    await server.close();
  }
});
