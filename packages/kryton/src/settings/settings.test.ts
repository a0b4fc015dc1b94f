import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { bearer, start, until } from "../kryton.fixture.ts";

test("settings change all or nothing, for admins, with an event", async () => {
  await using api = await start({
    env: { KRYTON_PROJECTS: "ci,qa" },
    keys: {
      boss: { role: "admin", projects: ["*"] },
      op: { role: "operator", projects: ["*"] },
      v: { role: "viewer", projects: ["ci"] },
    },
  });
  const put = (body: unknown, who = "boss") => api.call("PUT", "/api/v1/settings", body, bearer(who));
  assert.equal((await put({ defaultProject: "qa" }, "v")).status, 403);
  assert.equal((await put({ defaultProject: "qa" }, "op")).status, 403);
  for (const body of [
    { defaultProject: "" },
    { defaultProject: "nope" },
    { imageNamespace: "Not A Label" },
    { storageClass: "fast" },
    { eventWebhookUrl: "ftp://x" },
    { eventWebhookUrl: "https://user:pw@x/" },
    { atlas: { enabled: true } },
    { defaultProject: "qa", storageClass: "fast" },
    { colour: 1 },
  ]) {
    assert.equal((await put(body)).status, 400, JSON.stringify(body));
  }
  const before = await api.call("GET", "/api/v1/settings", undefined, bearer("boss"));
  assert.equal(before.json.runtime.defaultProject, "ci", "nothing of a refused change remains");
  const changed = await put({
    defaultProject: " qa ",
    eventWebhookUrl: "https://sink.example/hook",
    storageClass: "",
  });
  assert.equal(changed.status, 200, changed.text);
  assert.equal(changed.json.runtime.defaultProject, "qa");
  assert.equal(changed.json.runtime.eventWebhookUrl, "https://sink.example/hook");
  assert.deepEqual(changed.json.editable, ["defaultProject", "eventWebhookUrl", "storageClass", "atlas"]);
  const viewer = (await api.call("GET", "/api/v1/settings", undefined, bearer("v"))).json;
  assert.equal(viewer.runtime.eventWebhookUrl, "", "a webhook's address can hold a credential");
  assert.equal(viewer.system.settingsConfigFile, undefined);
  assert.deepEqual(viewer.system.projects, ["ci"]);
  const machine = await api.machine("m", {}, bearer("op"));
  assert.equal(machine.project, "qa");
  const types = (
    await api.call("GET", "/api/v1/events?type=io.kryton.settings.updated", undefined, bearer("boss"))
  ).json.items;
  assert.deepEqual(types[0].data, { defaultProject: "qa", imageNamespace: "kryton-images" });
});

test("settings live in the store, are mirrored to their files without secrets, and old files are imported", async () => {
  await using api = await start({ env: { KRYTON_PROJECTS: "ci,qa" } });
  const atlas = { enabled: true, baseUrl: "https://atlas.example/", token: "t0ken", product: "p" };
  const { json } = await api.call("PUT", "/api/v1/settings", { defaultProject: "qa", atlas });
  assert.equal(json.runtime.atlas.baseUrl, "https://atlas.example");
  assert.equal(json.runtime.atlas.token, undefined);
  assert.equal(json.runtime.atlasTokenSet, true);
  const file = join(api.directory, ".kryton", "settings.json");
  const mirrored = await until(() => readFile(file, "utf8").catch(() => undefined));
  assert.equal(JSON.parse(mirrored).defaultProject, "qa");
  assert.doesNotMatch(mirrored, /t0ken/);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const { kvs } = await api.store.range({ key: "/", end: "0" });
  for (const { value } of kvs) assert.doesNotMatch(value.toString("utf8"), /t0ken/);
  await using replica = await start({
    store: api.store,
    sealer: api.sealer,
    env: { KRYTON_PROJECTS: "ci,qa" },
  });
  assert.equal((await replica.call("GET", "/api/v1/settings")).json.runtime.atlasTokenSet, true);

  const old = join(api.directory, "old-settings.json");
  await writeFile(
    old,
    JSON.stringify({ defaultProject: "qa", atlas: { baseUrl: "https://a.example", token: "x" } }),
  );
  await using imported = await start({ env: { KRYTON_PROJECTS: "ci,qa", KRYTON_SETTINGS_CONFIG_FILE: old } });
  const { runtime } = (await imported.call("GET", "/api/v1/settings")).json;
  assert.equal(runtime.defaultProject, "qa");
  assert.equal(runtime.atlasTokenSet, true);
});

test("a changed base URL drops the stored Atlas token", async () => {
  await using api = await start();
  const put = async (atlas: unknown): Promise<boolean> =>
    (await api.call("PUT", "/api/v1/settings", { atlas })).json.runtime.atlasTokenSet;
  assert.equal(await put({ baseUrl: "https://one.example", token: "t" }), true);
  assert.equal(await put({ product: "other" }), true);
  assert.equal(await put({ baseUrl: "https://one.example/" }), true);
  assert.equal(await put({ baseUrl: "https://two.example" }), false);
});

test("Atlas is asked for its health and classes, with its token only at its own address", async () => {
  const seen: (string | undefined)[] = [];
  const server = http.createServer((incoming, outgoing) => {
    seen.push(incoming.headers.authorization);
    if (incoming.url === "/readyz") return void outgoing.end("ok");
    if (incoming.url === "/version") return void outgoing.end('{"version":"1"}');
    outgoing.end('{"items":[{"name":"rook-ceph-block"},{"name":"fast"}]}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await using api = await start({ env: { KRYTON_OUTBOUND_ALLOW: "127.0.0.1" } });
  const path = "/api/v1/integrations/atlas/test";
  const off = await api.call("POST", path);
  assert.equal(off.status, 200);
  assert.equal(off.json.healthy, false);
  assert.equal((await api.call("POST", path, "{broken")).status, 400);
  await api.call("PUT", "/api/v1/settings", {
    atlas: { enabled: true, baseUrl: url, token: "t", preferAtlas: true },
  });
  const on = await api.call("POST", path, {});
  assert.equal(on.status, 200, on.text);
  assert.deepEqual(on.json.storageClasses, ["rook-ceph-block", "fast"]);
  assert.ok(seen.every((header) => header === "Bearer t"));
  const storage = (await api.call("GET", "/api/v1/storage")).json;
  assert.deepEqual(storage.atlas.storageClasses, ["rook-ceph-block", "fast"]);
  seen.length = 0;
  const elsewhere = url.replace("127.0.0.1", "127.0.0.2");
  await api.call("POST", path, { baseUrl: elsewhere });
  assert.ok(
    seen.every((header) => header === undefined),
    "the stored token does not follow another address",
  );
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const gone = await api.call("POST", path);
  assert.equal(gone.status, 503);
  assert.equal(gone.json.probes[0].status, "fail");
});

test("storage, golden builds and jobs answer honestly where there is no cluster", async () => {
  await using api = await start();
  const storage = (await api.call("GET", "/api/v1/storage")).json;
  assert.deepEqual(storage.storageClasses, []);
  assert.deepEqual(storage.config, { storageClass: "" });
  assert.equal(storage.setup.startedAt, "0001-01-01T00:00:00Z");
  assert.equal((await api.call("PUT", "/api/v1/storage/config", { storageClass: "x" })).status, 501);
  assert.equal((await api.call("POST", "/api/v1/storage/setup", { backend: "longhorn" })).status, 501);
  assert.equal((await api.call("POST", "/api/v1/storage/setup", { backend: "zfs" })).status, 400);
  assert.deepEqual((await api.call("GET", "/api/v1/golden")).json, { items: [] });
  assert.equal((await api.call("POST", "/api/v1/golden", { imageId: "debian-13" })).status, 400);
  assert.equal((await api.call("POST", "/api/v1/golden", "nonsense")).status, 400);
  assert.equal((await api.call("POST", "/api/v1/golden", {})).json.error.code, "unavailable");
  for (const id of ["nope", "..%2F..%2Fetc", "%2e%2e"]) {
    const answer = await api.call("GET", `/api/v1/golden/${id}/passport`);
    assert.equal(answer.status, 404);
  }
  assert.equal((await api.call("GET", "/api/v1/golden/nope")).json.error.code, "not_found");
  assert.deepEqual((await api.call("GET", "/api/v1/jobs")).json, { items: [] });
  assert.equal((await api.call("GET", "/api/v1/jobs/machine%3Ax")).json.error.code, "not_found");
  const tested = await api.call("POST", "/api/v1/settings/test");
  assert.equal(tested.status, 200);
  assert.equal(tested.json.connection.probes[0].name, "provider");
  const doctor = await api.call("GET", "/api/v1/doctor");
  assert.equal(doctor.status, 200);
  assert.equal(doctor.json.healthy, true);
  const checks = doctor.json.findings.map((finding: { check: string }) => finding.check);
  assert.deepEqual(checks, ["auth", "projects", "catalog", "provider-health", "guestkit", "demo-provider"]);
});
