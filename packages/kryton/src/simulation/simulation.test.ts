/**
 * Replicas that die between any two calls, freeze, disagree about the time, and lose what the store answered:
 * every acknowledged operation takes effect once, nothing is lost or doubled, everything is told once and in order.
 *
 * A failure names its seed: `KRYTON_SIMULATION_SEED=n KRYTON_SIMULATION_RUNS=1` runs that one again, and more runs look
 * further.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isFinal } from "../model/operation.ts";
import { Site, type SiteOptions } from "./site.fixture.ts";
import { calm, type CrashPoint } from "./wire.fixture.ts";

const firstSeed = Number(process.env["KRYTON_SIMULATION_SEED"] ?? 1);
const runs = Number(process.env["KRYTON_SIMULATION_RUNS"] ?? 4);

/** Clients that make, stop, start, cancel and delete machines while `trouble` happens to the replicas. */
async function workload(
  options: SiteOptions,
  trouble: (site: Site, over: () => boolean) => Promise<void>,
  cancelling = false,
): Promise<void> {
  await using site = await Site.open(options);
  const { random } = site;
  let over = false;
  const acknowledged = new Map<string, "running" | "stopped" | "deleted" | "expired" | "either">();
  const client = async (name: string): Promise<void> => {
    const expires = random.integer(5) === 0;
    const id = await site.create(name, expires ? { ttlMinutes: 1 } : {});
    if (expires) {
      acknowledged.set(id, "expired");
      return;
    }
    acknowledged.set(id, "running");
    for (let step = random.integer(5); step > 0; step--) {
      const verb =
        (["stop", "start", "delete"] as const)[random.integer(5) === 0 ? 2 : random.integer(2)] ?? "stop";
      const key = `${verb}-${name}-${step}`;
      if (verb === "delete") {
        assert.ok(await site.insist(key, ({ machines }, asking) => machines.delete("default", id, asking)));
        acknowledged.set(id, "deleted");
        return;
      }
      const accepted = await site.insist(key, ({ machines }, asking) =>
        verb === "stop" ? machines.stop("default", id, {}, asking) : machines.start("default", id, asking),
      );
      if (accepted) acknowledged.set(id, verb === "stop" ? "stopped" : "running");
      if (cancelling) {
        // While others of the same machine may wait or run; whether it comes in time is the simulation's choice.
        const more = site.insist(`${key}-more`, ({ machines }, asking) =>
          machines.start("default", id, asking),
        );
        await site.insist(`${key}-cancel`, async ({ operations }) => {
          const open = (await operations.ofMachine(id)).filter((operation) => !isFinal(operation));
          const chosen = open[random.integer(Math.max(1, open.length))];
          if (chosen && chosen.kind !== "create") await operations.cancel(chosen.id);
        });
        await more;
        acknowledged.set(id, "either");
      }
    }
  };
  await site.drive(
    (async () => {
      const troubling = trouble(site, () => over);
      const names = Array.from({ length: 12 }, (_, i) => `m${i}`);
      await Promise.all(
        Array.from({ length: 4 }, async () => {
          for (let name = names.shift(); name !== undefined; name = names.shift()) await client(name);
        }),
      );
      over = true;
      await troubling;
      await site.time.sleep(61_000 + options.skewMs);
      await site.rest();
    })(),
  );
  const { machines } = await site.drive(site.verify());
  const left = new Map(machines.map(({ machine }) => [machine.id, machine.state]));
  for (const [id, state] of acknowledged) {
    const gone = state === "deleted" || state === "expired";
    if (state === "either") assert.ok(left.has(id), `machine ${id} is there`);
    else assert.equal(left.get(id), gone ? undefined : state, `what was acknowledged last about ${id} holds`);
  }
  assert.ok(
    machines.every(({ machine }) => acknowledged.has(machine.id)),
    "every machine was asked for",
  );
  if (!options.mayOverlap) assert.deepEqual(site.overlaps, [], "calls for one machine never overlap");
}

/** One machine from its creation to its deletion; the first replica dies at the point `crash` says. Its calls. */
async function life(
  crash: { readonly call: number; readonly point: CrashPoint } | undefined,
): Promise<number> {
  const options = {
    seed: 11,
    replicas: 2,
    weather: { ...calm, delayMs: 1, lagMs: 5 },
    slowMs: 20,
    skewMs: 0,
  };
  await using site = await Site.open(options);
  const [first] = site.replicas;
  assert.ok(first);
  const { wire } = first;
  if (crash) wire.crash = (call, point) => call === crash.call && point === crash.point;
  void wire.died.then(() => site.kill(0));
  let id = "";
  let calls = 0;
  await site.drive(
    (async () => {
      site.prefer(0);
      id = await site.create("m");
      await site.idle();
      for (const verb of ["stop", "start"] as const) {
        site.prefer(0);
        await site.insist(verb, ({ machines }, asking) =>
          verb === "stop" ? machines.stop("default", id, {}, asking) : machines.start("default", id, asking),
        );
        await site.idle();
      }
      site.prefer(0);
      assert.ok(
        await site.insist("delete", ({ machines }, asking) => machines.delete("default", id, asking)),
      );
      calls = wire.calls;
      await site.rest();
    })(),
  );
  const { machines, operations } = await site.drive(site.verify());
  assert.deepEqual(machines, []);
  assert.deepEqual(
    operations.filter(({ state }) => state === "succeeded").map(({ kind }) => kind),
    ["create", "stop", "start", "delete"],
  );
  return calls;
}

test("a replica dies before and after each of the calls of a machine's life", async () => {
  const calls = await life(undefined);
  assert.ok(calls > 30);
  // Some of them here, others with another first seed; all of them when many runs are asked for.
  const stride = Math.max(1, Math.floor(24 / runs));
  for (let call = 1 + (firstSeed % stride); call <= calls; call += stride) {
    for (const point of ["before", "after"] as const) {
      await life({ call, point }).catch((error: unknown) => {
        throw new Error(`died ${point} call ${call}: ${error instanceof Error ? error.message : error}`, {
          cause: error,
        });
      });
    }
  }
});

/** Runs `one` with many seeds and names the seed of a failure. */
async function seeds(one: (seed: number) => Promise<void>): Promise<void> {
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    await one(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    });
  }
}

test("without trouble nothing overlaps and everything is as it was asked for", async () => {
  await seeds((seed) =>
    workload(
      { seed, replicas: 3, weather: { ...calm, delayMs: 3, lagMs: 20 }, slowMs: 300, skewMs: 0 },
      async () => {},
    ),
  );
});

test("replicas are killed again and again", async () => {
  await seeds((seed) =>
    workload(
      { seed, replicas: 3, weather: { ...calm, delayMs: 3, lagMs: 50 }, slowMs: 300, skewMs: 2_000 },
      async (site, over) => {
        while (!over()) {
          await site.time.sleep(100 + site.random.integer(2_000));
          site.kill(site.random.integer(3));
        }
      },
    ),
  );
});

test("the store fails, before and after it has done what was asked", async () => {
  await seeds((seed) =>
    workload(
      {
        seed,
        replicas: 3,
        weather: { delayMs: 3, lagMs: 50, refused: 0.03, unanswered: 0.03 },
        slowMs: 200,
        skewMs: 500,
      },
      async () => {},
    ),
  );
});

test("replicas freeze for longer than their lease, and come back believing nothing happened", async () => {
  await seeds((seed) =>
    workload(
      {
        seed,
        replicas: 3,
        weather: { ...calm, delayMs: 3, lagMs: 50 },
        slowMs: 300,
        skewMs: 1_000,
        // A call that froze on its way is still under way when another replica goes on.
        mayOverlap: true,
      },
      async (site, over) => {
        while (!over()) {
          await site.time.sleep(500 + site.random.integer(3_000));
          site.replicas[site.random.integer(3)]?.wire.freeze(8_000 + site.random.integer(8_000));
          await site.time.sleep(12_000);
        }
      },
    ),
  );
});

test("operations are cancelled while they wait, while they run, and while they end; replicas die meanwhile", async () => {
  await seeds((seed) =>
    workload(
      { seed, replicas: 3, weather: { ...calm, delayMs: 3, lagMs: 50 }, slowMs: 400, skewMs: 500 },
      async (site, over) => {
        while (!over()) {
          await site.time.sleep(1_000 + site.random.integer(4_000));
          site.kill(site.random.integer(3));
        }
      },
      true,
    ),
  );
});
