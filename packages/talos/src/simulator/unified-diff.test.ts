/**
 * Differences as people read them; applying one gives the second text again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { unifiedDiff } from "./unified-diff.ts";

test("a change is shown with what stands around it", () => {
  const before = "a\nb\nc\nd\ne\nf\ng\nh\n";
  assert.equal(unifiedDiff(before, before), "");
  assert.equal(
    unifiedDiff(before, before.replace("e\n", "E\nnew\n")),
    "--- a\n+++ b\n@@ -2,7 +2,8 @@\n b\n c\n d\n-e\n+E\n+new\n f\n g\n h\n",
  );
  assert.equal(unifiedDiff("", "x\n"), "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+x\n");
});

test("kept and added lines are the second text, kept and removed ones the first", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 12 });
  fc.assert(
    fc.property(text, text, (before, after) => {
      const diff = unifiedDiff(
        before.map((line) => `${line}\n`).join(""),
        after.map((line) => `${line}\n`).join(""),
      );
      const body = diff.split("\n").slice(2, -1);
      let [at, next] = [0, 0];
      const made: string[] = [];
      for (const line of body) {
        const hunk = /^@@ -(\d+),(\d+) /.exec(line);
        if (hunk) {
          const start = Number(hunk[1]) - (hunk[2] === "0" ? 0 : 1);
          while (at < start) made.push(before[at++] ?? "");
        } else if (line.startsWith("+")) made.push(line.slice(1));
        else {
          assert.equal(before[at++], line.slice(1));
          if (line.startsWith(" ")) made.push(line.slice(1));
        }
        next++;
      }
      while (at < before.length) made.push(before[at++] ?? "");
      assert.deepEqual(made, after);
      assert.ok(next >= 0);
    }),
  );
});
