import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bearer, start } from "../kryton.fixture.ts";
import { goldenJob, machineJob, stepsAt } from "../jobs/jobs.ts";
import type { Machine } from "../model/machine.ts";

test("recorded builds are listed, with passports that never leave their directory; publishing is refused properly", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-golden-"));
  const write = async (id: string, status: unknown): Promise<void> => {
    await mkdir(join(directory, id));
    await writeFile(
      join(directory, id, "status.json"),
      typeof status === "string" ? status : JSON.stringify(status),
    );
  };
  const now = new Date().toISOString();
  const build = {
    version: "11e",
    imageId: "windows-11-enterprise",
    state: "ready",
    startedAt: now,
    updatedAt: now,
  };
  try {
    const passport = join(directory, "done", "passport.json");
    await write("done", { ...build, passportPath: passport, certified: true, validationScore: 91 });
    await writeFile(passport, '{"verdict":"ready"}');
    await write("busy", { ...build, state: "installing", phase: "download", progressPercent: 28 });
    await write("torn", '{"state":');
    await write("sneaky", { ...build, passportPath: "/etc/hostname" });
    await symlink("/etc/hostname", join(directory, "done", "link.json"));
    await write("linked", { ...build, passportPath: join(directory, "done", "link.json") });
    await using api = await start({ env: { KRYTON_GOLDEN_DIR: directory } });
    const ids = (await api.call("GET", "/api/v1/golden")).json.items
      .map((item: { id: string }) => item.id)
      .sort();
    assert.deepEqual(ids, ["busy", "done", "linked", "sneaky"]);
    const evidence = await api.call("GET", "/api/v1/golden/done/passport");
    assert.equal(evidence.headers.get("content-type"), "application/json");
    assert.equal(evidence.text, '{"verdict":"ready"}');
    for (const id of ["sneaky", "linked", "busy", "nope"]) {
      assert.equal((await api.call("GET", `/api/v1/golden/${id}/passport`)).status, 404, id);
    }
    const publish = async (id: string) =>
      (await api.call("POST", `/api/v1/golden/${id}/bootstrap`, {})).json.error.code;
    assert.equal(await publish("nope"), "not_found");
    assert.equal(await publish("busy"), "INVALID_REQUEST");
    assert.equal(await publish("done"), "unavailable");
    const jobs = (await api.call("GET", "/api/v1/jobs")).json.items;
    const busy = jobs.find((job: { id: string }) => job.id === "golden:busy");
    assert.equal(busy.state, "running");
    assert.deepEqual(
      busy.steps.map((step: { state: string }) => step.state),
      ["done", "active", "pending", "pending", "pending", "pending"],
    );
    assert.equal((await api.call("GET", "/api/v1/jobs/golden%3Adone")).json.state, "succeeded");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("a build's job carries the end of its log, with levels, for administrators only", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-golden-"));
  const now = new Date().toISOString();
  const status = {
    version: "11e",
    imageId: "i",
    state: "installing",
    startedAt: now,
    updatedAt: now,
    message: "m",
  };
  try {
    for (const id of ["told", "linked"]) {
      await mkdir(join(directory, id));
      await writeFile(join(directory, id, "status.json"), JSON.stringify(status));
    }
    const lines = [
      "x".repeat(10_000),
      "plain",
      "2026-01-01T00:00:01Z [OK] disk",
      "[WARN] slow",
      "12:00:00 [ERR] no",
    ];
    await writeFile(join(directory, "told", "job.log"), `${lines.join("\n")}\n`);
    await symlink("/etc/hostname", join(directory, "linked", "job.log"));
    await using api = await start({
      env: { KRYTON_GOLDEN_DIR: directory },
      keys: { boss: { role: "admin", projects: ["*"] }, eye: { role: "viewer", projects: ["*"] } },
    });
    const logs = async (id: string, token: string) =>
      (await api.call("GET", `/api/v1/jobs/golden:${id}`, undefined, bearer(token))).json.logs;
    assert.deepEqual(
      (await logs("told", "boss")).map((entry: { level: string; message: string }) => [
        entry.level,
        entry.message,
      ]),
      [
        ["info", "plain"],
        ["ok", "[OK] disk"],
        ["warn", "[WARN] slow"],
        ["err", "12:00:00 [ERR] no"],
      ],
    );
    assert.equal((await logs("told", "boss"))[1].time, "2026-01-01T00:00:01Z");
    for (const [id, token] of [
      ["told", "eye"],
      ["linked", "boss"],
    ] as const) {
      const [only, ...more] = await logs(id, token);
      assert.deepEqual([only.message, more.length], ["m", 0], id);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("jobs of machines follow phases, are never for demo, and mark the failed step", () => {
  const machine: Machine = {
    id: "7c0a6a1e-54a3-4a3a-8f2b-0d7f3f0c9a11",
    project: "ci",
    provider: "dockur",
    state: "provisioning",
    spec: {
      name: "w",
      image: "windows-11-pro",
      compute: { cpu: 4, memoryMiB: 8192 },
      disk: { sizeGiB: 80 },
      network: {},
    },
    providerRef: { provider: "dockur", name: "w" },
    createdAt: "2026-01-01T00:00:00Z",
    updatedAt: "2026-01-01T00:00:00Z",
    progressPercent: 35,
  };
  const now = Date.parse("2026-01-01T01:00:00Z");
  assert.equal(machineJob({ ...machine, provider: "demo" }, undefined, now), undefined);
  assert.equal(machineJob(machine, undefined, now)?.state, "running");
  const failed = machineJob({ ...machine, state: "failed", message: "no disk" }, undefined, now);
  assert.equal(failed?.state, "failed");
  assert.equal(failed.steps[0]?.state, "failed");
  assert.equal(
    machineJob({ ...machine, state: "running", progressPercent: 100 }, undefined, now + 7 * 3_600_000),
    undefined,
  );
  assert.deepEqual(stepsAt(["A b", "C"], 1, "x", false), [
    { id: "a-b", label: "A b", state: "done" },
    { id: "c", label: "C", state: "active", detail: "x" },
  ]);
  const old = {
    id: "x",
    version: "",
    imageId: "i",
    state: "ready" as const,
    progressPercent: 100,
    message: "",
  };
  const times = { startedAt: "2026-01-01T00:00:00Z", updatedAt: "2026-01-01T00:00:00Z" };
  assert.equal(goldenJob({ ...old, ...times }, [], now + 5 * 3_600_000), undefined);
});

test("finished builds and golden disks make their images stored, and hosts' paths are for administrators", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-golden-"));
  try {
    const disk = join(directory, "w11e.qcow2");
    await writeFile(disk, "disk");
    const now = new Date().toISOString();
    const status = {
      version: "11e",
      imageId: "windows-11-enterprise",
      state: "ready",
      startedAt: now,
      updatedAt: now,
      outputPath: disk,
      passportPath: `${disk}.passport.json`,
      certified: true,
      validationScore: 91,
    };
    for (const [id, more] of Object.entries({
      good: {},
      gone: { imageId: "windows-server-2022", outputPath: join(directory, "none.qcow2") },
      building: { imageId: "windows-server-2019", state: "capturing" },
    })) {
      await mkdir(join(directory, "builds", id), { recursive: true });
      await writeFile(join(directory, "builds", id, "status.json"), JSON.stringify({ ...status, ...more }));
    }
    await mkdir(join(directory, "out"));
    for (const version of ["tiny11", "2025"])
      await writeFile(join(directory, "out", `windows-${version}-golden.qcow2`), "disk");
    await using api = await start({
      env: { KRYTON_GOLDEN_DIR: join(directory, "builds"), KRYTON_PROJECT_ROOT: directory },
      keys: { boss: { role: "admin", projects: ["*"] }, v: { role: "viewer", projects: ["*"] } },
    });
    const images = async (who: string): Promise<Map<string, Record<string, unknown>>> => {
      const { items } = (await api.call("GET", "/api/v1/images", undefined, bearer(who))).json;
      return new Map(items.map((item: { id: string }) => [item.id, item]));
    };
    const found = await images("boss");
    const enterprise = found.get("windows-11-enterprise");
    assert.deepEqual(
      [
        enterprise?.["availability"],
        enterprise?.["storageSource"],
        enterprise?.["storagePath"],
        enterprise?.["certified"],
        enterprise?.["validationScore"],
        enterprise?.["passportBuildId"],
        enterprise?.["ready"],
      ],
      ["stored", "golden", disk, true, 91, "good", true],
    );
    const sources = [
      "windows-server-2025",
      "windows-tiny11",
      "windows-11-pro",
      "windows-server-2022",
      "windows-server-2019",
      "debian-13",
    ];
    assert.deepEqual(
      sources.map((id) => found.get(id)?.["storageSource"]),
      ["golden", "golden", "demo", "demo", "demo", "demo"],
    );
    assert.equal((await images("v")).get("windows-11-enterprise")?.["storagePath"], undefined);
    const build = (await api.call("GET", "/api/v1/golden/good", undefined, bearer("v"))).json;
    assert.deepEqual([build.state, build.outputPath, build.passportPath], ["ready", undefined, undefined]);
    assert.equal(
      (await api.call("GET", "/api/v1/golden/good", undefined, bearer("boss"))).json.outputPath,
      disk,
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
