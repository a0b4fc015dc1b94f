/**
 * Patches, on the official inputs and results.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isCoded, isObject } from "@kontinuum/std";
import fc from "fast-check";
import { official } from "../testing/official.ts";
import { parseConfigDocuments } from "./config-document.ts";
import { patchMachineConfig } from "./patch.ts";

/** The official results are written by a node's types, which spell out some empty values. */
function withoutSpelledOut(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSpelledOut);
  if (!isObject(value)) return value;
  const kept = Object.entries(value)
    .map(([key, entry]): [string, unknown] => [key, withoutSpelledOut(entry)])
    .filter(([, entry]) => entry !== "" && entry !== null && !(Array.isArray(entry) && entry.length === 0));
  return Object.fromEntries(
    kept.filter(([, entry]) => !(isObject(entry) && Object.keys(entry).length === 0)),
  );
}

/** A node keeps the path of a URL when a patch gives one without: https://a and https://a/ are the same. */
const plain = (text: string): unknown =>
  withoutSpelledOut(parseConfigDocuments(text.replace(/(endpoint: https:\/\/[^/\s]+)\/?$/gm, "$1")));

describe("official cases", () => {
  const cases: [string, string, string[], string][] = [
    [
      "apply",
      "config.yaml",
      ["strategic1", "jsonpatch1", "jsonpatch2", "strategic2", "strategic3"],
      "expected.yaml",
    ],
    ["multidoc", "config.yaml", ["strategic1", "strategic2"], "expected.yaml"],
    ["auditpolicy", "config.yaml", ["patch1"], "expected.yaml"],
    ["patchdelete", "config.yaml", ["strategic1"], "expected.yaml"],
    [
      "patchdelete",
      "controlplane_orig.yaml",
      ["strategic2", "strategic3", "strategic4"],
      "controlplane_expected.yaml",
    ],
    ["patchlink", "base.yaml", ["patch"], "expected.yaml"],
    ["patchmixed", "base.yaml", ["patch"], "expected.yaml"],
  ];
  for (const [folder, input, patches, expected] of cases) {
    test(`${folder}: ${patches.join(", ")}`, () => {
      const read = (name: string): string => official(`config-patcher/${folder}/${name}`);
      const result = patchMachineConfig(
        read(input),
        patches.map((name) => read(`${name}.yaml`)),
      );
      assert.deepEqual(plain(result), plain(read(expected)));
    });
  }

  for (const number of ["001", "002", "003", "004", "005", "006"]) {
    test(`strategic merge ${number}`, () => {
      const read = (name: string): string =>
        official(`machine-config/strategic-merge/${number}/${name}.yaml`);
      assert.deepEqual(plain(patchMachineConfig(read("left"), [read("right")])), plain(read("expected")));
    });
  }

  test("deleting a document that is not there changes nothing", () => {
    const config = official("config-patcher/multidoc/config.yaml");
    const patch = official("config-patcher/multidoc/strategic3.yaml");
    assert.deepEqual(plain(patchMachineConfig(config, [patch])), plain(config));
  });

  test("deleting a key that is not there is an error that names it", () => {
    const read = (name: string): string => official(`config-patcher/patchdeletemissing/${name}.yaml`);
    assert.throws(
      () => patchMachineConfig(read("config"), [read("strategic1")]),
      /deletes machine\.network\.hostname of v1alpha1, which is not there/,
    );
  });

  test("RFC 6902 is refused for several documents", () => {
    const read = (name: string): string => official(`config-patcher/multidoc/${name}.yaml`);
    assert.throws(() => patchMachineConfig(read("config"), [read("jsonpatch")]), /several documents/);
  });
});

const refuses = (config: string, patch: string, pattern: RegExp): void =>
  assert.throws(
    () => patchMachineConfig(config, [patch]),
    (error) => isCoded(error, "invalid_argument") && pattern.test(error.message),
  );

test("a failing operation is told without the tree", () => {
  const config = "machine:\n  token: top-secret\n";
  const failing = '[{"op":"test","path":"/machine/token","value":"x"}]';
  refuses(config, failing, /^patch 1 does not apply: (?!.*top-secret)/);
  refuses(config, '[{"op":"remove","path":"/nowhere"}]', /patch 1 does not apply/);
  refuses(config, '[{"op":"explode","path":"/machine"}]', /patch 1, operation 1 is none of/);
  refuses(config, "[1]", /no RFC 6902 operation/);
  refuses(config, '[{"op":"add","path":"/a"}]', /lacks value/);
  refuses(config, '[{"op":"move","path":"/a"}]', /lacks from/);
  refuses(config, '[{"op":"replace","path":"","value":1}]', /leaves no mapping/);
});

test("prototype keys are refused, not merged", () => {
  refuses("machine: {}\n", "machine:\n  __proto__:\n    polluted: true\n", /__proto__/);
  refuses("machine: {}\n", '[{"op":"add","path":"/__proto__/polluted","value":1}]', /does not apply/);
  assert.equal(Object.hasOwn(Object.prototype, "polluted"), false);
});

test("an unknown directive, a scalar and an alias bomb are refused", () => {
  refuses("machine: {}\n", "machine:\n  $patch: replace\n", /only value of \$patch/);
  refuses("machine: {}\n", "42\n", /neither a mapping/);
  const bomb = Array.from({ length: 12 }, (_, i) =>
    i === 0
      ? "a0: &a0 [x, x, x, x]"
      : `a${i}: &a${i} [${Array(8)
          .fill(`*a${i - 1}`)
          .join(", ")}]`,
  ).join("\n");
  refuses("machine: {}\n", bomb, /not usable YAML/);
});

test("what a patch deletes goes before what it adds, wherever it stands", () => {
  const config = "machine:\n  certSANs: [old]\n  sysctls: {a: '1'}\n";
  const patch = "machine:\n  certSANs: [new]\n---\nmachine:\n  certSANs:\n    $patch: delete\n";
  assert.deepEqual(plain(patchMachineConfig(config, [patch])), [
    { machine: { certSANs: ["new"], sysctls: { a: "1" } } },
  ]);
});

test("null means not given; a CA comes as a whole", () => {
  const config = "machine:\n  ca: {crt: a, key: b}\n  token: t\n";
  assert.deepEqual(plain(patchMachineConfig(config, ["machine:\n  token: null\n  ca: {crt: c}\n"])), [
    { machine: { ca: { crt: "c" }, token: "t" } },
  ]);
});

test("an empty patch changes nothing; merging twice equals merging once for mappings", () => {
  const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean());
  const tree = fc.dictionary(
    fc.stringMatching(/^[a-z]{1,5}$/),
    fc.oneof(leaf, fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), leaf)),
  );
  fc.assert(
    fc.property(tree, tree, (config, patch) => {
      const text = JSON.stringify({ machine: config });
      const change = JSON.stringify({ machine: patch });
      assert.deepEqual(parseConfigDocuments(patchMachineConfig(text, [])), parseConfigDocuments(text));
      const once = patchMachineConfig(text, [change]);
      assert.equal(patchMachineConfig(once, [change]), once);
    }),
    { numRuns: 100 },
  );
});
