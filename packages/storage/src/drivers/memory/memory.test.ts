import { seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { testContract } from "../../contract/suite.ts";
import { openStore } from "../../open.ts";

testContract("memory", async () => {
  const clock = new SimulatedClock();
  const store = await openStore("memory://", systemEdges({ clock, random: seededRandom(1) }));
  return { store, pass: (ms) => clock.advance(ms), close: () => store.close() };
});
