/**
 * 800 configurations with one thing changed each, and what Talos' own validator said to them.
 *
 * The verdicts are those of the validation package of github.com/siderolabs/talos/pkg/machinery v1.11.6, v1.12.7,
 * v1.13.8 and v1.14.1, 200 changes each: `taken`, `refused` by a rule, or `unreadable`. The changes were drawn at random
 * over generated configurations and the official example documents.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isObject } from "@kontinuum/std";
import { mutated, type Mutation } from "../testing/mutation.ts";
import { validateMachineConfig } from "./validate-machine-config.ts";

type Judged = Mutation & { readonly verdict: "taken" | "refused" | "unreadable" };

function isJudged(value: unknown): value is Judged {
  return isObject(value) && Array.isArray(value["path"]) && typeof value["verdict"] === "string";
}

const lines = readFileSync(new URL("../testing/official-verdicts.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n");

test("every changed configuration is taken or refused as the official validator does", () => {
  const counts = { taken: 0, refused: 0, unreadable: 0 };
  for (const line of lines) {
    const judged: unknown = JSON.parse(line);
    assert.ok(isJudged(judged));
    const { valid, decodeErrors, errors } = validateMachineConfig(mutated(judged), judged.mode, {
      talosVersion: `v1.${judged.minor}.0`,
    });
    const told = [...decodeErrors, ...errors].join("; ");
    assert.equal(valid, judged.verdict === "taken", `${line}\n${told}`);
    counts[judged.verdict]++;
  }
  // The draw covers all three outcomes.
  assert.ok(counts.taken > 150 && counts.refused > 100 && counts.unreadable > 100, JSON.stringify(counts));
});
