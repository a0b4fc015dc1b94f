/**
 * A node that answers with whatever it likes: the client refuses it in words, and never hangs, grows
 * without bound or throws anything but a `TalosError`.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ConnectRouter } from "@connectrpc/connect";
import { seededRandom, systemEdges } from "@kontinuum/std";
import { ClusterService } from "../gen/cluster/cluster_pb.ts";
import { EventType, State } from "../gen/cosi/resource/state_pb.ts";
import { MachineService } from "../gen/machine/machine_pb.ts";
import { startTlsNode, type TlsNode } from "../testing/tls-node.ts";
import { connectTalos, type TalosClient } from "./client.ts";
import { resourceKinds } from "./resource-kind.ts";
import { TalosError } from "./talos-error.ts";

const edges = systemEdges();
const random = seededRandom(7);
let node: TlsNode;
let spec: Uint8Array = new Uint8Array();
let many = 1;
let withMetadata = true;

const routes = (router: ConnectRouter): void => {
  router.service(State, {
    async *list() {
      for (let i = 0; i < many; i++) {
        yield {
          resource: {
            ...(withMetadata ? { metadata: { id: `${i}`, version: "1", phase: "running" } } : {}),
            spec: { protoSpec: spec },
          },
        };
      }
    },
    async *watch() {
      yield {
        event: [{ eventType: EventType.NOOP }, { eventType: EventType.CREATED, resource: {} }],
      };
    },
  });
  router.service(MachineService, {
    version: () => ({ messages: [{ version: { tag: "v".repeat(100_000) } }] }),
    async *kubeconfig() {
      for (;;) yield { bytes: new Uint8Array(100_000) };
    },
  });
  router.service(ClusterService, {
    async *healthCheck() {
      yield { metadata: { error: "one node is not there", hostname: "192.0.2.1" } };
    },
  });
};

before(async () => {
  node = await startTlsNode({ routes });
});
after(() => node.close());

const connect = (): TalosClient =>
  connectTalos({ address: "127.0.0.1", port: node.port, edges, credentials: { kind: "maintenance" } });

async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "read";
  } catch (error) {
    assert(error instanceof TalosError, `not a TalosError: ${String(error)}`);
    return error.reason;
  }
}

test("records of random bytes are read or refused", async () => {
  using client = connect();
  const seen = new Set<string>();
  for (let i = 0; i < 60; i++) {
    spec = random.bytes(random.integer(40));
    seen.add(await outcome(client.links()));
    seen.add(await outcome(client.addresses()));
    seen.add(await outcome(client.disks()));
    seen.add(await outcome(client.systemInformation()));
  }
  assert.deepEqual([...seen].sort(), ["protocol", "read"]);
});

test("a resource without metadata is refused", async () => {
  using client = connect();
  spec = new Uint8Array();
  withMetadata = false;
  assert.equal(await outcome(client.links()), "protocol");
  withMetadata = true;
});

test("a list without end is cut", async () => {
  using client = connect();
  many = 5_001;
  assert.equal(await outcome(client.links()), "protocol");
  many = 1;
});

test("an archive without end is cut", async () => {
  using client = connect();
  assert.equal(await outcome(client.kubeconfig()), "protocol");
});

test("an event that says nothing is skipped, one without a resource refused", async () => {
  using client = connect();
  const events = async (): Promise<void> => {
    for await (const event of client.state.watch(resourceKinds.disk)) assert(event);
  };
  assert.equal(await outcome(events()), "protocol");
});

test("a failing target inside a stream is a failure", async () => {
  using client = connect();
  assert.equal(await outcome(client.healthCheck({ controlPlane: ["192.0.2.1"] })), "failed");
});
