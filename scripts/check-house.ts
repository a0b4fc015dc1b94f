/**
 * The house rules that no linter knows: the order of packages, the injected edges, file names and the
 * opening words of a module. Each message names the remedy.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { glob } from "node:fs/promises";
import { root } from "./command.ts";

/** What is injected: time and randomness, and the way out to other servers. */
type Edge = "time" | "calls";

/** Lowest first: a package may import only from packages before it (ARCHITECTURE.md, "The rooms"). */
const order = ["std", "storage", "controller", "kapi", "talos", "web", "kryton", "kontinuum"];

/** Calls that only `std` may make, with what to use instead; an exception names the edge. */
const edges: readonly { readonly edge: Edge; readonly pattern: RegExp; readonly remedy: string }[] = [
  {
    edge: "time",
    pattern: /\bDate\.now\(\)|\bnew Date\(\)/,
    remedy: "take the time from `edges.clock.now()`",
  },
  { edge: "time", pattern: /\bMath\.random\(/, remedy: "take randomness from `edges.random`" },
  {
    edge: "calls",
    pattern: /(?<![.\w#]|async )fetch\(|\bhttps?\.(request|get)\(|\btls\.connect\(|\bnew WebSocket\(/,
    remedy: "call other servers through `OutboundClient`, which checks where a call goes",
  },
  {
    edge: "time",
    pattern: /(?<![.\w])(setTimeout|setInterval)\(/,
    remedy: "use `edges.clock.timer` or `edges.clock.sleep`",
  },
];

/** Packages with a second, smaller index, for programs that must stay small. */
const secondIndexes: ReadonlySet<string> = new Set(["@kontinuum/storage/client"]);

const forbiddenNames = /^(utils?|helpers?|common|misc|shared)\.ts$/;

/** Checks every source file of the packages; prints one line per finding. */
export async function checkHouse(): Promise<boolean> {
  const findings: string[] = [];
  const exceptions = await readExceptions();
  for await (const file of glob("packages/*/{src,bin}/**/*.ts", { cwd: root })) {
    if (/\/(gen|vendor)\//.test(file)) continue;
    const text = await readFile(path.join(root, file), "utf8");
    const owner = file.split("/")[1] ?? "";
    findings.push(...importsAgainstTheGrain(file, owner, text));
    const isTest = /\.(test|suite|contract|fixture)\.ts$/.test(file);
    if (owner !== "std" && !isTest && !file.includes("/bin/")) {
      text.split("\n").forEach((line, index) => {
        if (/^\s*(\*|\/\/|\/\*)/.test(line)) return;
        for (const { edge, pattern, remedy } of edges) {
          if (pattern.test(line) && !exceptions.has(`${edge} ${file}`))
            findings.push(
              `${file}:${index + 1}: ${remedy}, or name the file with a reason in scripts/house-exceptions.txt`,
            );
        }
      });
    }
    if (forbiddenNames.test(path.basename(file)))
      findings.push(`${file}: name the file after the noun inside`);
    if (!isTest && !/^(#![^\n]*\n)?\s*\/\*\*/.test(text))
      findings.push(`${file}: begin with a comment that says what the module is for`);
  }
  for (const finding of findings) console.error(finding);
  return findings.length === 0;
}

function importsAgainstTheGrain(file: string, owner: string, text: string): string[] {
  const findings: string[] = [];
  const rank = order.indexOf(owner);
  for (const match of text.matchAll(/(?:from|import\()\s*"(@kontinuum\/([a-z]+)([^"]*)|\.\.?\/[^"]*)"/g)) {
    const [, specifier = "", target, rest] = match;
    if (target !== undefined) {
      if (order.indexOf(target) >= rank) {
        findings.push(
          `${file}: imports ${specifier}, but ${owner} stands before ${target} in ${order.join(" < ")}`,
        );
      }
      if (rest && !secondIndexes.has(specifier))
        findings.push(`${file}: imports ${specifier}: use the package's index, @kontinuum/${target}`);
    } else {
      const resolved = path.normalize(path.join(path.dirname(file), specifier));
      if (!resolved.startsWith(`packages/${owner}/`) && !file.endsWith(".test.ts")) {
        findings.push(`${file}: reaches out of its package with ${specifier}`);
      }
    }
  }
  return findings;
}

/** `scripts/house-exceptions.txt`: `edge  path  reason` a line; a reason is required. Answers `edge path`. */
async function readExceptions(): Promise<Set<string>> {
  const text = await readFile(path.join(root, "scripts/house-exceptions.txt"), "utf8");
  const files = new Set<string>();
  for (const line of text.split("\n")) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [edge = "", file = "", ...reason] = line.split(/\s+/);
    if (reason.length < 3) throw new Error(`scripts/house-exceptions.txt: ${file} needs a reason`);
    files.add(`${edge} ${file}`);
  }
  return files;
}
