/**
 * The code in the README of the Talos package: what it imports is there, and what needs nothing but this machine runs.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import * as std from "@kontinuum/std";
import * as talos from "@kontinuum/talos";

const folder = path.resolve(import.meta.dirname, "../../packages/talos");
const readme = await readFile(path.join(folder, "README.md"), "utf8");
const blocks = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
const modules: Readonly<Record<string, object>> = { "@kontinuum/std": std, "@kontinuum/talos": talos };

/** Runs the block that holds this text, between what it takes for granted and what must hold after it. */
async function run(mark: string, before: string, after: string): Promise<void> {
  const code = blocks.find((block) => block.includes(mark));
  assert.ok(code, mark);
  // The examples, which other tests run meanwhile, use the same addresses.
  const moved = code.replaceAll("127.78.0.", `127.79.${process.pid % 250}.`);
  const whole = `import { systemEdges } from "@kontinuum/std";\nconst edges = systemEdges();\n${before}\n${moved}\n${after}`;
  const run = ["--input-type=module-typescript", "--eval", whole];
  await promisify(execFile)(process.execPath, run, { cwd: folder, timeout: 60_000 });
}

test("what the README imports is exported", () => {
  assert.ok(blocks.length >= 4);
  let names = 0;
  for (const block of blocks) {
    for (const [, list = "", from = ""] of block.matchAll(/import \{([^}]*)\} from "([^"]+)"/g)) {
      const module = modules[from];
      assert.ok(module, from);
      for (const name of list.split(",").map((text) => text.trim())) {
        if (name === "") continue;
        assert.ok(name in module, `${name} of ${from}`);
        names++;
      }
    }
  }
  assert.ok(names > 10);
});

test("the README's secrets and configuration are valid", { timeout: 90_000 }, async () => {
  await run(
    "generateMachineConfig({",
    `const schematic = "ab".repeat(32); let stored = ""; const store = async (text: string) => { stored = text; };`,
    `if (!valid || stored === "") throw new Error(JSON.stringify({ decodeErrors, errors, warnings }));`,
  );
});

test("the README's rack comes up", { timeout: 90_000 }, async () => {
  await run(
    "SimulatedRack.create",
    "",
    `if (rack.nodes.length !== 3) throw new Error("nodes"); await rack.close();`,
  );
});
