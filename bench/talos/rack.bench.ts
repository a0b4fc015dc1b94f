/**
 * The virtual rack under load: how fast machines come up and are discovered, what they cost at rest.
 *
 * `node bench/talos/rack.bench.ts [MACHINES]` (default 500). Client and machines share this process, so the CPU figure
 * is of both sides.
 */
import { systemClock, systemEdges } from "@kontinuum/std";
import { probe, SimulatedRack } from "@kontinuum/talos";
import { machine, table } from "../storage/measure.ts";

const count = Number(process.argv[2] ?? 500);
const edges = systemEdges();
const megabytes = (): number => Math.round(process.memoryUsage.rss() / 1e6);
const idleMs = 5_000;

/** Percent of a core over a while of doing nothing. */
async function idle(): Promise<number> {
  const before = process.cpuUsage();
  await systemClock.sleep(idleMs);
  const used = process.cpuUsage(before);
  return (used.user + used.system) / 1000 / idleMs / 0.01;
}

console.log(machine());
let started = performance.now();
const rack = await SimulatedRack.create({ machines: count, edges, addressBase: "127.190.0.10" });
const up = performance.now() - started;
const atRest = await idle();
const restMemory = megabytes();

const waiting = [...rack.nodes];
const cpu = process.cpuUsage();
started = performance.now();
await Promise.all(
  Array.from({ length: 16 }, async () => {
    for (let node = waiting.pop(); node; node = waiting.pop()) await probe(node.spec.address, { edges });
  }),
);
const discovered = performance.now() - started;
const used = process.cpuUsage(cpu);
const after = await idle();
table(
  `${count} simulated machines`,
  ["", "seconds", "MB resident", "% of a core idle"],
  [
    ["up", up / 1000, restMemory, atRest],
    ["all probed, 16 at once", discovered / 1000, megabytes(), after],
  ],
);
console.log(`CPU per probe, both sides: ${((used.user + used.system) / 1000 / count).toFixed(1)} ms`);
await rack.close();
