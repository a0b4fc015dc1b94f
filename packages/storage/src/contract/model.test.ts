/**
 * Random programs, run on a store under a simulated clock and on the model, must not differ: in answers, in
 * every retained state, in what watches deliver, before and after restarts. A failure prints its seed.
 */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isCoded, seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { scratchRoot } from "./scratch.ts";
import fc from "fast-check";
import {
  type Compare,
  type KeyValue,
  type Op,
  type OpResult,
  type Store,
  type StoreEvent,
  type TxnRequest,
} from "../contract.ts";
import { KeyRing } from "../encryption/key-file.ts";
import { openStore } from "../open.ts";
import { Model, showPair, type ModelEvent } from "./model.ts";

type Step =
  | { readonly do: "txn"; readonly txn: TxnRequest }
  | {
      readonly do: "range";
      readonly range: { key: string; end?: string };
      readonly back: number;
      readonly limit: number;
      readonly descending: boolean;
    }
  | { readonly do: "compact"; readonly back: number }
  | { readonly do: "grant"; readonly id: bigint; readonly ttl: number }
  | { readonly do: "keepAlive" | "revoke"; readonly id: bigint }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "watch"; readonly range: { key: string; end?: string }; readonly back: number }
  | { readonly do: "restart"; readonly crash: boolean };

const key = fc.constantFrom("a", "b", "ba", "c", "d/1", "d/2");
const value = fc.constantFrom("", "1", "2", "33");
const leaseId = fc.constantFrom(1n, 2n, 3n);
const range = fc.oneof(
  key.map((k) => ({ key: k })),
  fc.tuple(key, key).map(([k, end]) => ({ key: k, end })),
  fc.constant({ key: "\0", end: "\0" }),
);
const put = fc
  .record({
    key,
    value,
    lease: fc.oneof({ weight: 3, arbitrary: fc.constant(0n) }, leaseId),
    ignoreValue: fc.boolean(),
  })
  .map((p): Op => ({ type: "put", ...p, value: p.ignoreValue ? "" : p.value, prevKv: true }));
const leafOp: fc.Arbitrary<Op> = fc.oneof(
  { weight: 4, arbitrary: put },
  { weight: 2, arbitrary: range.map((r): Op => ({ type: "delete", ...r })) },
  { weight: 1, arbitrary: range.map((r): Op => ({ type: "range", ...r })) },
);
const result = fc.constantFrom("equal" as const, "not_equal" as const, "greater" as const, "less" as const);
const compare: fc.Arbitrary<Compare> = fc.oneof(
  fc
    .tuple(
      range,
      result,
      fc.constantFrom("mod" as const, "create" as const, "version" as const),
      fc.integer({ min: 0, max: 9 }),
    )
    .map(([r, res, target, operand]): Compare => ({ ...r, result: res, target, operand })),
  fc
    .tuple(range, result, value)
    .map(([r, res, operand]): Compare => ({ ...r, result: res, target: "value", operand })),
  fc
    .tuple(range, result, leaseId)
    .map(([r, res, operand]): Compare => ({ ...r, result: res, target: "lease", operand })),
);
const flat = fc.record({
  compare: fc.array(compare, { maxLength: 2 }),
  success: fc.array(leafOp, { maxLength: 3 }),
  failure: fc.array(leafOp, { maxLength: 2 }),
});
const txn: fc.Arbitrary<TxnRequest> = fc.oneof(
  { weight: 5, arbitrary: flat },
  {
    weight: 1,
    arbitrary: fc.tuple(flat, flat).map(([outer, inner]) => ({
      ...outer,
      success: [...outer.success, { type: "txn" as const, ...inner }],
    })),
  },
);
const simplePut = fc
  .tuple(key, value)
  .map(([k, v]): TxnRequest => ({ success: [{ type: "put", key: k, value: v, prevKv: true }] }));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: simplePut.map((t): Step => ({ do: "txn", txn: t })) },
  { weight: 6, arbitrary: txn.map((t): Step => ({ do: "txn", txn: t })) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("range" as const),
      range,
      back: fc.nat(6),
      limit: fc.nat(3),
      descending: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("compact" as const), back: fc.integer({ min: -1, max: 4 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("grant" as const),
      id: leaseId,
      ttl: fc.integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom("keepAlive" as const, "revoke" as const), id: leaseId }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 4_000 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("watch" as const), range, back: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), crash: fc.boolean() }) },
);

/** A store that can be restarted, and crashed. */
interface Host {
  readonly clock: SimulatedClock;
  open(): Promise<Store>;
  /** Makes what a crash at this moment would leave the thing that is opened next. */
  crash(): void;
  readonly restarts: boolean;
  remove(): void;
}

const show = (kv: KeyValue): string =>
  showPair(kv.key.toString(), {
    value: kv.value.toString(),
    create: kv.createRevision,
    mod: kv.modRevision,
    version: kv.version,
    lease: kv.lease,
  });

function answers(results: readonly OpResult[]): string[] {
  return results.flatMap((each) => {
    if (each.type === "put") return [`put over ${each.prev?.value.toString() ?? "nothing"}`];
    if (each.type === "delete") return [`deleted ${each.deleted}`];
    if (each.type === "range") return [each.range.kvs.map(show).join(" ")];
    return answers(each.txn.results);
  });
}

/** Puts a key twice on some path: both refuse it before looking at data, so it is not run. */
const malformed = (error: unknown): boolean => isCoded(error) && error.details["reason"] === "duplicate_key";

class Comparison {
  readonly model = new Model();
  readonly host: Host;
  store!: Store;
  watches: {
    events: StoreEvent[];
    from: number;
    range: { key: string; end?: string };
    run: Promise<void>;
    watch: ReturnType<Store["watch"]>;
  }[] = [];

  constructor(host: Host) {
    this.host = host;
  }

  async run(steps: readonly Step[]): Promise<void> {
    this.store = await this.host.open();
    try {
      for (const each of steps) {
        await this.step(each);
        assert.equal(
          await this.store.revision(),
          this.model.revision,
          JSON.stringify(each, (_, v) => (typeof v === "bigint" ? String(v) : v)),
        );
      }
      await this.everything();
    } finally {
      await this.store.close();
      this.host.remove();
    }
  }

  async step(each: Step): Promise<void> {
    const { model, store } = this;
    switch (each.do) {
      case "txn": {
        let actual: { succeeded: boolean; answers: string[] } | undefined;
        try {
          const done = await store.txn(each.txn);
          actual = { succeeded: done.succeeded, answers: answers(done.results) };
        } catch (error) {
          if (malformed(error)) return;
          assert.ok(isCoded(error) && error.code !== "internal", String(error));
        }
        assert.deepEqual(actual, model.txn(each.txn));
        return;
      }
      case "range":
        return this.read(each);
      case "compact": {
        const revision = model.revision - each.back;
        if (revision < 1) return;
        const expected = model.compact(revision);
        const code = await store.compact(revision).then(
          () => "ok",
          (error: unknown) =>
            isCoded(error, "gone") ? "gone" : isCoded(error, "invalid_argument") ? "future" : String(error),
        );
        return assert.equal(code, expected);
      }
      case "grant":
        return assert.equal(
          await accepted(store.leaseGrant(each.ttl, each.id)),
          model.grant(each.id, each.ttl),
        );
      case "keepAlive":
        return assert.equal(await accepted(store.leaseKeepAlive(each.id)), model.keepAlive(each.id));
      case "revoke":
        return assert.equal(await accepted(store.leaseRevoke(each.id)), model.revoke(each.id));
      case "pass":
        return this.pass(each.ms);
      case "watch": {
        const from = Math.max(1, model.revision - each.back);
        if (from >= model.compactRevision) this.watch(each.range, from);
        return;
      }
      case "restart":
        if (!this.host.restarts) return;
        await this.endWatches();
        if (each.crash) this.host.crash();
        await this.store.close();
        this.store = await this.host.open();
    }
  }

  async pass(ms: number): Promise<void> {
    await this.host.clock.advance(ms);
    // Expiry is an ordinary write: it is done some turns of the event loop after its time.
    for (let turn = 0; turn < 8; turn++) await this.host.clock.advance(0);
    this.model.pass(ms);
  }

  async read(each: Extract<Step, { do: "range" }>): Promise<void> {
    const revision = Math.max(1, this.model.revision - each.back);
    const request = {
      ...each.range,
      revision,
      limit: each.limit,
      sort: { by: "key" as const, descending: each.descending },
    };
    if (revision < this.model.compactRevision) {
      await assert.rejects(this.store.range(request), (error) => isCoded(error, "gone"));
      return;
    }
    const found = await this.store.range(request);
    const expected = this.model
      .range(each.range, this.model.at(revision))
      .map(([k, pair]) => showPair(k, pair));
    if (each.descending) expected.reverse();
    const cut = each.limit > 0 ? expected.slice(0, each.limit) : expected;
    assert.deepEqual(
      [found.kvs.map(show), found.count, found.more],
      [cut, expected.length, cut.length < expected.length],
    );
  }

  watch(where: { key: string; end?: string }, from: number): void {
    const watch = this.store.watch({ ...where, startRevision: from, prevKv: true });
    const events: StoreEvent[] = [];
    const run = (async () => {
      for await (const batch of watch) {
        events.push(...batch.events);
        if (batch.events.length === 0) return;
      }
    })();
    run.catch(() => {});
    this.watches.push({ events, from, range: where, run, watch });
  }

  /** What each watch delivered is what the model says, once it says that it delivered everything. */
  async endWatches(): Promise<void> {
    for (const { events, from, range: where, run, watch } of this.watches) {
      watch.progress();
      await run;
      watch.close();
      const inRange = this.model.range(
        where,
        new Map(
          this.model.events.map((event) => [
            event.key,
            { value: "", create: 0, mod: 0, version: 0, lease: 0n },
          ]),
        ),
      );
      const keys = new Set(inRange.map(([k]) => k));
      const expected = this.model.events.filter((event) => event.revision >= from && keys.has(event.key));
      const line = (event: ModelEvent): string =>
        `${event.revision} ${event.key}=${event.value ?? "deleted"}`;
      assert.deepEqual(
        events.map(({ type, kv }) =>
          line({
            revision: kv.modRevision,
            key: kv.key.toString(),
            value: type === "put" ? kv.value.toString() : undefined,
            prev: undefined,
          }),
        ),
        expected.map(line),
      );
      for (const [i, { prev, kv }] of events.entries())
        if (prev || kv.modRevision > this.model.compactRevision)
          assert.equal(prev?.value.toString(), expected[i]?.prev);
    }
    this.watches = [];
  }

  /** Every retained state, and the whole log, after all removal was done. */
  async everything(): Promise<void> {
    await this.endWatches();
    await this.pass(500);
    for (
      let revision = Math.max(1, this.model.compactRevision);
      revision <= this.model.revision;
      revision++
    ) {
      const { kvs, count } = await this.store.range({ key: "\0", end: "\0", revision });
      const expected = this.model
        .range({ key: "\0", end: "\0" }, this.model.at(revision))
        .map(([k, pair]) => showPair(k, pair));
      assert.deepEqual([kvs.map(show), count], [expected, expected.length], `state at ${revision}`);
      const counted = await this.store.range({ key: "a", end: "c", revision, countOnly: true });
      assert.equal(counted.count, this.model.range({ key: "a", end: "c" }, this.model.at(revision)).length);
    }
    this.watch({ key: "\0", end: "\0" }, Math.max(1, this.model.compactRevision));
    await this.endWatches();
    assert.deepEqual((await this.store.leases()).toSorted(), [...this.model.leases.keys()].toSorted());
  }
}

async function accepted(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    assert.ok(isCoded(error, "not_found") || isCoded(error, "already_exists"), String(error));
    return false;
  }
}

function memoryHost(encrypted: boolean): Host {
  const clock = new SimulatedClock();
  const edges = systemEdges({ clock, random: seededRandom(1) });
  const keys = new KeyRing([{ id: "k", secret: Buffer.alloc(32, 7) }]);
  const options = encrypted ? { encryption: { keys, prefixes: [""] } } : {};
  return {
    clock,
    open: () => openStore("memory://", edges, options),
    crash: () => {},
    restarts: false,
    remove: () => {},
  };
}

function sqliteHost(): Host {
  const clock = new SimulatedClock();
  const edges = systemEdges({ clock, random: seededRandom(1) });
  const folder = mkdtempSync(join(scratchRoot, "model-"));
  let generation = 0;
  const path = (): string => join(folder, `${generation}.db`);
  return {
    clock,
    open: () => openStore(`sqlite://${path()}`, edges),
    // The files as they lie there while the process still runs: what kill -9 leaves.
    crash: () => {
      const files = [path(), `${path()}-wal`].filter((file) => existsSync(file));
      generation++;
      for (const file of files) copyFileSync(file, file.endsWith("-wal") ? `${path()}-wal` : path());
    },
    restarts: true,
    remove: () => rmSync(folder, { recursive: true }),
  };
}

const seed = Number(process.env["STORAGE_SEED"] ?? 1);
const runs = (count: number): fc.Parameters<[Step[]]> => ({
  seed,
  numRuns: Number(process.env["STORAGE_RUNS"] ?? count),
  endOnFailure: false,
});
const steps = fc.array(step, { minLength: 1, maxLength: 40 });

test("memory does what the model does", async () => {
  await fc.assert(
    fc.asyncProperty(steps, (program) => new Comparison(memoryHost(false)).run(program)),
    runs(200),
  );
});

test("an encrypted store does what the model does", async () => {
  await fc.assert(
    fc.asyncProperty(steps, (program) => new Comparison(memoryHost(true)).run(program)),
    runs(60),
  );
});

test("SQLite does what the model does, through restarts and crashes", async () => {
  await fc.assert(
    fc.asyncProperty(steps, (program) => new Comparison(sqliteHost()).run(program)),
    runs(12),
  );
});
