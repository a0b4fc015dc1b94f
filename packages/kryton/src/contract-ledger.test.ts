import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { z } from "zod";

const schema = z.array(
  z.object({ area: z.string(), check: z.string(), tests: z.array(z.tuple([z.string(), z.string()])) }),
);

test("every behaviour of the contract has a test, and each named test exists", async () => {
  const root = new URL("../../../", import.meta.url);
  const text = await readFile(new URL("../contract-ledger.json", import.meta.url), "utf8");
  const ledger = schema.parse(JSON.parse(text));
  const files = new Map<string, string>();
  for (const { area, check, tests } of ledger) {
    assert.ok(tests.length > 0, `${area}: ${check} has no test`);
    for (const [file, name] of tests) {
      const source = files.get(file) ?? (await readFile(new URL(file, root), "utf8"));
      files.set(file, source);
      assert.ok(source.includes(name), `${file} has no test ${JSON.stringify(name)}`);
    }
  }
});
