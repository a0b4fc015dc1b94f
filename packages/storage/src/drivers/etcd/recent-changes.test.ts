/** What the list of recent changes knows, and what it says when it has forgotten. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { prefixRange } from "../../contract.ts";
import { RecentChanges } from "./recent-changes.ts";

const key = (text: string): Buffer => Buffer.from(text);

test("the last change of a range within bounds, by its filters", () => {
  const changes = new RecentChanges(4, 100);
  changes.add({ revision: 5, key: key("/a/1"), type: "put" });
  changes.add({ revision: 6, key: key("/b/1"), type: "put" });
  changes.add({ revision: 6, key: key("/a/2"), type: "delete" });
  changes.add({ revision: 7, key: key("/b/2"), type: "put" });
  const a = prefixRange("/a/");
  assert.equal(changes.lastFor(a, 4, 7), 6);
  assert.equal(changes.lastFor(a, 4, 5), 5);
  assert.equal(changes.lastFor(a, 6, 7), 0);
  assert.equal(changes.lastFor({ ...a, filters: ["nodelete"] }, 4, 7), 5);
  assert.equal(changes.lastFor({ ...a, filters: ["noput"] }, 4, 5), 0);
  assert.equal(changes.lastFor({ key: "/b/2" }, 4, 7), 7);
  assert.equal(changes.lastFor({ key: "/c" }, 4, 7), 0);
});

test("what is older than it knows is not guessed, and it stays small", () => {
  const changes = new RecentChanges(10, 4);
  assert.equal(changes.lastFor({ key: "k" }, 9, 10), undefined);
  for (let revision = 11; revision <= 18; revision++) changes.add({ revision, key: key("k"), type: "put" });
  assert.equal(changes.lastFor({ key: "k" }, 13, 18), undefined);
  assert.equal(changes.lastFor({ key: "k" }, 14, 18), 18);
  assert.equal(changes.lastFor({ key: "other" }, 14, 18), 0);
});
