import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { testContract } from "../../contract/suite.ts";
import { openStore } from "../../open.ts";

testContract("sqlite", async () => {
  const clock = new SimulatedClock();
  const folder = await mkdtemp(join(tmpdir(), "storage-sqlite-"));
  const store = await openStore(`sqlite://${folder}/a.db`, systemEdges({ clock, random: seededRandom(1) }));
  return {
    store,
    pass: (ms) => clock.advance(ms),
    close: async () => {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
});
