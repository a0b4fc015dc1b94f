/**
 * The ledger of the contract: each line with the tests that show it, or with the answer why there is none.
 */
import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { test } from "node:test";
import { z } from "zod";

const root = new URL("../../../", import.meta.url);
const schema = z.array(
  z.strictObject({
    area: z.string(),
    check: z.string(),
    tests: z
      .array(z.tuple([z.string(), z.string()]))
      .min(1)
      .optional(),
    answer: z.string().min(20).optional(),
  }),
);

test("every line of the contract has tests that exist, or an answer", async () => {
  const text = await readFile(new URL("../contract-ledger.json", import.meta.url), "utf8");
  const ledger = schema.parse(JSON.parse(text));
  const files = new Map<string, string>();
  for (const { area, check, tests, answer } of ledger) {
    assert.ok((tests === undefined) !== (answer === undefined), `${area} ${check}: tests, or an answer`);
    for (const [file, name] of tests ?? []) {
      const source = files.get(file) ?? (await readFile(new URL(file, root), "utf8"));
      files.set(file, source);
      const titles = [...source.matchAll(/\btest\(\s*(["`])(.*?)\1/gs)].map((match) => match[2] ?? "");
      assert.ok(
        titles.some((title) => title.includes(name)),
        `${area}: ${file} has no test ${JSON.stringify(name)}`,
      );
    }
  }
  const areas = new Set(ledger.map(({ area }) => area));
  for (let section = 2; section <= 19; section++) {
    if ([15, 16, 18].includes(section)) continue;
    assert.ok(
      [...areas].some((area) => area.split(/[ .-]/)[0] === String(section)),
      `section ${section} is not in the ledger`,
    );
  }
});

test("each of the original's 44 limits has an answer, and those that are closed name their test", async () => {
  const text = await readFile(new URL("docs/kryton/compatibility.md", root), "utf8");
  const rows = [...text.matchAll(/^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$/gm)];
  assert.deepEqual(
    rows.map(([, number]) => Number(number)),
    Array.from({ length: 44 }, (_, index) => index + 1),
  );
  for (const [, number, , , shown = ""] of rows) {
    const files = [...shown.matchAll(/`([^`]+)`/g)].map(([, file]) => file ?? "");
    assert.ok(files.length > 0 || shown.startsWith("–"), `row ${number} names no test`);
    for (const file of files) {
      const path = file.startsWith("test/") ? file : `packages/kryton/src/${file}`;
      await access(new URL(path, root));
    }
  }
});
