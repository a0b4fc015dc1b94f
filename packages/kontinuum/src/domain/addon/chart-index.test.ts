/**
 * Finding a chart in a repository's index, whatever else stands in it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import { chartInIndex, newestVersion } from "./chart-index.ts";

const digest = "a".repeat(64);
const entry = (name: string, version: string): object => ({
  name,
  version,
  appVersion: "9.9.9",
  dependencies: [{ name: "other", version: "7.7.7" }],
  urls: [`${name}-${version}.tgz`, "https://mirror.example/x.tgz"],
  digest,
});
const index = stringify(
  {
    apiVersion: "v1",
    entries: {
      "cilium-cli": [entry("cilium-cli", "1.20.1")],
      cilium: [entry("cilium", "1.21.0-rc.1"), entry("cilium", "1.20.1"), entry("cilium", "1.9.0")],
      zeta: [entry("zeta", "2.0.0")],
    },
    generated: "2026-01-01T00:00:00Z",
  },
  { indentSeq: false },
);

test("a chart is found by its whole name and version, and the newest without one", () => {
  assert.deepEqual(chartInIndex(index, "cilium", "1.20.1"), {
    version: "1.20.1",
    url: "cilium-1.20.1.tgz",
    digest,
  });
  assert.equal(chartInIndex(index, "cilium", "v1.9.0")?.url, "cilium-1.9.0.tgz");
  assert.equal(chartInIndex(index, "cilium", undefined)?.version, "1.20.1");
  assert.equal(chartInIndex(index, "zeta", "2.0.0")?.url, "zeta-2.0.0.tgz");
});

test("what is not there is not found, a dependency's version least of all", () => {
  for (const [name, version] of [
    ["cilium", "7.7.7"],
    ["cilium", "9.9.9"],
    ["ciliu.", "1.20.1"],
    ["other", "7.7.7"],
    ["entries", "1.0.0"],
  ] as const)
    assert.equal(chartInIndex(index, name, version), undefined, `${name} ${version}`);
  for (const text of ["", "entries:", "nonsense", "entries:\n  cilium:\n  - [", '{"entries":{}}'])
    assert.equal(chartInIndex(text, "cilium", "1.20.1"), undefined);
});

test("an index indented otherwise is read too", () => {
  const other = stringify({ entries: { cilium: [entry("cilium", "1.20.1")] } });
  assert.equal(chartInIndex(other, "cilium", "1.20.1")?.url, "cilium-1.20.1.tgz");
});

test("a large index does not hold anything up", () => {
  const many = Array.from({ length: 20_000 }, (_, i) => entry("big", `1.0.${i}`));
  const text = `entries:\n  big:\n${many.map((one) => `  - ${JSON.stringify(one)}`).join("\n")}\n`;
  const start = process.cpuUsage();
  chartInIndex(text + index.slice(index.indexOf("  cilium:")), "cilium", "1.20.1");
  assert.ok(process.cpuUsage(start).user < 1_000_000);
});

test("the newest version is the greatest, not the last, and no prerelease", () => {
  assert.equal(newestVersion(["1.9.0", "v1.10.0", "1.11.0-rc.1", "latest"]), "v1.10.0");
  assert.equal(newestVersion(["latest"]), undefined);
});
