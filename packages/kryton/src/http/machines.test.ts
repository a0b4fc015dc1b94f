import assert from "node:assert/strict";
import { test } from "node:test";
import { builtInImages } from "../catalog/built-in.ts";
import { bearer, machineBody, start, until } from "../kryton.fixture.ts";

const key = "AAAAC3NzaC1lZDI1NTE5AAAAIJ1qLkV6m0m2Q3Q7mD0yqj0YwKxw0xv5xj7r2z3wq5bQ";

test("create on demo answers 201, stop 200, and history shows stopped before created", async () => {
  await using api = await start();
  const created = await api.call("POST", "/api/v1/machines", machineBody("one"));
  assert.equal(created.status, 201);
  assert.equal(created.json.state, "running");
  assert.equal(created.json.provider, "demo");
  assert.deepEqual(created.json.spec.network, {});
  assert.equal(created.json.progressPercent, 100);
  assert.match(created.json.consoleUrl, /^https:\/\/console\.demo\.local\//);
  assert.deepEqual(created.json.ipAddresses, ["10.44.0.20"]);
  const stopped = await api.call("POST", `/api/v1/machines/${created.json.id}/stop`);
  assert.equal(stopped.status, 200);
  assert.equal(stopped.json.state, "stopped");
  const { json } = await api.call("GET", "/api/v1/events");
  assert.deepEqual(
    json.items.map((event: { type: string }) => event.type),
    ["io.kryton.machine.stopped", "io.kryton.machine.created"],
  );
  assert.deepEqual(Object.keys(json.items[1].data), ["project", "machineId", "name", "state", "consoleUrl"]);
  assert.equal(json.items[1].data.state, "running");
});

test("a second create with the same name is 409 and leaves no event", async () => {
  await using api = await start();
  await api.machine("twin");
  const second = await api.call("POST", "/api/v1/machines", machineBody("twin"));
  assert.equal(second.status, 409);
  assert.equal(second.json.error.code, "CONFLICT");
  assert.ok(second.json.error.requestId);
  assert.equal((await api.call("GET", "/api/v1/events")).json.items.length, 1);
});

test("of many concurrent creates with one name exactly one succeeds", async () => {
  await using api = await start();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => api.call("POST", "/api/v1/machines", machineBody("same"))),
  );
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [201, ...Array.from({ length: 19 }, () => 409)]);
  assert.equal((await api.call("GET", "/api/v1/machines")).json.items.length, 1);
});

test("unknown fields, two documents, wrong types and bad JSON are 400", async () => {
  await using api = await start();
  const bad = [
    { ...machineBody("a"), colour: "red" },
    { ...machineBody("a"), colour: null },
    { ...machineBody("a"), compute: { cpu: 1, memoryMiB: 1024, cores: null } },
    { ...machineBody("a"), compute: { cpu: "4", memoryMiB: 1024 } },
    { ...machineBody("a"), compute: { cpu: 1.5, memoryMiB: 1024 } },
    `${JSON.stringify(machineBody("a"))}{}`,
    "{",
    "[]",
    "null",
    '"text"',
    `{"name":"${"x".repeat(1_100_000)}"}`,
  ];
  for (const body of bad) {
    const answer = await api.call("POST", "/api/v1/machines", body);
    assert.equal(answer.status, 400, answer.text);
    assert.equal(answer.json.error.code, "INVALID_REQUEST");
  }
});

test("create works without a project, in any letter case, with null for absent", async () => {
  await using api = await start({ env: { KRYTON_PROJECTS: "ci,qa", KRYTON_DEFAULT_PROJECT: "qa" } });
  const body = `{"NAME":"a","Image":"debian-13","compute":{"CPU":1,"memorymib":1024},"disk":{"sizeGiB":20},"labels":null,"name":"b"}`;
  const created = await api.call("POST", "/api/v1/machines", body);
  assert.equal(created.status, 201, created.text);
  assert.equal(created.json.project, "qa");
  assert.equal(created.json.spec.name, "b", "the last duplicate wins");
});

test("every broken rule is told in one sorted message", async () => {
  await using api = await start();
  const { status, json } = await api.call("POST", "/api/v1/machines", {
    ...machineBody("UPPER", { ttlMinutes: 50_000, labels: { "bad key!": "x" } }),
    compute: { cpu: 0, memoryMiB: 1 },
    disk: { sizeGiB: 3 },
  });
  assert.equal(status, 400);
  const parts: string[] = json.error.message.split("; ");
  assert.deepEqual(parts, [...parts].sort());
  for (const name of ["compute.cpu", "compute.memoryMiB", "disk.sizeGiB", "labels", "name", "ttlMinutes"]) {
    assert.ok(
      parts.some((part) => part.startsWith(name)),
      name,
    );
  }
});

test("every Linux image creates with its initialization echoed; Windows refuses one", async () => {
  await using api = await start();
  const initialization = { username: "ci", sshAuthorizedKeys: [`ssh-ed25519 ${key} ci@host`] };
  for (const image of builtInImages.filter(({ os }) => os === "linux")) {
    const name = image.id.replaceAll(".", "-");
    const machine = await api.machine(name, { image: image.id, initialization });
    assert.deepEqual(machine.spec.initialization, initialization);
  }
  const compute = { cpu: 4, memoryMiB: 8192 };
  const windows = await api.call(
    "POST",
    "/api/v1/machines",
    machineBody("win", { image: "windows-11-enterprise", compute, initialization }),
  );
  assert.equal(windows.status, 400);
  const small = await api.call(
    "POST",
    "/api/v1/machines",
    machineBody("win", { image: "windows-11-enterprise" }),
  );
  assert.equal(small.status, 400);
  assert.match(small.json.error.message, /at least 4/);
});

test("guest secrets are never stored in the clear and never answered", async () => {
  await using api = await start();
  const dockur = { username: "u", password: "hunter2-secret", productKey: "AAAAA-BBBBB", edition: "core" };
  const machine = await api.machine("win", {
    image: "windows-11-enterprise",
    compute: { cpu: 4, memoryMiB: 8192 },
    dockur,
  });
  assert.deepEqual(machine.spec.dockur, { username: "u", edition: "core" });
  const { kvs } = await api.store.range({ key: "/", end: "0" });
  for (const { value } of kvs) assert.doesNotMatch(value.toString("utf8"), /hunter2|AAAAA-BBBBB/);
});

test("machines of another project are not found, projects that are not configured are 400", async () => {
  await using api = await start({ env: { KRYTON_PROJECTS: "ci,qa" } });
  const machine = await api.machine("a", { project: "ci" });
  assert.equal((await api.call("GET", `/api/v1/machines/${machine.id}?project=ci`)).status, 200);
  assert.equal((await api.call("GET", `/api/v1/machines/${machine.id}?project=qa`)).status, 404);
  const unknown = await api.call("GET", "/api/v1/machines?project=nope");
  assert.equal(unknown.status, 400);
  assert.equal(unknown.json.error.code, "INVALID_REQUEST");
});

test("paging has a stable order and its cursor survives the deletion of its machine", async () => {
  await using api = await start();
  for (let i = 0; i < 7; i++) await api.machine(`m${i}`);
  const all = (await api.call("GET", "/api/v1/machines")).json.items.map((m: { id: string }) => m.id);
  assert.deepEqual(all, [...all].sort());
  const first = (await api.call("GET", "/api/v1/machines?limit=3")).json;
  assert.deepEqual(
    first.items.map((m: { id: string }) => m.id),
    all.slice(0, 3),
  );
  assert.equal((await api.call("DELETE", `/api/v1/machines/${all[2]}`)).status, 204);
  const second = (await api.call("GET", `/api/v1/machines?limit=3&cursor=${first.nextCursor}`)).json;
  assert.deepEqual(
    second.items.map((m: { id: string }) => m.id),
    all.slice(3, 6),
  );
  const third = (await api.call("GET", `/api/v1/machines?limit=3&cursor=${second.nextCursor}`)).json;
  assert.deepEqual(
    third.items.map((m: { id: string }) => m.id),
    all.slice(6),
  );
  assert.equal(third.nextCursor, undefined);
  assert.equal((await api.call("GET", "/api/v1/machines?cursor=%21%21")).status, 400);
  for (const limit of ["0", "-1", "x", "1e3"]) {
    assert.equal((await api.call("GET", `/api/v1/machines?limit=${limit}`)).json.items.length, 6);
  }
  assert.equal((await api.call("GET", "/api/v1/machines?limit=1000")).status, 200);
});

test("an exactly full last page has no cursor", async () => {
  await using api = await start();
  for (const name of ["a", "b"]) await api.machine(name);
  assert.equal((await api.call("GET", "/api/v1/machines?limit=2")).json.nextCursor, undefined);
  assert.deepEqual((await api.call("GET", "/api/v1/machines?project=default&state=stopped")).json, {
    items: [],
  });
});

test("labels and states filter a list", async () => {
  await using api = await start();
  const a = await api.machine("a", { labels: { team: "build", tier: "1" } });
  await api.machine("b", { labels: { team: "web" } });
  await api.call("POST", `/api/v1/machines/${a.id}/stop`);
  const names = async (query: string): Promise<string[]> =>
    (await api.call("GET", `/api/v1/machines?${query}`)).json.items.map(
      (m: { spec: { name: string } }) => m.spec.name,
    );
  assert.deepEqual(await names("label=team=build"), ["a"]);
  assert.deepEqual((await names("label=team")).sort(), ["a", "b"]);
  assert.deepEqual(await names("label=team&label=tier=1"), ["a"]);
  assert.deepEqual(await names("label=team=x"), []);
  assert.deepEqual(await names("state=running"), ["b"]);
  assert.equal((await api.call("GET", "/api/v1/machines?state=odd")).status, 400);
});

test("a snapshot on demo: create 201, list one, restore 202, delete 204", async () => {
  await using api = await start();
  const { id } = await api.machine("a");
  const taken = await api.call("POST", `/api/v1/machines/${id}/snapshot`, { name: "before" });
  assert.equal(taken.status, 201);
  assert.equal(taken.json.state, "ready");
  assert.equal(taken.json.name, "before");
  const listed = await api.call("GET", `/api/v1/machines/${id}/snapshots`);
  assert.equal(listed.json.items.length, 1);
  const restored = await api.call("POST", `/api/v1/machines/${id}/snapshots/${taken.json.id}/restore`);
  assert.equal(restored.status, 202);
  assert.equal(restored.json.state, "restored");
  assert.match((await api.call("GET", `/api/v1/machines/${id}`)).json.message, /before/);
  assert.equal((await api.call("DELETE", `/api/v1/machines/${id}/snapshots/${taken.json.id}`)).status, 204);
  assert.equal((await api.call("DELETE", `/api/v1/machines/${id}/snapshots/${taken.json.id}`)).status, 404);
  const unnamed = await api.call("POST", `/api/v1/machines/${id}/snapshot`);
  assert.match(unnamed.json.name, /^snap-\d{8}-\d{6}$/);
  const types = (await api.call("GET", "/api/v1/events")).json.items.map((e: { type: string }) => e.type);
  assert.deepEqual(types.slice(1, 4), [
    "io.kryton.snapshot.deleted",
    "io.kryton.snapshot.restored",
    "io.kryton.snapshot.created",
  ]);
});

test("additive verbs: restart, forced stop, resize, rename, labels, expiry, clone", async () => {
  await using api = await start();
  const { id } = await api.machine("a");
  const path = `/api/v1/machines/${id}`;
  assert.equal((await api.call("POST", `${path}/restart`)).json.state, "running");
  assert.equal((await api.call("POST", `${path}/stop?force=true`)).json.state, "stopped");
  const resized = await api.call("PATCH", path, { compute: { cpu: 4 }, disk: { sizeGiB: 40 } });
  assert.equal(resized.status, 200, resized.text);
  assert.deepEqual(resized.json.spec.compute, { cpu: 4, memoryMiB: 1024 });
  assert.equal(resized.json.spec.disk.sizeGiB, 40);
  assert.equal((await api.call("PATCH", path, { disk: { sizeGiB: 20 } })).status, 400);
  const changed = await api.call("PATCH", path, { name: "b", labels: { x: "y" }, ttlMinutes: 5 });
  assert.equal(changed.json.spec.name, "b");
  assert.deepEqual(changed.json.spec.labels, { x: "y" });
  assert.ok(changed.json.expiresAt);
  assert.equal((await api.call("PATCH", path, { ttlMinutes: 0 })).json.expiresAt, undefined);
  await api.machine("a");
  assert.equal((await api.call("PATCH", path, { name: "a" })).status, 409);
  const clone = await api.call("POST", `${path}/clone`, { name: "c" });
  assert.equal(clone.status, 201, clone.text);
  assert.equal(clone.json.spec.compute.cpu, 4);
  assert.notEqual(clone.json.id, id);
  const operations = (await api.call("GET", `${path}/operations`)).json.items;
  assert.ok(operations.every((operation: { state: string }) => operation.state === "succeeded"));
  assert.equal(operations.at(-1).kind, "create");
});

test("delete removes a machine and frees its name; a second delete is 404", async () => {
  await using api = await start();
  const { id } = await api.machine("a", { ttlMinutes: 60 });
  assert.equal((await api.call("DELETE", `/api/v1/machines/${id}`)).status, 204);
  assert.equal((await api.call("DELETE", `/api/v1/machines/${id}`)).status, 404);
  await api.machine("a");
  const { kvs } = await api.store.range({ key: "/kryton/", end: "/kryton0", keysOnly: true });
  const left = kvs.map((kv) => kv.key.toString()).filter((storeKey) => storeKey.includes(id));
  // What remains of a machine is its history.
  assert.ok(
    left.every((storeKey) => storeKey.startsWith("/kryton/machine-operations/")),
    left.join(),
  );
});

test("a quota is never passed, whatever is asked for at the same time", async () => {
  await using api = await start({ env: { KRYTON_QUOTAS: '{"*":{"machines":5,"cpu":8}}' } });
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, i) => api.call("POST", "/api/v1/machines", machineBody(`m${i}`))),
  );
  assert.ok(answers.filter(({ status }) => status === 201).length <= 5);
  assert.ok(answers.every(({ status }) => [201, 403, 409].includes(status)));
  const { items } = (await api.call("GET", "/api/v1/machines")).json;
  assert.ok(items.length <= 5 && items.length > 0);
  const grown = await api.call("PATCH", `/api/v1/machines/${items[0].id}`, { compute: { cpu: 9 } });
  assert.equal(grown.status, 403);
  assert.equal(grown.json.error.code, "QUOTA_EXCEEDED");
});

test("a summary counts and sums", async () => {
  await using api = await start();
  const a = await api.machine("a");
  await api.machine("b", { compute: { cpu: 3, memoryMiB: 2048 } });
  await api.call("POST", `/api/v1/machines/${a.id}/stop`);
  assert.deepEqual((await api.call("GET", "/api/v1/summary")).json, {
    project: "default",
    provider: "demo",
    machines: 2,
    running: 1,
    stopped: 1,
    attention: 0,
    cpu: 4,
    memoryMiB: 3072,
    diskGiB: 40,
  });
  const quota = { machines: 5, cpu: 8 };
  await using limited = await start({ env: { KRYTON_QUOTAS: JSON.stringify({ default: quota }) } });
  assert.deepEqual((await limited.call("GET", "/api/v1/summary")).json.quota, quota);
});

test("an Idempotency-Key makes a repeat harmless", async () => {
  await using api = await start();
  const headers = { "idempotency-key": "k-1" };
  const first = await api.call("POST", "/api/v1/machines", machineBody("a"), headers);
  const second = await api.call("POST", "/api/v1/machines", machineBody("a"), headers);
  assert.equal(second.status, 201);
  assert.deepEqual(second.json, first.json);
  assert.equal(second.headers.get("idempotency-replayed"), "true");
  const other = await api.call("POST", "/api/v1/machines", machineBody("b"), headers);
  assert.equal(other.status, 422);
  assert.equal(other.json.error.code, "IDEMPOTENCY_MISMATCH");
  const taken = { "idempotency-key": "k-2" };
  assert.equal((await api.call("POST", "/api/v1/machines", machineBody("a"), taken)).status, 409);
  await api.call("DELETE", `/api/v1/machines/${first.json.id}`);
  const retried = await api.call("POST", "/api/v1/machines", machineBody("a"), taken);
  assert.equal(retried.status, 201, "a refusal is not remembered");
  const storm = await Promise.all(
    Array.from({ length: 8 }, () =>
      api.call("POST", "/api/v1/machines", machineBody("s"), { "idempotency-key": "k-3" }),
    ),
  );
  assert.ok(storm.every(({ status }) => status === 201 || status === 409));
  assert.equal(new Set(storm.filter(({ status }) => status === 201).map(({ json }) => json.id)).size, 1);
  assert.equal(
    (await api.call("POST", "/api/v1/machines", machineBody("z"), { "idempotency-key": "x".repeat(256) }))
      .status,
    400,
  );
});

test("a caller that disconnects does not stop the work", async () => {
  await using api = await start();
  const abort = new AbortController();
  const gone = fetch(`${api.url}/api/v1/machines`, {
    method: "POST",
    body: JSON.stringify(machineBody("left")),
    signal: abort.signal,
  });
  setImmediate(() => abort.abort());
  await gone.catch(() => undefined);
  const listed = async (): Promise<boolean | undefined> => {
    const { items } = (await api.call("GET", "/api/v1/machines")).json;
    return items.every((machine: { state: string }) => machine.state === "running") ? true : undefined;
  };
  await until(listed);
});

test("viewers read, operators write, each in their projects only", async () => {
  await using api = await start({
    env: { KRYTON_PROJECTS: "ci,qa" },
    keys: {
      reader: { role: "viewer", projects: ["ci"] },
      worker: { role: "operator", projects: ["ci"] },
      boss: { role: "admin", projects: ["*"] },
    },
  });
  const { id } = await api.machine("a", { project: "ci" }, bearer("worker"));
  assert.equal(
    (await api.call("GET", `/api/v1/machines/${id}?project=ci`, undefined, bearer("reader"))).status,
    200,
  );
  const refused = await api.call(
    "POST",
    `/api/v1/machines/${id}/stop?project=ci`,
    undefined,
    bearer("reader"),
  );
  assert.equal(refused.status, 403);
  assert.equal(refused.json.error.code, "FORBIDDEN");
  assert.equal(
    (await api.call("GET", "/api/v1/machines?project=qa", undefined, bearer("worker"))).status,
    403,
  );
  assert.equal((await api.call("GET", "/api/v1/machines?project=qa", undefined, bearer("boss"))).status, 200);
  await api.machine("b", { project: "qa" }, bearer("boss"));
  const seen = (await api.call("GET", "/api/v1/events", undefined, bearer("reader"))).json.items;
  assert.ok(seen.every((event: { data: { project: string } }) => event.data.project === "ci"));
  assert.deepEqual((await api.call("GET", "/api/v1/projects", undefined, bearer("reader"))).json.items, [
    "ci",
  ]);
  assert.deepEqual((await api.call("GET", "/api/v1/me", undefined, bearer("worker"))).json, {
    name: "worker",
    role: "operator",
    projects: ["ci"],
  });
});
