/**
 * The zone's way to the hub: which storage strings mean it, and what is said when the identity is no good.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { testConfig } from "../domain/server.fixture.ts";
import { hubTarget, openHubStore } from "./hub-store.ts";

test("grpc:// with a zone is the hub's face, anything else is not", () => {
  assert.deepEqual(hubTarget("grpc://eu-a@hub.example:443"), { zone: "eu-a", endpoint: "hub.example:443" });
  assert.deepEqual(hubTarget("grpc://eu-a:ignored@[::1]:443"), { zone: "eu-a", endpoint: "[::1]:443" });
  for (const other of [
    "grpc://hub:443",
    "grpc://eu-a@hub",
    "grpc://EU@hub:443",
    "grpc://a/b@hub:443",
    "etcd://a@hub:1",
    "sqlite://x",
  ]) {
    assert.equal(hubTarget(other), undefined, other);
  }
});

test("a missing key, and one that is none, are named with their file", async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "kontinuum-identity-"));
  const open = () =>
    openHubStore(
      { zone: "eu-a", endpoint: "127.0.0.1:1" },
      testConfig({ KONTINUUM_SERVER_IDENTITY_DIR: folder }),
      systemEdges(),
    );
  try {
    await assert.rejects(open(), /tls\.key.*KONTINUUM_SERVER_IDENTITY_DIR/);
    await writeFile(path.join(folder, "tls.key"), "no key");
    await assert.rejects(open(), /is not a private key in PEM/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
