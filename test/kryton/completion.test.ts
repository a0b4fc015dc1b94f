/**
 * Completion of `krytonctl` in the real shells.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { systemRandom } from "@kontinuum/std";
import { krytonctl } from "../../packages/kryton/src/cli/krytonctl.ts";
import { findProgram, skipUnless } from "../services/service.ts";

const run = promisify(execFile);
const bash = await findProgram("bash", "bash");
const zsh = await findProgram("zsh", "zsh");
const fish = await findProgram("fish", "fish");

/** Command lines up to the cursor, and words that must and must not be offered. */
const cases: readonly {
  readonly line: string;
  readonly offers: readonly string[];
  readonly not?: readonly string[];
}[] = [
  { line: "krytonctl ", offers: ["list", "create", "setup-storage", "completion"] },
  { line: "krytonctl sna", offers: ["snapshot", "snapshots"], not: ["list"] },
  { line: "krytonctl list --", offers: ["--all", "--watch", "--label", "--output"], not: ["--image"] },
  { line: "krytonctl list --output ", offers: ["json", "table"] },
  { line: "krytonctl setup-storage --rook-mode ", offers: ["lab", "devices", "device", "pool-only"] },
  { line: "krytonctl completion ", offers: ["bash", "zsh", "fish"] },
];

async function script(shell: string): Promise<string> {
  let out = "";
  const io = { out: (text: string) => void (out += text), err: () => {}, env: {}, random: systemRandom };
  assert.equal(await krytonctl(["completion", shell], io), 0);
  return out;
}

function check(offered: readonly string[], { line, offers, not = [] }: (typeof cases)[number]): void {
  for (const word of offers)
    assert.ok(offered.includes(word), `${line}| offers ${word}: ${offered.join(" ")}`);
  for (const word of not) assert.ok(!offered.includes(word), `${line}| offers no ${word}`);
}

/** Calls the completion function as bash does: words and the index of the one under the cursor. */
const bashAsk = `words=($2); [[ $2 == *" " ]] && words+=(""); COMP_WORDS=("\${words[@]}"); COMP_CWORD=$((\${#words[@]}-1)); _krytonctl; printf '%s\\n' "\${COMPREPLY[@]}"`;

test("bash", { skip: skipUnless(bash) }, async () => {
  const text = await script("bash");
  for (const one of cases) {
    const { stdout } = await run("bash", ["--norc", "-c", `eval "$1"; ${bashAsk}`, "bash", text, one.line]);
    check(stdout.split("\n"), one);
  }
  const registered = await run("bash", ["--norc", "-c", 'eval "$1"; complete -p krytonctl', "bash", text]);
  assert.match(registered.stdout, /complete -F _krytonctl krytonctl/);
  const files = await run("bash", [
    "--norc",
    "-c",
    `cd /etc; eval "$1"; ${bashAsk}`,
    "bash",
    text,
    "krytonctl create --ssh-key hostn",
  ]);
  assert.match(files.stdout, /hostname/);
});

test("zsh", { skip: skipUnless(zsh) }, async () => {
  const text = await script("zsh");
  const ask = `autoload -U compinit; compinit -D; eval "$1"; setopt KSH_ARRAYS SH_WORD_SPLIT; ${bashAsk.replaceAll("[[ $2 ==", "[[ $2 =")}`;
  for (const one of cases) {
    const { stdout } = await run("zsh", ["-f", "-c", ask, "zsh", text, one.line]);
    // Matching what was typed is the shell's part here.
    const typed = one.line.split(" ").at(-1) ?? "";
    check(
      stdout.split("\n").filter((word) => word.startsWith(typed)),
      one,
    );
  }
});

test("fish", { skip: skipUnless(fish) }, async () => {
  const text = await script("fish");
  for (const one of cases) {
    const { stdout } = await run("fish", [
      "--no-config",
      "-c",
      `echo $argv[1] | source; complete -C $argv[2]`,
      text,
      one.line,
    ]);
    check(
      stdout.split("\n").map((line) => line.split("\t")[0] ?? ""),
      one,
    );
  }
});
