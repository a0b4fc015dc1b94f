import assert from "node:assert/strict";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Log, LogFields } from "@kontinuum/std";
import { bearer, keysFile, machineBody, start, until, type Parsed } from "../kryton.fixture.ts";

/** A log that keeps what it is told. */
function keptLog(): {
  readonly log: Log;
  readonly lines: { readonly message: string; readonly fields: LogFields }[];
} {
  const lines: { message: string; fields: LogFields }[] = [];
  const keep = (message: string, fields: LogFields = {}): void => void lines.push({ message, fields });
  const log: Log = { debug: keep, info: keep, warn: keep, error: keep, with: () => log };
  return { log, lines };
}

test("every request that could change something is one audit line: who, what, where, and what came of it", async () => {
  const { log, lines } = keptLog();
  await using api = await start({
    log,
    keys: {
      "s3cret-op": { role: "operator", projects: ["default"], name: "op" },
      "s3cret-v": { role: "viewer", projects: ["default"], name: "v" },
    },
  });
  const { id } = await api.machine("m", {}, bearer("s3cret-op"));
  await api.call("POST", `/api/v1/machines/${id}/stop`, undefined, bearer("s3cret-v"));
  await api.call("DELETE", `/api/v1/machines/${id}`, undefined, bearer("s3cret-op"));
  await api.call("POST", "/api/v1/machines", machineBody("x"));
  await api.call("GET", "/api/v1/machines", undefined, bearer("s3cret-v"));
  const audit = lines.filter(({ message }) => message === "audit").map(({ fields }) => fields);
  assert.deepEqual(
    audit.map(({ user, role, project, action, id: machine, status }) => [
      user,
      role,
      project,
      action,
      machine,
      status,
    ]),
    [
      ["op", "operator", "default", "POST /api/v1/machines", undefined, 201],
      ["v", "viewer", "", "POST /api/v1/machines/{id}/stop", id, 403],
      ["op", "operator", "default", "DELETE /api/v1/machines/{id}", id, 204],
      ["", "", "", "POST /api/v1/machines", undefined, 401],
    ],
  );
  for (const { request_id: requestId, address } of audit) assert.ok(requestId && address);
  assert.doesNotMatch(JSON.stringify(lines), /s3cret/, "a token is never logged");
});

test("an administrator sees keys and their last use, on every replica, without digests", async () => {
  const keys = {
    boss: { role: "admin", projects: ["*"] },
    idle: { role: "viewer", projects: ["default"] },
  } as const;
  const file = {
    boss: { role: "admin" as const, projects: ["*"] },
    idle: { role: "viewer" as const, projects: ["default"] },
  };
  await using api = await start({ keys: file });
  await using other = await start({ keys: file, store: api.store, sealer: api.sealer });
  const list = async (at: typeof api): Promise<Parsed[]> =>
    (await at.call("GET", "/api/v1/api-keys", undefined, bearer("boss"))).json.items;
  const before = await list(api);
  assert.deepEqual(
    before.map(({ name, role, projects }) => ({ name, role, projects })),
    [
      { name: "boss", ...keys.boss },
      { name: "idle", ...keys.idle },
    ],
  );
  assert.ok(before[0].lastUsedAt);
  assert.equal(before[1].lastUsedAt, undefined, "never used");
  assert.doesNotMatch(JSON.stringify(before), /sha256|digest/);
  assert.equal((await api.call("GET", "/api/v1/me", undefined, bearer("idle"))).status, 200);
  await api.kryton.services.keyUse.flush();
  assert.ok((await list(other))[1].lastUsedAt, "told through the store");
  assert.equal((await api.call("GET", "/api/v1/api-keys", undefined, bearer("idle"))).status, 403);
});

test("keys are reloaded: a new one works, a removed one stops, a broken file changes nothing", async () => {
  const { log, lines } = keptLog();
  await using api = await start({
    log,
    keys: {
      old: { role: "viewer", projects: ["default"] },
      stays: { role: "viewer", projects: ["default"] },
    },
  });
  const path = join(api.directory, "keys.json");
  const replace = async (text: string): Promise<void> => {
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  };
  const me = async (token: string): Promise<number> =>
    (await api.call("GET", "/api/v1/me", undefined, bearer(token))).status;
  assert.deepEqual([await me("old"), await me("fresh")], [200, 401]);
  await replace(
    keysFile({
      fresh: { role: "viewer", projects: ["default"] },
      stays: { role: "viewer", projects: ["default"] },
    }),
  );
  await until(async () => ((await me("fresh")) === 200 ? true : undefined));
  assert.equal(await me("old"), 401);
  await replace('{"keys":');
  await until(
    () =>
      lines.some(({ message }) => message.startsWith("API keys could not be reloaded")) ? true : undefined,
    10_000,
  );
  assert.equal(await me("stays"), 200, "the last good keys stay");
});
