/**
 * Every command and flag of `krytonctl`: its help, its bytes, and what the newer verbs do.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemRandom } from "@kontinuum/std";
import { bearer, start, until, type Fixture, type Parsed } from "../kryton.fixture.ts";
import { buildProgram } from "./ctl-commands.ts";
import type { Io } from "./io.ts";
import { krytonctl } from "./krytonctl.ts";

interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

async function run(env: Record<string, string>, ...args: string[]): Promise<Ran> {
  let out = "";
  let err = "";
  const io: Io = {
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env,
    random: systemRandom,
  };
  return { status: await krytonctl(args, io), out, err };
}

const small = ["--image", "debian-13", "--cpu", "1", "--memory", "1024", "--disk", "20"];

/** The commands and flags that clients of the original use; nothing of them may go. */
const contract: Record<string, readonly string[]> = {
  list: [],
  create: [
    "image",
    "cpu",
    "memory",
    "disk",
    "network",
    "ttl",
    "project",
    "ssh-key",
    "username",
    "dockur-username",
    "dockur-password",
    "dockur-hostname",
    "dockur-language",
    "dockur-region",
    "dockur-keyboard",
    "dockur-product-key",
    "dockur-domain",
    "dockur-domain-ou",
    "dockur-shared-dir",
    "dockur-oem-dir",
    "dockur-command",
    "dockur-custom-iso",
    "dockur-edition",
    "dockur-extra-disks",
    "dockur-audio",
    "dockur-secure-boot",
    "dockur-no-autologin",
  ],
  get: ["project", "name"],
  start: ["project", "name"],
  stop: ["project", "name"],
  delete: ["project", "name"],
  snapshot: ["project", "name"],
  snapshots: ["project"],
  restore: ["project"],
  "delete-snapshot": ["project"],
  images: [],
  capabilities: [],
  doctor: [],
  storage: [],
  events: [],
  "set-storage": [],
  "generate-token": [],
  "hash-token": [],
};

test("every command of the contract is there with its flags, and every command has help with an example", async () => {
  const { commands } = buildProgram({ out: () => {}, err: () => {}, env: {}, random: systemRandom });
  for (const [name, flags] of Object.entries(contract)) {
    const command = commands.find((candidate) => candidate.name() === name);
    assert.ok(command, name);
    for (const flag of flags)
      assert.ok(
        command.options.some(({ long }) => long === `--${flag}`),
        `${name} --${flag}`,
      );
  }
  for (const command of commands) {
    const help = await run({}, command.name(), "-h");
    assert.equal(help.status, 0, command.name());
    assert.match(help.out, /^Usage: krytonctl [\s\S]*\nExamples:\n {2}/, command.name());
    assert.ok(command.description() !== "", command.name());
  }
});

test("by default each command prints exactly the answer's body, indented by two spaces", async () => {
  await using api = await start();
  const env = { KRYTON_URL: api.url };
  const { id } = await api.machine("m");
  const commands: [string[], string][] = [
    [["list"], "/api/v1/machines"],
    [["get", id], `/api/v1/machines/${id}`],
    [["snapshots", id], `/api/v1/machines/${id}/snapshots`],
    [["images"], "/api/v1/images"],
    [["capabilities"], "/api/v1/capabilities"],
    [["doctor"], "/api/v1/doctor"],
    [["storage"], "/api/v1/storage"],
    [["events"], "/api/v1/events?limit=50"],
    [["operations"], "/api/v1/operations"],
    [["jobs"], "/api/v1/jobs"],
    [["projects"], "/api/v1/projects"],
    [["me"], "/api/v1/me"],
    [["api-keys"], "/api/v1/api-keys"],
    [["summary"], "/api/v1/summary"],
  ];
  for (const [args, path] of commands) {
    const body = (await api.call("GET", path)).json;
    assert.deepEqual(
      await run(env, ...args),
      { status: 0, out: `${JSON.stringify(body, null, 2)}\n`, err: "" },
      args[0],
    );
  }
});

test("the newer verbs: pause, resume, update, clone, operations of a machine, cancel, retry", async () => {
  await using api = await start();
  const env = { KRYTON_URL: api.url };
  const json = async (...args: string[]): Promise<Parsed> => {
    const ran = await run(env, ...args);
    assert.equal(ran.status, 0, `${args.join(" ")}: ${ran.out}${ran.err}`);
    return JSON.parse(ran.out);
  };
  const { id } = await json("create", "a", ...small);
  assert.equal((await json("pause", id)).state, "paused");
  assert.equal((await json("resume", id, "--wait")).state, "running");
  assert.equal((await json("restart", id, "--wait")).state, "running");
  const changed = await json("update", id, "--name", "b", "--label", "team=x", "--cpu", "2", "--ttl", "30");
  assert.deepEqual(
    [changed.spec.name, changed.spec.labels, changed.spec.compute],
    ["b", { team: "x" }, { cpu: 2, memoryMiB: 1024 }],
  );
  assert.ok(changed.expiresAt);
  assert.equal((await json("clone", id, "c")).spec.name, "c");
  assert.equal((await json("stop", id, "--force-after", "5", "--wait")).state, "stopped");
  assert.deepEqual(
    (await json("list", "--state", "stopped")).items.map((item: Parsed) => item.id),
    [id],
  );
  assert.equal(
    (await json("list", "--label", "team=x")).items.length,
    2,
    "a clone has the labels of its source",
  );
  assert.deepEqual((await json("list", "--label", "team=y")).items, []);
  const kinds = (await json("operations", "--machine", id)).items.map((operation: Parsed) => operation.kind);
  assert.deepEqual(kinds, ["stop", "resize", "restart", "resume", "pause", "create"]);
  const [done] = (await json("operations")).items;
  for (const verb of ["cancel", "retry"]) {
    const refused = await run(env, verb, done.id);
    assert.equal(refused.status, 1);
    assert.equal(JSON.parse(refused.out).error.code, "CONFLICT");
  }
  const snapshot = await json("snapshot", id);
  assert.equal((await json("restore", id, snapshot.id, "--start")).state, "restored");
  assert.equal((await json("get", id)).state, "running");
  assert.deepEqual(await run(env, "delete", id, "--wait"), { status: 0, out: "", err: "" });
  assert.equal((await run(env, "get", id)).status, 1);
});

test("tables have one line per thing and never let a server's text drive the terminal", async () => {
  await using api = await start({ keys: { boss: { role: "admin", projects: ["*"] } } });
  const env = { KRYTON_URL: api.url, KRYTON_TOKEN: "boss" };
  await api.machine("m", {}, bearer("boss"));
  for (const name of ["images", "doctor", "storage", "jobs", "api-keys", "events", "operations", "list"]) {
    const { status, out } = await run(env, name, "-o", "table");
    assert.equal(status, 0, name);
    assert.match(out.split("\n")[0] ?? "", /^[A-Z ]+$/, name);
    // eslint-disable-next-line no-control-regex -- that there are none is what is tested
    assert.doesNotMatch(out, /[\x00-\x09\x0b-\x1f\x7f]/, name);
  }
  assert.match((await run(env, "api-keys", "-o", "table")).out, /boss +admin +\* +20/);
});

/** Runs `krytonctl … --watch` until what it printed satisfies `enough`; it is ended by its connection's end. */
async function watching(
  api: Fixture,
  args: readonly string[],
  enough: (out: string) => boolean,
): Promise<void> {
  let out = "";
  const stopped = Promise.withResolvers<void>();
  const io: Io = {
    out(text) {
      out += text;
      if (enough(out)) stopped.resolve();
    },
    // Losing the server is how the test ends it: what follows is thrown out of the command.
    err: () => {
      throw new Error("the stream ended");
    },
    env: { KRYTON_URL: api.url },
    random: systemRandom,
  };
  const running = krytonctl(args, io).catch(() => 1);
  await until(() => (api.kryton.services.streams.size > 0 ? true : undefined));
  await api.machine("watched");
  await stopped.promise;
  await api.stop();
  await running;
}

test("events --watch prints what happens, one event a line; list --watch shows the list again", async () => {
  await using one = await start();
  await watching(one, ["events", "--watch"], (out) =>
    /\n\{"specversion":"1\.0".*machine\.created.*\}\n/.test(out),
  );
  await using two = await start();
  await watching(two, ["list", "--watch", "-o", "table"], (out) => / watched +running/.test(out));
});

test("setup-storage says what is missing where there is no cluster", async () => {
  await using api = await start();
  const env = { KRYTON_URL: api.url };
  const refused = await run(env, "setup-storage", "--backend", "longhorn", "--wait");
  assert.equal(refused.status, 1);
  assert.match(JSON.parse(refused.out).error.hint, /KRYTON_KUBECONFIG/);
  assert.equal((await run(env, "setup-storage", "--backend", "zfs")).status, 2);
  assert.equal((await run(env, "setup-storage", "--cancel")).status, 1);
  assert.equal((await run(env, "setup-storage")).status, 1);
});
