import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { kmsKeyBytes, kmsService } from "../kms/kms-service.ts";
import { serveKms } from "../kms/serve-kms.ts";
import { eventually, startRack, TestCluster } from "./rack.fixture.ts";

const edges = systemEdges();

test(
  "a node with encrypted volumes has its keys sealed once and unsealed at every boot",
  { timeout: 30_000 },
  async (t) => {
    const rack = await startRack(t);
    const [node] = rack.nodes;
    assert.ok(node);
    const callers: string[] = [];
    let isKnown = true;
    const kms = await serveKms({
      address: "127.0.0.1",
      port: 0,
      service: kmsService({
        edges,
        rootKey: Buffer.alloc(kmsKeyBytes, 7),
        delayMs: 10,
        allow: ({ nodeUuid, address }) => {
          callers.push(`${nodeUuid} ${address}`);
          return isKnown;
        },
      }),
    });
    t.after(() => kms.close());
    const cluster = await TestCluster.create(node.spec.address);
    const volume = (name: string) =>
      `---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: ${name}\nencryption:\n    provider: luks2\n    keys:\n        - slot: 0\n          kms:\n              endpoint: grpc://127.0.0.1:${kms.port}\n`;
    await cluster.apply(
      node.spec.address,
      cluster.config("controlplane", "cp") + volume("STATE") + volume("EPHEMERAL"),
    );
    await eventually("installed and booted", () => node.isCriUp && node.record.installed);
    assert.deepEqual(node.record.sealedKeys?.map(({ volume: name }) => name).sort(), ["EPHEMERAL", "STATE"]);
    assert.deepEqual(
      new Set(callers),
      new Set([`${node.spec.uuid} ${node.spec.address}`]),
      "the node calls from its own address",
    );

    // A service that does not know the node any more keeps it from booting.
    isKnown = false;
    await node.powerOff();
    const asked = callers.length;
    const booting = node.powerOn();
    await eventually("it asked again after a refusal", () => callers.length > asked + 2);
    assert.equal(node.isCriUp, false);
    isKnown = true;
    await eventually("the volumes open", () => node.isCriUp);
    await rack.close();
    await booting;
  },
);
