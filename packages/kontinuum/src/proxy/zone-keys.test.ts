/**
 * A zone's objects are counted cheaply, and no crowd of creates gets past the bound.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded, SimulatedClock, systemEdges } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import { systemNamespace } from "../kinds/index.ts";
import { countedForMs, createTakesMs, ZoneKeys } from "./zone-keys.ts";
import type { ZoneScope } from "./zone-rules.ts";

const scope: ZoneScope = { name: "eu-a", uid: "u-1", region: "eu", zone: "a" };
const leaseKey = (name: string): string => `/registry/coordination.k8s.io/leases/${systemNamespace}/${name}`;

async function withStore(use: (store: Store) => Promise<void>): Promise<void> {
  const store = await openStore("memory://", systemEdges());
  try {
    await use(store);
  } finally {
    await store.close();
  }
}

const put = (store: Store, key: string): Promise<unknown> =>
  store.txn({ success: [{ type: "put", key, value: "{}" }] });

test("creates at the same time share one count and stop at the bound", () =>
  withStore(async (store) => {
    let ranges = 0;
    const counting: Pick<Store, "range"> = {
      range(...given) {
        ranges++;
        return store.range(...given);
      },
    };
    await put(store, leaseKey("zone-u-1"));
    await put(store, leaseKey("zone-u-12"));
    await put(store, leaseKey("zonelock-eu-a"));
    const keys = new ZoneKeys(counting, new SimulatedClock(), scope, 5);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) => keys.hold(leaseKey(`zone-u-1.${index}`))),
    );
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 4);
    assert.ok(outcomes.every((one) => one.status === "fulfilled" || isCoded(one.reason, "rate_limited")));
    assert.equal(ranges, 3);
  }));

test("a key that is tried again counts once; one that never arrived is let go", () =>
  withStore(async (store) => {
    const clock = new SimulatedClock();
    const keys = new ZoneKeys(store, clock, scope, 1);
    await keys.hold(leaseKey("zone-u-1"));
    await keys.hold(leaseKey("zone-u-1"));
    await assert.rejects(keys.hold(leaseKey("zone-u-1.b")), (error) => isCoded(error, "rate_limited"));
    await clock.advance(createTakesMs);
    await keys.hold(leaseKey("zone-u-1.b"));
    await put(store, leaseKey("zone-u-1.b"));
    await clock.advance(createTakesMs + countedForMs);
    await assert.rejects(keys.hold(leaseKey("zone-u-1.c")), (error) => isCoded(error, "rate_limited"));
  }));
