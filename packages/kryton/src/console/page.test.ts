import assert from "node:assert/strict";
import { test } from "node:test";
import { consolePage } from "./page.ts";

test("a hostile machine id stays text in the page and in its configuration", () => {
  const machine = `"><script>alert(1)</script>&'</title>`;
  const html = consolePage({ machine, project: "</script><b>", bootError: "<img src=x>" });
  assert.doesNotMatch(html, /<script>alert|<img|<b>/);
  const config = /id="console-config">(.*?)<\/script>/.exec(html)?.[1] ?? "";
  assert.equal(JSON.parse(config).machine, machine);
  assert.doesNotMatch(html, / on\w+=/, "the policy allows no inline handlers");
  for (const id of ["status", "btnPaste", "btnCad", "viewport", "screen", "err", "hint"]) {
    assert.match(html, new RegExp(`id="${id}"`));
  }
});
