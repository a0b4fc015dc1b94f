/**
 * Random requests to every method of a running node: it answers with a status a Talos node has, and goes on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  ScalarType,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  type Message,
} from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ClusterService } from "../gen/cluster/cluster_pb.ts";
import { State } from "../gen/cosi/resource/state_pb.ts";
import { InspectService } from "../gen/inspect/inspect_pb.ts";
import { ImageService } from "../gen/machine/image_pb.ts";
import { LifecycleService } from "../gen/machine/lifecycle_pb.ts";
import { MachineService } from "../gen/machine/machine_pb.ts";
import { StorageService } from "../gen/storage/storage_pb.ts";
import { TimeService } from "../gen/time/time_pb.ts";
import { seededRandom } from "@kontinuum/std";
import { startRunningNode } from "./rack.fixture.ts";

const services = [
  MachineService,
  State,
  ClusterService,
  StorageService,
  TimeService,
  InspectService,
  ImageService,
  LifecycleService,
] as const;

/** Methods that rightly end or change the node. */
const endings = new Set([
  "Reboot",
  "Shutdown",
  "Reset",
  "Upgrade",
  "Rollback",
  "Install",
  "EtcdLeaveCluster",
]);
const roundsPerMethod = 12;

const texts = [
  "",
  "/",
  "../../etc/passwd",
  "/etc",
  "system",
  "k8s.io",
  "kubelet",
  "eth0",
  "sda",
  "network",
  "LinkStatuses.net.talos.dev",
  "linkstatuses.net.talos.dev",
  "__proto__",
  "a".repeat(3000),
  "\\u0000\\n",
  "^(a+)+$",
  "ghcr.io/x/y:v1.13.1",
  "3.5",
];

class Dice {
  readonly #random = seededRandom(20_26);
  upTo(limit: number): number {
    return this.#random.integer(limit);
  }
  of<T>(items: readonly T[]): T | undefined {
    return items[this.upTo(items.length)];
  }
}

function valueOf(field: DescField, dice: Dice, depth: number): unknown {
  const scalar = (type: ScalarType): unknown => {
    switch (type) {
      case ScalarType.STRING:
        return dice.of(texts);
      case ScalarType.BOOL:
        // Following never ends.
        return field.name !== "follow" && dice.upTo(2) === 1;
      case ScalarType.BYTES:
        return Buffer.from(dice.of(texts) ?? "");
      case ScalarType.INT64:
      case ScalarType.UINT64:
        return BigInt(dice.of([0, 1, 255, 2 ** 40]) ?? 0);
      case ScalarType.UINT32:
        return dice.of([0, 1, 255, 70_000, 2 ** 32 - 1]);
      default:
        return dice.of([0, 1, -1, 100_000]);
    }
  };
  switch (field.fieldKind) {
    case "scalar":
      return scalar(field.scalar);
    case "enum":
      return dice.upTo(6);
    case "message":
      return requestOf(field.message, dice, depth + 1);
    case "list": {
      const one = (): unknown =>
        field.listKind === "scalar"
          ? scalar(field.scalar)
          : field.listKind === "enum"
            ? dice.upTo(6)
            : requestOf(field.message, dice, depth + 1);
      return Array.from({ length: dice.upTo(3) }, one);
    }
    case "map":
      return {};
  }
}

function requestOf(message: DescMessage, dice: Dice, depth = 0): Message {
  const made = create(message);
  for (const field of depth > 3 ? [] : message.fields) {
    if (dice.upTo(3) === 0) continue;
    const value = valueOf(field, dice, depth);
    if (field.oneof) Object.assign(made, { [field.oneof.localName]: { case: field.localName, value } });
    else Object.assign(made, { [field.localName]: value });
  }
  return made;
}

const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === "unary";
const isStreaming = (method: DescMethod): method is DescMethodStreaming => method.methodKind !== "unary";

async function* once(request: Message): AsyncGenerator<Message> {
  yield request;
}

async function statusOf(transport: Transport, method: DescMethod, request: Message): Promise<string> {
  try {
    if (isUnary(method)) await transport.unary(method, undefined, 5_000, undefined, request);
    else if (isStreaming(method)) {
      // Streams without an end are left at their deadline.
      const { message } = await transport.stream(method, undefined, 400, undefined, once(request));
      for await (const _ of message);
    }
    return "OK";
  } catch (error) {
    return Code[ConnectError.from(error).code] ?? "?";
  }
}

test("a node outlives random requests to every method", { timeout: 240_000 }, async (t) => {
  const { node, transport } = await startRunningNode(t);
  const dice = new Dice();
  for (const { methods, typeName } of services) {
    for (const method of methods) {
      if (endings.has(method.name) || method.methodKind === "client_streaming") continue;
      const requests = Array.from({ length: roundsPerMethod }, () => requestOf(method.input, dice));
      const seen = await Promise.all(requests.map((request) => statusOf(transport, method, request)));
      const wrong = seen.findIndex((status) => status === "Internal" || status === "?");
      assert.equal(wrong, -1, `${typeName}/${method.name}: ${seen.join(" ")}`);
      if (method.methodKind === "unary")
        assert.ok(!seen.includes("DeadlineExceeded"), `${method.name} hangs`);
    }
  }
  const machine = createClient(MachineService, transport);
  assert.equal((await machine.version({})).messages[0]?.version?.tag, "v1.13.0");
  assert.equal(node.stage, "running");
});
