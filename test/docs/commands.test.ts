/**
 * Every command that the documentation shows is run here, or is named below with the test that runs it.
 *
 * Blocks marked `sh` are read from all Markdown of the project. Commands that talk to a running system run against the
 * demo, started once, in the order of the page; a command that is not known fails.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { glob, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { findHelm, findKubectl } from "../services/kubernetes-tools.ts";
import { run, Hopeless, skipUnless, start, waitFor, type Running } from "../services/service.ts";

const root = path.resolve(import.meta.dirname, "../..");
const kubectl = await findKubectl();
const skip = skipUnless(kubectl) || skipUnless(await findHelm());

/** Commands that a test of their own runs: the pattern, and that test. */
const runElsewhere: readonly { readonly pattern: RegExp; readonly by: string }[] = [
  { pattern: /^make demo$/, by: "test/thread/kill.test.ts" },
  { pattern: /^make test$/, by: "scripts/test.ts" },
  { pattern: /^npm ci --ignore-scripts$/, by: "Makefile" },
  { pattern: /^bin\/krytond &$/, by: "test/kryton/krytond.test.ts" },
  { pattern: /^KRYTON_(KEYS_DIR|AUTH_MODE|TOKEN)=.* bin\/kryton/, by: "test/kryton/production.test.ts" },
];

interface Shown {
  readonly file: string;
  readonly line: number;
  readonly command: string;
}

/** All commands of all `sh` blocks; a trailing backslash joins lines, `#` starts a comment. */
async function shownCommands(): Promise<Shown[]> {
  const found: Shown[] = [];
  const files: string[] = [];
  for await (const file of glob(["*.md", "docs/**/*.md", "packages/**/*.md"], {
    cwd: root,
    exclude: ["**/node_modules/**"],
  }))
    files.push(file);
  for (const file of files.sort()) {
    const lines = (await readFile(path.join(root, file), "utf8")).split("\n");
    let inside = false;
    let pending = "";
    lines.forEach((text, index) => {
      if (text.startsWith("```")) {
        inside = !inside && /^```(sh|bash)\b/.test(text);
        return;
      }
      if (!inside) return;
      const line = pending + text.replace(/(^|\s)#.*$/, "").trimEnd();
      pending = line.endsWith("\\") ? `${line.slice(0, -1)} ` : "";
      if (pending === "" && line.trim() !== "") found.push({ file, line: index + 1, command: line.trim() });
    });
  }
  return found;
}

let demo: Running;
let folder: string;
let work: string;
const environment: NodeJS.ProcessEnv = { ...process.env };

before(async () => {
  if (skip) return;
  folder = await mkdtemp(path.join(os.tmpdir(), "docs-"));
  demo = start(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", path.join(root, "scripts/demo.ts")],
    {
      cwd: root,
      env: { ...process.env, KONTINUUM_DEMO_DIR: folder },
    },
  );
  await waitFor(
    "the demo's zone",
    () => {
      if (demo.child.exitCode !== null) throw new Hopeless(demo.output());
      return demo.output().includes("zone ready") && demo.output().includes("Try next");
    },
    120_000,
  );
  // Commands run in a folder of their own that looks like the project, so that what they write stays out of it.
  work = path.join(folder, "work");
  await mkdir(work);
  for (const name of ["bin", "packages", ".cache"])
    await symlink(path.join(root, name), path.join(work, name));
  environment["KRYTON_URL"] = addressOf("Machine API");
  environment["KUBECONFIG"] = path.join(folder, "kontinuum.yaml");
  environment["PATH"] = `${path.dirname(String(kubectl))}:${process.env["PATH"] ?? ""}`;
});
after(async () => {
  await demo?.stop("SIGINT");
  if (folder) await rm(folder, { recursive: true, force: true });
});

const addressOf = (name: string): string =>
  new RegExp(`${name}\\s+(http://\\S+)`).exec(demo.output())?.[1] ?? "";

/** The command with the demo's own addresses in place of the usual ones. */
function here(command: string): string {
  return command
    .replaceAll("http://127.0.0.1:8080", addressOf("Kubernetes-style API"))
    .replaceAll("http://127.0.0.1:8081", addressOf("Machine API"))
    .replaceAll("$PWD/.demo", folder)
    .replaceAll(".demo/", `${folder}/`);
}

test("every command shown is run", { skip, timeout: 240_000 }, async (t) => {
  for (const { file, line, command } of await shownCommands()) {
    await t.test(`${file}:${line} ${command}`, async () => {
      const elsewhere = runElsewhere.find(({ pattern }) => pattern.test(command));
      if (elsewhere) {
        assert.ok(existsSync(path.join(root, elsewhere.by)), elsewhere.by);
        return;
      }
      const assigned = /^export (\w+)=(.*)$/.exec(here(command));
      if (assigned) {
        const value = (assigned[2] ?? "").replaceAll(/\$(\w+)/g, (_all, name: string) =>
          name === "PWD" ? work : (environment[name] ?? ""),
        );
        environment[assigned[1] ?? ""] = value;
        return;
      }
      const evaluated = /^(\w+)=\$\((.*)\)$/.exec(here(command));
      if (evaluated) {
        const answer = await shell(evaluated[2] ?? "");
        assert.equal(answer.code, 0, answer.stderr);
        environment[evaluated[1] ?? ""] = answer.stdout.trim();
        return;
      }
      if (/^(kubectl|bin\/krytonctl) .*(-w|--watch)\b/.test(command)) return watches(here(command));
      if (command.startsWith("bin/kontinuum zone add")) return addsZone(here(command));
      if (
        /^([A-Z_]+=\S+ )*(kubectl|helm|curl|bin\/(kontinuum|krytonctl)|node|npm run|printf) /.test(command)
      ) {
        const answer = await shell(here(command));
        assert.equal(answer.code, 0, `${answer.stdout}\n${answer.stderr}`);
        return;
      }
      assert.fail("nothing here knows how to run this command: teach test/docs/commands.test.ts");
    });
  }
});

/** Commands of the documentation are our own text, so a shell may read them as a person's would. */
function shell(command: string, timeoutMs = 60_000): ReturnType<typeof run> {
  return run("/bin/sh", ["-c", command], { cwd: work, env: environment, timeoutMs });
}

/** A watch prints what is there and goes on: it has to be alive when it is ended. */
async function watches(command: string): Promise<void> {
  const running = start("/bin/sh", ["-c", `exec ${command}`], { cwd: work, env: environment });
  try {
    await waitFor("the watch to print", () => running.output().length > 0);
    assert.equal(running.child.exitCode, null, running.output());
    assert.doesNotMatch(running.output(), /error|username/i);
  } finally {
    await running.stop();
  }
}

/** The machine of the page does not exist here: the objects are made, and the wait ends with the reason. */
async function addsZone(command: string): Promise<void> {
  const answer = await shell(
    `${command.replace(" --wait", " --wait --timeout 3s")} --kubeconfig "$KUBECONFIG"`,
  );
  assert.equal(answer.code, 6, `${answer.stdout}\n${answer.stderr}`);
  assert.match(answer.stdout, /eu-hel01/);
}
