import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage/client";
import { conformance, patientCall, requestFor } from "../../provider-contract/conformance.ts";
import { DemoProvider } from "./demo-provider.ts";
import type { DemoGuest, DemoHook } from "./hook.ts";

const edges = systemEdges();

conformance("demo", async () => {
  const store = await openStore("memory://", edges);
  return {
    provider: new DemoProvider({ store, edges }),
    image: "debian-13",
    reopen: () => Promise.resolve(new DemoProvider({ store, edges })),
    [Symbol.asyncDispose]: () => store.close(),
  };
});

test("demo: addresses are unique, count up past a /24, and are given back", async () => {
  const store = await openStore("memory://", edges);
  const provider = new DemoProvider({ store, edges });
  const requests = Array.from({ length: 300 }, (_, i) => requestFor("debian-13", `m${i}`));
  const made = await Promise.all(requests.map((request) => provider.create(request, patientCall)));
  const addresses = made.flatMap(({ ipAddresses }) => ipAddresses ?? []);
  assert.equal(new Set(addresses).size, 300);
  assert.equal(addresses[0], "10.44.0.20");
  for (const address of addresses) {
    const last = Number(address.split(".")[3]);
    assert.ok(last >= 1 && last <= 254, address);
  }
  await store.close();
});

test("demo: a hook boots its images at every change of power, and again after a restart", async () => {
  const store = await openStore("memory://", edges);
  const calls: string[] = [];
  const note = (verb: string) => (guest: DemoGuest) => {
    calls.push(`${verb} ${guest.spec.name}`);
    return Promise.resolve(undefined);
  };
  const onMachine: DemoHook = {
    handles: (image) => image === "debian-12",
    create: async (guest) => {
      calls.push(`create ${guest.spec.name}`);
      return { ipAddresses: ["127.5.0.1"], message: "booted" };
    },
    start: note("start"),
    stop: note("stop"),
    delete: note("delete"),
  };
  const provider = new DemoProvider({ store, edges, onMachine });
  const request = requestFor("debian-12", "node");
  assert.deepEqual((await provider.create(request, patientCall)).ipAddresses, ["127.5.0.1"]);
  await provider.create(requestFor("debian-13", "plain"), patientCall);
  await provider.stop(request);
  await provider.start(request);
  await new DemoProvider({ store, edges, onMachine }).open();
  await provider.delete(request);
  assert.deepEqual(calls, ["create node", "stop node", "start node", "start node", "delete node"]);
  await store.close();
});
