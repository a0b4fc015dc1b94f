/**
 * A zone's own server on its hub's store, over TLS: what it sees, what it may write, and how it loses access.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { Client, namespaces, secrets } from "@kontinuum/controller";
import { createLog, isCoded, systemClock, systemEdges, type Edges } from "@kontinuum/std";
import { generateAuthority, issueServerCertificate, openSslPem } from "@kontinuum/talos";
import {
  addZone,
  kontinuumKind,
  parseConfig,
  readValues,
  startProcess,
  systemNamespace,
  zoneKind,
  type RunningProcess,
  type Values,
  type Zone,
} from "../../packages/kontinuum/src/index.ts";
import { openHubStore } from "../../packages/kontinuum/src/relay/hub-store.ts";
import { formatAuthSecret, rotated } from "../../packages/kontinuum/src/identity/auth-secret.ts";
import { generateIdentity } from "../../packages/kontinuum/src/identity/zone-identity.ts";

const edges = systemEdges();
let dir: string;
let hub: RunningProcess;
let hubValues: Partial<Values>;
let zone: Zone;
let hubClient: Client;
const running: RunningProcess[] = [];

const start = async (values: Partial<Values>, overrides: Partial<Edges> = {}): Promise<RunningProcess> => {
  const config = parseConfig(
    readValues({
      KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true",
      KONTINUUM_SERVER_ADDR: "127.0.0.1:0",
      ...values,
    }),
  );
  const one = await startProcess(config, {
    edges: { ...edges, ...overrides },
    timings: { heartbeatMs: 200 },
  });
  running.push(one);
  return one;
};

before(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), "kontinuum-join-"));
  const ca = await generateAuthority({ organization: "test", algorithm: "p256", edges });
  const server = await issueServerCertificate({ ca, edges, names: ["127.0.0.1"] });
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(path.join(dir, name), text, { mode: 0o600 });
    return path.join(dir, name);
  };
  await file("ca.crt", ca.crt);
  hubValues = {
    KONTINUUM_SERVER_NAME: "hub",
    KONTINUUM_SERVER_STORAGE: `sqlite://${encodeURI(path.join(dir, "hub.db"))}`,
    KONTINUUM_SERVER_TLS_CERT_FILE: await file("hub.crt", server.crt),
    KONTINUUM_SERVER_TLS_KEY_FILE: await file("hub.key", openSslPem(server.key)),
  };
  hub = await start(hubValues);
  hubClient = new Client(hub.server.transport(hub.server.loopback), { edges });
  zone = await addZone(hubClient, edges.network, { region: "eu", zone: "a", talosAddress: "192.0.2.1" });
  await addZone(hubClient, edges.network, { region: "eu", zone: "b", talosAddress: "192.0.2.2" });
  const { certificatePem, privateKeyPem } = await generateIdentity("eu-a", edges);
  await file("tls.key", privateKeyPem);
  await hubClient.create(secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      namespace: systemNamespace,
      name: "eu-a-etcd-auth",
      ownerReferences: [
        {
          apiVersion: "kontinuum.sh/v1alpha2",
          kind: "Zone",
          name: "eu-a",
          uid: zone.metadata.uid ?? "",
          controller: true,
        },
      ],
    },
    data: formatAuthSecret(rotated(undefined, certificatePem, edges.clock.now())),
  });
});
after(async () => {
  for (const one of running.reverse()) await one.stop();
  await rm(dir, { recursive: true, force: true });
});

const zoneValues = (overrides: Partial<Values> = {}): Partial<Values> => ({
  KONTINUUM_SERVER_NAME: "pod-1",
  KONTINUUM_SERVER_REGION: "eu",
  KONTINUUM_SERVER_ZONE: "a",
  KONTINUUM_SERVER_STORAGE: `grpc://eu-a@127.0.0.1:${hub.server.port}`,
  KONTINUUM_SERVER_IDENTITY_DIR: dir,
  ...overrides,
});

async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const until = systemClock.monotonic() + 20_000;
  while (!(await holds())) {
    assert.ok(systemClock.monotonic() < until, what);
    await systemClock.sleep(50);
  }
}

const heartbeat = async (): Promise<string | undefined> =>
  (await hubClient.find(kontinuumKind.resource, { namespace: systemNamespace, name: "pod-1" }))?.status
    ?.lastHeartbeatTime;

test(
  "a stolen zone writes past its server: nothing the hub could not read again is stored",
  { timeout: 60_000 },
  async () => {
    const config = parseConfig(readValues({ KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true", ...zoneValues() }));
    const store = await openHubStore(
      { zone: "eu-a", endpoint: `127.0.0.1:${hub.server.port}` },
      config,
      edges,
    );
    try {
      const key = `/registry/kontinuum.sh/zones/${systemNamespace}/eu-a`;
      const text = (await store.range({ key })).kvs[0]?.value.toString("utf8") ?? "";
      const put = (value: string): Promise<unknown> =>
        store.txn({ success: [{ type: "put", key, value: Buffer.from(value) }] });
      const end = (status: string): string => text.replace(/(,"status":.*)?\}$/s, `,"status":${status}}`);
      for (const value of [
        end(`${'{"x":'.repeat(600)}1${"}".repeat(600)}`),
        end('{"conditions":[1]}'),
        text.replace(/^\{/, '{"kind":"Evil",'),
        text.replace('"metadata":{', '"metadata":{"managedFields":7,'),
        text.replace('"metadata":{', '"metadata":{"labels":[],'),
      ]) {
        assert.notEqual(value, text);
        await assert.rejects(put(value), (error) => isCoded(error, "permission_denied"), value.slice(0, 200));
      }
      await put(end('{"conditions":[]}'));
    } finally {
      await store.close();
    }
    const { items } = await hubClient.list(zoneKind.resource);
    assert.deepEqual(items.map(({ metadata }) => metadata.name).sort(), ["eu-a", "eu-b"]);
    // The hub's own controller may have written its conditions since: it can, and that is the point.
    assert.ok(items.every(({ metadata, status }) => metadata.name !== "eu-a" || status !== undefined));
  },
);

test(
  "joins, sees what is its own, and may write nothing else; a revoked key ends it",
  { timeout: 60_000 },
  async () => {
    let failedBeats = 0;
    const log = createLog({
      level: "warn",
      format: "json",
      destination: { write: (line) => (failedBeats += Number(line.includes("the heartbeat failed"))) },
    });
    const worker = await start(zoneValues(), { log });
    await eventually("it reports itself on the hub", async () => (await heartbeat()) !== undefined);
    const client = new Client(worker.server.transport(worker.server.loopback), { edges });
    const seen = (await client.list(zoneKind.resource)).items.map(({ metadata }) => metadata.name);
    assert.deepEqual(seen, ["eu-a"]);
    assert.deepEqual(
      (await client.list(kontinuumKind.resource)).items.map(({ metadata }) => metadata.name),
      ["pod-1"],
    );
    assert.deepEqual(
      (await client.list(secrets)).items
        .map(({ metadata }) => metadata.name)
        .filter((name) => !name.startsWith("kontinuum-pod-1")),
      [],
    );
    const refused = (error: unknown): boolean => isCoded(error, "permission_denied");
    await assert.rejects(
      client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: "mine" } }),
      refused,
    );
    const own = await client.get(zoneKind.resource, { namespace: systemNamespace, name: "eu-a" });
    await assert.rejects(
      client.update(zoneKind.resource, { ...own, spec: { ...own.spec, domain: "evil.example" } }),
      refused,
    );

    // The hub goes and comes back: the zone's server lives through it and reports itself again.
    const { port } = hub.server;
    await running.splice(running.indexOf(hub), 1)[0]?.stop();
    hub = await start({ ...hubValues, KONTINUUM_SERVER_ADDR: `127.0.0.1:${port}` });
    hubClient = new Client(hub.server.transport(hub.server.loopback), { edges });
    const beforeRestart = await heartbeat();
    await eventually(
      "it reports itself after the hub's restart",
      async () => (await heartbeat()) !== beforeRestart,
    );

    await hubClient.delete(secrets, { namespace: systemNamespace, name: "eu-a-etcd-auth" });
    const failsOnceMore = (): Promise<void> => {
      const before = failedBeats;
      return eventually("a heartbeat is refused", () => Promise.resolve(failedBeats > before));
    };
    await failsOnceMore();
    const last = await heartbeat();
    await failsOnceMore();
    await failsOnceMore();
    assert.equal(await heartbeat(), last, "no heartbeat gets through any more");
  },
);

test(
  "a zone that does not trust the hub, or whose key is unknown, does not start",
  { timeout: 60_000 },
  async () => {
    const empty = await mkdtemp(path.join(os.tmpdir(), "kontinuum-join-"));
    try {
      const { privateKeyPem } = await generateIdentity("eu-a", edges);
      await writeFile(path.join(empty, "tls.key"), privateKeyPem);
      await assert.rejects(
        start(zoneValues({ KONTINUUM_SERVER_IDENTITY_DIR: empty })),
        /certificate of the hub at .* is not trusted/,
      );
      await assert.rejects(
        start(
          zoneValues({
            KONTINUUM_SERVER_IDENTITY_DIR: empty,
            KONTINUUM_SERVER_GRPC_CA_FILE: path.join(dir, "ca.crt"),
          }),
        ),
        (error) => isCoded(error, "unauthenticated"),
      );
      await assert.rejects(
        start(zoneValues({ KONTINUUM_SERVER_STORAGE: "memory://" })),
        /a zone has no store of its own/,
      );
    } finally {
      await rm(empty, { recursive: true, force: true });
    }
  },
);
