/**
 * Speed of the protobuf codec and of normalisation, for the bodies that real clients send most.
 *
 * Prints one line per case: microseconds an object, against the engine's JSON functions on the same object.
 * Run with `node bench/kapi/codec.bench.ts`.
 */
import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { decodeProtobuf, encodeProtobuf, encodeWatchFrame } from "../../packages/kapi/src/codec/index.ts";
import { messageOf } from "../../packages/kapi/src/codec/messages.ts";
import { normalize } from "../../packages/kapi/src/kinds/normalize.ts";
import { builtinResources } from "../../packages/kapi/src/kinds/index.ts";

const samples = new URL("../../packages/kapi/testdata/protobuf-samples/", import.meta.url);
const vectors = new URL("../../third_party/kubernetes/testdata/roundtrip/", import.meta.url);

/** How long each measurement runs, in milliseconds. */
const spanMs = 400;

function measure(run: () => void): number {
  for (let warm = 0; warm < 2000; warm++) run();
  let count = 0;
  const start = performance.now();
  let elapsed = 0;
  while (elapsed < spanMs) {
    for (let inner = 0; inner < 50; inner++) run();
    count += 50;
    elapsed = performance.now() - start;
  }
  return (elapsed * 1000) / count;
}

const cases = [
  { name: "ConfigMap (kubectl create)", bytes: readFileSync(new URL("configmap.bin", samples)) },
  { name: "Deployment (kubectl create)", bytes: readFileSync(new URL("deployment.bin", samples)) },
  { name: "Lease (populated)", bytes: readFileSync(new URL("coordination.k8s.io.v1.Lease.pb", vectors)) },
  { name: "Pod (every field)", bytes: readFileSync(new URL("core.v1.Pod.pb", vectors)) },
];

const columns = ["bytes", "decode", "encode", "watch frame", "normalise", "JSON.parse", "JSON.stringify"];
console.log(["case".padEnd(28), ...columns.map((column) => column.padStart(14))].join(""));
for (const { name, bytes } of cases) {
  const object = decodeProtobuf(bytes);
  const text = JSON.stringify(object);
  const type = messageOf(String(object["apiVersion"]), String(object["kind"]));
  if (type === undefined) throw new Error(`${name} has no type`);
  const cells = [
    String(bytes.length),
    ...[
      () => void decodeProtobuf(bytes),
      () => void encodeProtobuf(object),
      () => void encodeWatchFrame("MODIFIED", object),
      () => void normalize(type, object),
      () => void JSON.parse(text),
      () => void JSON.stringify(object),
    ].map((run) => `${measure(run).toFixed(2)} µs`),
  ];
  console.log([name.padEnd(28), ...cells.map((cell) => cell.padStart(14))].join(""));
}

const configMaps = builtinResources().find(({ kind }) => kind === "ConfigMap");
const items = Array.from({ length: 500 }, (_value, index) => ({
  metadata: { name: `item-${index}`, namespace: "default", uid: "0e0a1b2c-0000-4000-8000-000000000000" },
  data: { key: "x".repeat(900) },
}));
const list = {
  apiVersion: "v1",
  kind: configMaps?.listKind ?? "",
  metadata: { resourceVersion: "1" },
  items,
};
console.log(
  `list of 500 ConfigMaps of 1 KiB: encode ${(measure(() => void encodeProtobuf(list)) / 1000).toFixed(2)} ms`,
);
