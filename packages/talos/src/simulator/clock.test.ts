import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { probe } from "../client/probe.ts";
import { freshAddressBase, TestCluster } from "./rack.fixture.ts";
import { SimulatedRack } from "./rack.ts";
import { realisticTiming } from "./timing.ts";

test("minutes of a real installation pass on the injected clock", { timeout: 60_000 }, async (t) => {
  // Certificates are checked by TLS against the machine's clock, so the simulated one starts there.
  const clock = new SimulatedClock(new Date().getTime());
  const edges = systemEdges({ clock });
  let isMade = false;
  const creating = SimulatedRack.create({
    machines: 1,
    edges,
    addressBase: freshAddressBase(),
    timing: realisticTiming,
  });
  void creating.then(() => (isMade = true));
  await clock.advance(realisticTiming.bootMs - 1);
  assert.equal(isMade, false, "still booting");
  await clock.advance(1);
  const rack = await creating;
  t.after(() => rack.close());
  const [node] = rack.nodes;
  assert.ok(node);
  assert.equal(node.stage, "maintenance");
  const cluster = await TestCluster.create(node.spec.address);
  await cluster.apply(node.spec.address, cluster.config("controlplane", "cp"));
  assert.equal(node.stage, "maintenance", "nothing happens while time stands still");
  await clock.advance(realisticTiming.apidSwitchMs);
  assert.equal(node.stage, "installing");
  await clock.advance(realisticTiming.installMs);
  assert.equal(node.stage, "rebooting");
  await clock.advance(realisticTiming.rebootMs);
  assert.equal(node.stage, "booting");
});

test("bytes that are not TLS, or not HTTP/2, or cut short, harm nobody", { timeout: 60_000 }, async (t) => {
  const edges = systemEdges();
  const rack = await SimulatedRack.create({ machines: 1, edges, addressBase: freshAddressBase() });
  t.after(() => rack.close());
  const address = rack.nodes[0]?.spec.address ?? "";
  const random = seededRandom(11);
  const clientHello = Buffer.from("16030100c8010000c40303", "hex");
  const attempts = Array.from({ length: 60 }, (_, index) => {
    const noise = Buffer.from(random.bytes(1 + random.integer(300)));
    const bytes =
      index % 3 === 0
        ? Buffer.concat([clientHello, noise])
        : index % 3 === 1
          ? noise
          : Buffer.from("PRI * HTTP/2.0\r\n\r\n");
    return new Promise<void>((resolve) => {
      const socket = connect({ host: address, port: 50_000 }, () => {
        socket.write(bytes);
        if (index % 2 === 0) return socket.destroy();
        socket.end();
        return setTimeout(() => socket.destroy(), 100);
      });
      socket.on("error", () => {});
      socket.once("close", () => resolve());
    });
  });
  await Promise.all(attempts);
  assert.equal((await probe(address, { edges })).uuid, rack.nodes[0]?.spec.uuid);
});
