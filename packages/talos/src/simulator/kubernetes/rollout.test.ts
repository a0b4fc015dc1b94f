/**
 * Rolling updates: every step stays within its limits, and they come to an end.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nextSizes, rolloutLimits, type SetSize } from "./rollout.ts";

test("limits are numbers or percent, rounded in favour of moving", () => {
  assert.deepEqual(rolloutLimits(10, undefined, undefined), { surge: 3, unavailable: 2 });
  assert.deepEqual(rolloutLimits(3, "50%", "50%"), { surge: 2, unavailable: 1 });
  assert.deepEqual(rolloutLimits(1, undefined, undefined), { surge: 1, unavailable: 0 });
  assert.deepEqual(rolloutLimits(5, 0, 0), { surge: 0, unavailable: 1 });
  assert.deepEqual(rolloutLimits(5, 2, "0%"), { surge: 2, unavailable: 0 });
});

test("without old sets there is nothing to roll", () => {
  assert.deepEqual(nextSizes(4, { surge: 1, unavailable: 0 }, { replicas: 1, ready: 0 }, []), {
    current: 4,
    old: [],
  });
});

test("every step keeps the limits, and in the end only the new set is left", () => {
  const limit = fc.oneof(fc.integer({ min: 0, max: 4 }), fc.constantFrom("0%", "25%", "100%"));
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      limit,
      limit,
      fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 }),
      (wanted, maxSurge, maxUnavailable, before) => {
        const limits = rolloutLimits(wanted, maxSurge, maxUnavailable);
        let current: SetSize = { replicas: 0, ready: 0 };
        let old: SetSize[] = before.map((replicas) => ({ replicas, ready: replicas }));
        const total = (): number => current.replicas + old.reduce((sum, { replicas }) => sum + replicas, 0);
        const available = (): number => current.ready + old.reduce((sum, { ready }) => sum + ready, 0);
        for (let step = 0; step < 60; step++) {
          const [most, least] = [
            Math.max(total(), wanted + limits.surge),
            Math.min(available(), wanted - limits.unavailable),
          ];
          const next = nextSizes(wanted, limits, current, old);
          old = next.old.map((replicas) => ({ replicas, ready: replicas }));
          current = { replicas: next.current, ready: Math.min(current.ready, next.current) };
          assert.ok(total() <= most, "no more pods than allowed");
          assert.ok(available() >= least, "no fewer ready pods than allowed");
          // One new pod gets ready at a time.
          current = { ...current, ready: Math.min(current.replicas, current.ready + 1) };
        }
        assert.deepEqual(
          [current, old.map(({ replicas }) => replicas)],
          [{ replicas: wanted, ready: wanted }, old.map(() => 0)],
        );
      },
    ),
  );
});
