import assert from "node:assert/strict";
import { test } from "node:test";
import { parseYaml, stringifyYaml } from "./yaml.ts";
import { readYaml } from "./yaml-reader.ts";

test("YAML is read as Go clients read it", () => {
  const text =
    "yes: on\nno: off\nbig: 9223372036854775807\nf: 1.5\nd: 2001-12-14\nt: 12:30\nnil: ~\ns: 'yes'\nm: {a: [1, x]}\n";
  assert.deepEqual(parseYaml(text).value, {
    true: true,
    false: false,
    big: 9223372036854775807n,
    f: 1.5,
    d: "2001-12-14",
    t: "12:30",
    nil: null,
    s: "yes",
    m: { a: [1, "x"] },
  });
});

test("duplicates are named, not refused", () => {
  const { duplicates, repeated } = parseYaml("a: 1\nb:\n- c: 1\n  c: 2\na: 2\n");
  assert.deepEqual(duplicates, ["b[0].c", "a"]);
  assert.deepEqual(repeated, [`line 4: key "c" already set in map`, `line 5: key "a" already set in map`]);
});

test("one bounded document", () => {
  assert.throws(() => parseYaml("a: 1\n---\nb: 2\n"), /exactly one YAML document/);
  assert.throws(() => parseYaml("a: [\n"), /error converting YAML to JSON/);
  assert.throws(() => parseYaml("a: .inf\n"), /out of range/);
  assert.throws(() => parseYaml("[".repeat(5000)), /error converting YAML to JSON/);
  const bomb =
    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n";
  assert.throws(() => parseYaml(bomb), /aliases/);
});

test("what is written reads back", () => {
  const value = { a: "yes", b: [1, { c: null }], d: "multi\nline", e: 12345678901234567890n };
  assert.deepEqual(parseYaml(stringifyYaml(value)).value, value);
});

test("a large text does not hold the event loop", async () => {
  const text = `items:\n${"- {name: abc, value: 12345}\n".repeat(500)}`;
  const reading = readYaml(text);
  assert.ok(reading instanceof Promise);
  const { value } = await reading;
  assert.deepEqual(Object.keys(value as object), ["items"]);
  await assert.rejects(async () => readYaml(`${text}[`), /error converting YAML to JSON/);
});
