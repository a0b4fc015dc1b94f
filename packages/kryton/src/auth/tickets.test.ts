import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock, systemEdges, type Clock } from "@kontinuum/std";
import { prefixRange } from "@kontinuum/storage/client";
import { bearer, start, type Fixture } from "../kryton.fixture.ts";
import { keys } from "../store/keyspace.ts";
import { signMs } from "./ticket-keys.ts";

const token = bearer("k");

async function withMachine(options: Parameters<typeof start>[0] = {}): Promise<{ api: Fixture; id: string }> {
  const api = await start({ keys: { k: { role: "operator", projects: ["*"], name: "a|b" } }, ...options });
  const { id } = await api.machine("m", {}, token);
  return { api, id };
}

test("a ticket comes with a scoped, HttpOnly, Strict cookie and opens the console paths of its machine", async () => {
  const { api, id } = await withMachine();
  await using _ = api;
  const issued = await api.call(
    "POST",
    `/api/v1/machines/${id}/console-ticket?project=default`,
    undefined,
    token,
  );
  assert.equal(issued.status, 200);
  assert.match(issued.json.expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  const cookie = issued.headers.get("set-cookie") ?? "";
  assert.match(
    cookie,
    new RegExp(`^kryton_console=.+; Path=/api/v1/machines/${id}/; Max-Age=600; HttpOnly; SameSite=Strict$`),
  );
  const { ticket } = issued.json;
  const path = `/api/v1/machines/${id}/console`;
  // The demo provider has no console: 501 proves that the ticket was accepted.
  const byQuery = await api.call("GET", `${path}?console_ticket=${ticket}`);
  assert.equal(byQuery.status, 501);
  assert.ok(byQuery.headers.get("set-cookie"), "a query ticket becomes a cookie");
  const cookies = { cookie: `other=1; kryton_console=${ticket}` };
  assert.equal((await api.call("GET", `/api/v1/machines/${id}/vnc`, undefined, cookies)).status, 501);
  assert.equal((await api.call("GET", `${path}/app/x.js`, undefined, cookies)).status, 501);
  const html = await api.call("GET", path, undefined, { ...cookies, accept: "text/html" });
  assert.equal(html.status, 501);
  assert.equal(html.json.error.code, "UNSUPPORTED");
});

test("a ticket opens nothing else", async () => {
  const { api, id } = await withMachine();
  await using _ = api;
  const other = await api.machine("n", {}, token);
  const { ticket } = (await api.call("POST", `/api/v1/machines/${id}/console-ticket`, undefined, token)).json;
  const query = `console_ticket=${ticket}`;
  const refused: [string, string][] = [
    ["GET", `/api/v1/machines/${other.id}/console?${query}`],
    ["GET", `/api/v1/machines/${id}?${query}`],
    ["GET", `/api/v1/machines?${query}`],
    ["POST", `/api/v1/machines/${id}/console?${query}`],
    ["DELETE", `/api/v1/machines/${id}?${query}`],
    ["GET", `/api/v1/machines/${id}/console?console_ticket=${ticket}x`],
    ["GET", `/api/v1/machines/${id}/console?console_ticket=${ticket.slice(0, -2)}`],
    ["GET", `/api/v1/machines/${id}/console?console_ticket=a.b`],
  ];
  for (const [method, path] of refused)
    assert.equal((await api.call(method, path)).status, 401, `${method} ${path}`);
  const tampered = Buffer.from(
    Buffer.from(ticket.split(".")[0], "base64url").toString().replace("operator", "admin"),
  );
  const forged = `${tampered.toString("base64url")}.${ticket.split(".")[1]}`;
  assert.equal(
    (await api.call("GET", `/api/v1/machines/${id}/console?console_ticket=${forged}`)).status,
    401,
  );
  const bad = await api.call("GET", `/api/v1/machines/${id}/console?${query}`, undefined, bearer("wrong"));
  assert.equal(bad.status, 401, "with an Authorization header a ticket does not count");
  const unknown = await api.call("POST", "/api/v1/machines/nope/console-ticket", undefined, token);
  assert.equal(unknown.status, 404);
});

test("a ticket expires after exactly ten minutes", async () => {
  let offset = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + offset };
  const { api, id } = await withMachine({ edges: { ...systemEdges(), clock } });
  await using _ = api;
  const issued = await api.call("POST", `/api/v1/machines/${id}/console-ticket`, undefined, token);
  const path = `/api/v1/machines/${id}/console?console_ticket=${issued.json.ticket}`;
  const left = Date.parse(issued.json.expiresAt) - clock.now();
  assert.ok(left > 598_000 && left <= 600_000);
  offset = left - 300;
  assert.equal((await api.call("GET", path)).status, 501);
  offset = left + 1;
  const late = await api.call("GET", path);
  assert.equal(late.status, 401);
  assert.match(late.json.error.message, /expired/);
});

test("a replica on the same store accepts a ticket, another installation does not", async () => {
  const { api, id } = await withMachine();
  await using _ = api;
  const { ticket } = (await api.call("POST", `/api/v1/machines/${id}/console-ticket`, undefined, token)).json;
  const path = `/api/v1/machines/${id}/console?console_ticket=${ticket}`;
  await using replica = await start({
    store: api.store,
    sealer: api.sealer,
    keys: { k: { role: "operator", projects: ["*"], name: "a|b" } },
  });
  assert.equal((await replica.call("GET", path)).status, 501);
  await using stranger = await start({ keys: { k: { role: "operator", projects: ["*"], name: "a|b" } } });
  assert.equal((await stranger.call("GET", path)).status, 401);
});

test("cookies are Secure whenever browsers come over https", async () => {
  const { api, id } = await withMachine({ env: { KRYTON_PUBLIC_URL: "https://machines.example" } });
  await using _ = api;
  const issued = await api.call("POST", `/api/v1/machines/${id}/console-ticket`, undefined, token);
  assert.match(issued.headers.get("set-cookie") ?? "", /; Secure$/);
});

test("keys are replaced before they grow old, old tickets are good for their full time, old keys go", async () => {
  let offset = 0;
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + offset,
    monotonic: () => systemClock.monotonic() + offset,
  };
  const { api, id } = await withMachine({ edges: { ...systemEdges(), clock } });
  await using _ = api;
  const issue = async (): Promise<string> =>
    (await api.call("POST", `/api/v1/machines/${id}/console-ticket`, undefined, token)).json.ticket;
  const opens = async (ticket: string): Promise<boolean> =>
    (await api.call("GET", `/api/v1/machines/${id}/console?console_ticket=${ticket}`)).status === 501;
  const signer = (ticket: string): string | undefined =>
    Buffer.from(ticket.split(".")[0] ?? "", "base64url")
      .toString()
      .split("|")[1];
  const first = await issue();
  offset = signMs - 60_000;
  const late = await issue();
  offset = signMs + 60_000;
  const second = await issue();
  assert.equal(signer(late), signer(first));
  assert.notEqual(signer(second), signer(first));
  assert.ok((await opens(late)) && (await opens(second)));
  assert.equal(await opens(first), false);
  for (let period = 2; period < 6; period++) {
    offset = period * (signMs + 60_000);
    assert.ok(await opens(await issue()));
  }
  const { kvs } = await api.store.range(prefixRange(keys.ticketKey()));
  assert.ok(kvs.length <= 3, `${kvs.length} keys are kept`);
  for (const { value } of kvs) assert.match(JSON.parse(value.toString()).sealed, /^v1\./);
});
