import assert from "node:assert/strict";
import { test } from "node:test";
import type { StoreEvent } from "../contract.ts";
import { checkHistory, History } from "./history.ts";

const event = (key: string, value: string, revision: number): StoreEvent => ({
  type: "put",
  kv: {
    key: Buffer.from(key),
    value: Buffer.from(value),
    createRevision: revision,
    modRevision: revision,
    version: 1,
    lease: 0n,
  },
});

function twoWrites(): { history: History; events: StoreEvent[] } {
  const history = new History();
  const a = history.begin({ kind: "write", key: "k", value: "a" });
  history.end(a, 2);
  const b = history.begin({ kind: "write", key: "k", value: "b" });
  history.end(b, 3);
  return { history, events: [event("k", "a", 2), event("k", "b", 3)] };
}

test("a right history passes", () => {
  const { history, events } = twoWrites();
  history.end(history.begin({ kind: "read", key: "k" }), 3, "b");
  history.begin({ kind: "write", key: "k", value: "never told" });
  assert.deepEqual(checkHistory(history, events, { contiguous: true }), []);
});

test("each kind of wrong is found", () => {
  const wrong = (change: (h: History, e: StoreEvent[]) => void): string => {
    const { history, events } = twoWrites();
    change(history, events);
    return checkHistory(history, events, { contiguous: true }).join("; ");
  };
  assert.match(
    wrong((_, e) => e.pop()),
    /acknowledged value b .* no revision/,
  );
  assert.match(
    wrong((_, e) => e.push(event("k", "x", 4))),
    /value x was never written/,
  );
  assert.match(
    wrong((_, e) => e.reverse()),
    /event 2 came after 3/,
  );
  assert.match(
    wrong((_, e) => e.push(event("k", "b", 3))),
    /came twice/,
  );
  assert.match(
    wrong((h, e) => {
      h.begin({ kind: "write", key: "k", value: "c" });
      e.push(event("k", "c", 5));
    }),
    /events 4 to 4 are missing/,
  );
  assert.match(
    wrong((h) => h.end(h.begin({ kind: "read", key: "k" }), 2, "a")),
    /although 3 was acknowledged/,
  );
  assert.match(
    wrong((h) => h.end(h.begin({ kind: "read", key: "k" }), 3, "a")),
    /saw a, it was b/,
  );
});
