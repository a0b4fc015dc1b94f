/**
 * The command line: one line and the right exit code for every mistake, and merging kubeconfigs.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { promisify } from "node:util";
import { errorTable, systemEdges } from "@kontinuum/std";
import { parse } from "yaml";
import { parseDuration } from "./duration.ts";
import { mergeKubeconfig } from "./kubeconfig-merge.ts";
import { main } from "./main.ts";

async function run(
  args: string[],
  environment: Record<string, string> = {},
  stdin = "",
  { signal = new AbortController().signal, onError = () => {} } = {},
) {
  let out = "";
  let err = "";
  const code = await main(args, {
    stdout: { write: (text) => (out += text) },
    stderr: {
      write(text) {
        err += text;
        onError();
      },
    },
    stdin: Readable.from([stdin]),
    environment,
    edges: systemEdges(),
    signal,
  });
  return { code, out, err };
}

test("mistakes are one line and an exit code, without a stack trace", async () => {
  const cases: [string[], Record<string, string>, number, RegExp][] = [
    [["serve", "--bogus"], {}, 2, /^kontinuum: unknown option '--bogus'/],
    [["bogus"], {}, 2, /unknown command 'bogus'/],
    [["serve"], {}, 2, /no authentication is chosen/],
    [["serve"], { KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "perhaps" }, 2, /must be true or false/],
    [
      ["serve", "--addr", "nowhere"],
      { KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true" },
      2,
      /KONTINUUM_SERVER_ADDR must be/,
    ],
    [["zone", "add"], {}, 2, /required option '--region <name>'/],
    [["zone", "list", "--kubeconfig", "/nonexistent"], {}, 3, /no kubeconfig at \/nonexistent/],
    [["config", "import", "a", "b"], {}, 2, /too many arguments/],
    [["config", "import", "/nonexistent"], {}, 3, /cannot read \/nonexistent/],
    [["config", "import"], {}, 2, /nothing was pasted/],
  ];
  for (const [args, environment, code, text] of cases) {
    const result = await run(args, environment);
    assert.equal(result.code, code, args.join(" "));
    assert.match(result.err, text);
    assert.match(result.err, /^kontinuum: [^\n]+\n$/, "one line");
  }
});

test("every exit code there is stands in the help", async () => {
  const { out } = await run(["--help"], {});
  for (const { exit } of Object.values(errorTable))
    assert.match(out, new RegExp(`\\b${exit}  \\w`), String(exit));
});

test("a store or key where nothing can be made is bad input, in one line that names the setting", async () => {
  const anonymous = { KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true" };
  for (const place of ["/proc/x/y.db", "/dev/null/y.db"]) {
    const { code, err } = await run(["serve", "--storage", `sqlite://${place}`], anonymous);
    assert.deepEqual(code, 2, err);
    assert.match(err, /^kontinuum: KONTINUUM_SERVER_STORAGE: [^\n]*; name a folder that can be written\n$/);
  }
  const unmade = await run(["serve", "--storage", "sqlite:///proc/y.db"], anonymous);
  assert.deepEqual(unmade.code, 2);
  assert.match(unmade.err, /^kontinuum: \/proc\/y\.db cannot be created: [^\n]*\n$/);
  const key = await run(["store", "create-key", "/dev/null/x/store.key"]);
  assert.deepEqual(key.code, 2);
  assert.match(key.err, /^kontinuum: key file [^\n]*\/dev\/null is not a folder[^\n]*\n$/);
});

test("serve says where it serves whatever the log level, and warns of a misspelled variable", async () => {
  const abort = new AbortController();
  const { code, out, err } = await run(
    ["serve", "--addr", "127.0.0.1:0", "--storage", "memory://"],
    { KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true", KONTINUUM_SERVER_ADRR: "x", KONTINUUM_DEMO_DIR: "/d" },
    "",
    // The line is the sign to stop.
    { signal: abort.signal, onError: () => abort.abort() },
  );
  assert.equal(code, 0);
  assert.match(err, /^kontinuum serves at http:\/\/127\.0\.0\.1:[1-9]\d* \(store memory:\/\/\)\n$/);
  assert.match(out, /KONTINUUM_SERVER_ADRR is not a variable .* did you mean KONTINUUM_SERVER_ADDR\?/);
  assert.doesNotMatch(out, /KONTINUUM_DEMO_DIR/);
});

test("help and version are no failures, and every command shows examples", async () => {
  assert.deepEqual(await run(["version"]), { code: 0, out: "dev\n", err: "" });
  for (const args of [
    ["serve"],
    ["zone", "add"],
    ["zone", "list"],
    ["zone", "remove"],
    ["instance", "add"],
    ["instance", "list"],
    ["config", "import"],
    ["completion"],
    ["store", "serve"],
    ["store", "backup"],
    ["store", "restore"],
    ["kms"],
    ["simulate", "rack"],
  ]) {
    const { code, out } = await run([...args, "--help"]);
    assert.equal(code, 0);
    assert.match(out, /Examples?:/, args.join(" "));
  }
});

test("a rack is refused what it cannot simulate", async () => {
  for (const [args, told] of [
    [["--machines", "0"], /--machines must be from 1 to/],
    [["--talos", "v1.9.0"], /outside v1\.11 to v1\.14/],
    [["--faults", "disk-failed"], /one of connections, handshake-delay/],
    [["--faults", "node-009:disk-failure"], /names machine "node-009", which is not in the rack/],
  ] as const) {
    const { code, err } = await run(["simulate", "rack", ...args]);
    assert.notEqual(code, 0);
    assert.match(err, told);
  }
});

test("the command tree loads nothing that only a command at work needs", async () => {
  const program = path.resolve(import.meta.dirname, "program.ts");
  const script = `
    import { registerHooks } from "node:module";
    const heavy = new Set();
    registerHooks({ resolve: (name, context, next) => {
      const found = next(name, context);
      const loaded = /@kontinuum\\/(?!std)\\w+$/.exec(name)?.[0]
        ?? /\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(found.url)?.[1] ?? /kontinuum\\/src\\/(domain|serve|pages)\\//.exec(found.url)?.[0];
      if (loaded && !/^(@commander-js|commander|pino|sonic-boom|thread-stream|quick-format|safe-stable|on-exit|process-warning|atomic-sleep|fast-redact|real-require|@pinojs)/.test(loaded)) heavy.add(loaded);
      return found;
    } });
    await import(${JSON.stringify(program)});
    process.stdout.write(JSON.stringify([...heavy]));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
  assert.deepEqual(JSON.parse(stdout), []);
});

test("completion knows every command", async () => {
  for (const shell of ["bash", "zsh", "fish"]) assert.match((await run(["completion", shell])).out, /remove/);
});

const entry = (name: string, server: string) => ({ name, cluster: { server } });
const never = (): Promise<boolean> => Promise.reject(new Error("nothing should be asked"));

test("merging: new and equal entries ask nothing, a conflict does, the rest survives", async () => {
  const present = {
    clusters: [entry("a", "https://a")],
    preferences: { colors: true },
    "current-context": "a",
  };
  const added = await mergeKubeconfig(
    present,
    { clusters: [entry("a", "https://a"), entry("b", "https://b")] },
    never,
  );
  assert.deepEqual(added["clusters"], [entry("a", "https://a"), entry("b", "https://b")]);
  assert.deepEqual(added["preferences"], { colors: true });
  const conflict = { clusters: [entry("a", "https://new")] };
  assert.deepEqual(
    (await mergeKubeconfig(present, conflict, async () => true))["clusters"],
    conflict.clusters,
  );
  assert.deepEqual(
    (await mergeKubeconfig(present, conflict, async () => false))["clusters"],
    present.clusters,
  );
});

test("merging: the current context is adopted when there is none, and asked about when there is", async () => {
  assert.equal((await mergeKubeconfig({}, { "current-context": "x" }, never))["current-context"], "x");
  const present = { "current-context": "a" };
  assert.equal((await mergeKubeconfig(present, {}, never))["current-context"], "a");
  assert.equal(
    (await mergeKubeconfig(present, { "current-context": "x" }, async () => false))["current-context"],
    "a",
  );
  assert.equal(
    (await mergeKubeconfig(present, { "current-context": "x" }, async () => true))["current-context"],
    "x",
  );
});

test("import writes a private file where kubectl looks for it", async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "kontinuum-cli-"));
  try {
    const source = path.join(folder, "in.yaml");
    const target = path.join(folder, "deep", "config");
    await writeFile(source, "kind: Config\nclusters:\n  - name: a\n    cluster: {server: https://a}\n");
    const { code, out } = await run(["config", "import", source], { KUBECONFIG: target });
    assert.deepEqual([code, out], [0, `Imported into ${target}\n`]);
    assert.equal((await stat(target)).mode & 0o777, 0o600);
    assert.deepEqual(parse(await readFile(target, "utf8")).clusters, [entry("a", "https://a")]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("durations", () => {
  assert.equal(parseDuration("1h30m"), 5_400_000);
  assert.equal(parseDuration("90s"), 90_000);
  for (const bad of ["", "5", "m", "5x", "1m 2s", "-1s"])
    assert.throws(() => parseDuration(bad), /is not a duration/);
});
