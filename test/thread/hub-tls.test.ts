/**
 * The hub's own TLS: made at first start, kept, trusted by zones and kubeconfigs, and by nobody who has not been told.
 *
 * Attacks: a server in between with another certificate gets no token of the zone; clear text is refused wherever a
 * network is in between.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import tls from "node:tls";
import { Client, secrets } from "@kontinuum/controller";
import { isCoded, stringAt, systemEdges } from "@kontinuum/std";
import { generateAuthority, issueServerCertificate } from "@kontinuum/talos";
import {
  addZone,
  parseConfig,
  readValues,
  startProcess,
  systemNamespace,
  type RunningProcess,
  type Values,
} from "../../packages/kontinuum/src/index.ts";
import { formatAuthSecret, rotated } from "../../packages/kontinuum/src/identity/auth-secret.ts";
import { generateIdentity } from "../../packages/kontinuum/src/identity/zone-identity.ts";
import { openHubStore } from "../../packages/kontinuum/src/relay/hub-store.ts";
import { findKubectl } from "../services/kubernetes-tools.ts";
import { run, skipUnless } from "../services/service.ts";

const kubectl = await findKubectl();

const edges = systemEdges();
let dir: string;
let hub: RunningProcess;

const configOf = (values: Partial<Values>) =>
  parseConfig(
    readValues({
      KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true",
      KONTINUUM_SERVER_ADDR: "127.0.0.1:0",
      KONTINUUM_SERVER_NAME: "hub",
      ...values,
    }),
  );
const startHub = (): Promise<RunningProcess> =>
  startProcess(configOf({ KONTINUUM_SERVER_STORAGE: `sqlite://${encodeURI(path.join(dir, "hub.db"))}` }), {
    edges,
  });

before(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), "kontinuum-tls-"));
  hub = await startHub();
});
after(async () => {
  await hub.stop();
  await rm(dir, { recursive: true, force: true });
});

const caOf = ({ authorities = "" }: RunningProcess): string => authorities;

/** Status and body of a GET. */
function get(url: string, ca?: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const client = url.startsWith("https") ? https : http;
    const request = client.get(url, { agent: false, ...(ca === undefined ? {} : { ca }) }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => (body += text));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.on("error", reject);
  });
}

test("the port speaks TLS with the hub's own certificate, and clear text; a stranger's trust is not enough", async () => {
  const { port } = hub.server;
  const secure = `https://127.0.0.1:${port}/readyz`;
  assert.equal((await get(secure, caOf(hub))).status, 200);
  assert.equal((await get(`http://127.0.0.1:${port}/readyz`)).status, 200);
  await assert.rejects(get(secure), { code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" });
  const other = await generateAuthority({ organization: "other", algorithm: "p256", edges });
  await assert.rejects(get(secure, other.crt));
});

test(
  "a kubeconfig of a hub without sign-in works with kubectl, however it was taken",
  { skip: skipUnless(kubectl) },
  async () => {
    const { port } = hub.server;
    for (const [base, ca] of [
      [`https://127.0.0.1:${port}`, caOf(hub)],
      [`http://127.0.0.1:${port}`, undefined],
    ] as const) {
      const file = path.join(dir, "kubeconfig.yaml");
      await writeFile(file, (await get(`${base}/app/registry/kubeconfig`, ca)).body);
      const { code, stdout, stderr } = await run(String(kubectl), [
        "--kubeconfig",
        file,
        "get",
        "namespaces",
        "-o",
        "name",
      ]);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /namespace\/kontinuum-system/);
    }
  },
);

test(
  "kubectl trusts the authority that every namespace publishes",
  { skip: skipUnless(kubectl) },
  async () => {
    const { port } = hub.server;
    const client = new Client(hub.server.transport(hub.server.loopback), { edges });
    const place = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    const published = stringAt(await client.request("GET", place), "data", "ca.crt");
    assert.equal(published, caOf(hub));
    const file = path.join(dir, "ca.crt");
    await writeFile(file, published);
    const base = ["--server", `https://127.0.0.1:${port}`, "--token", "unknown", "get", "--raw", "/readyz"];
    const trusting = await run(String(kubectl), ["--certificate-authority", file, ...base]);
    assert.match(trusting.stderr, /Unauthorized|must be logged in|provide credentials/);
    const strange = await run(String(kubectl), base);
    assert.match(strange.stderr, /certificate signed by unknown authority/);
  },
);

test("a zone that was told the authority gets in, and gives its token to nobody else", async () => {
  const client = new Client(hub.server.transport(hub.server.loopback), { edges });
  const zone = await addZone(client, edges.network, { region: "eu", zone: "a", talosAddress: "192.0.2.1" });
  const { certificatePem, privateKeyPem } = await generateIdentity("eu-a", edges);
  await client.create(secrets, {
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
  const identity = path.join(dir, "identity");
  await mkdir(identity);
  await writeFile(path.join(identity, "tls.key"), privateKeyPem, { mode: 0o600 });
  const read = async (port: number, values: Partial<Values> = {}): Promise<number> => {
    const config = configOf({ KONTINUUM_SERVER_IDENTITY_DIR: identity, ...values });
    const store = await openHubStore({ zone: "eu-a", endpoint: `127.0.0.1:${port}` }, config, edges);
    try {
      return (await store.range({ key: `/registry/kontinuum.sh/zones/${systemNamespace}/eu-a` })).kvs.length;
    } finally {
      await store.close();
    }
  };
  await assert.rejects(read(hub.server.port), "nobody told it of the authority");
  await writeFile(path.join(identity, "ca.crt"), caOf(hub));
  assert.equal(await read(hub.server.port), 1);

  const evil = await generateAuthority({ organization: "kontinuum", algorithm: "p256", edges });
  const pair = await issueServerCertificate({ ca: evil, edges, names: ["127.0.0.1"] });
  let heard = 0;
  const between = tls.createServer(
    { cert: pair.crt, key: pair.key, ALPNProtocols: ["h2"] },
    (socket) => void socket.on("data", (bytes) => (heard += bytes.length)),
  );
  between.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  const address = between.address();
  assert.ok(typeof address === "object" && address);
  await assert.rejects(read(address.port));
  assert.equal(heard, 0);
  // Named by the operator, a file is all that is trusted: the hub's own authority then counts for nothing.
  const named = path.join(dir, "named.crt");
  await writeFile(named, evil.crt);
  await assert.rejects(read(hub.server.port, { KONTINUUM_SERVER_GRPC_CA_FILE: named }));
  await new Promise((resolve) => between.close(resolve));
});

test("a restart keeps the authority; its key lies sealed, and every file is its owner's alone", async () => {
  const authorities = caOf(hub);
  await hub.stop();
  for (const name of (await readdir(dir)).filter((file) => file.startsWith("hub.db"))) {
    assert.equal((await stat(path.join(dir, name))).mode & 0o077, 0, name);
    assert.ok(!(await readFile(path.join(dir, name))).includes("BEGIN EC PRIVATE KEY"), name);
  }
  hub = await startHub();
  assert.equal(caOf(hub), authorities);
});

test("clear text between zone and hub is refused wherever a network is in between", async () => {
  const values = { KONTINUUM_SERVER_GRPC_INSECURE_PLAINTEXT: "true" };
  const refused = (error: unknown): boolean =>
    isCoded(error, "invalid_argument") && error.message.includes("KONTINUUM_SERVER_GRPC_INSECURE_PLAINTEXT");
  assert.throws(() => configOf({ ...values, KONTINUUM_SERVER_GRPC_ENDPOINT: "hub.example:443" }), refused);
  assert.throws(() => configOf({ ...values, KONTINUUM_SERVER_GRPC_ENDPOINT: "10.0.0.1:8080" }), refused);
  for (const local of ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"])
    configOf({ ...values, KONTINUUM_SERVER_GRPC_ENDPOINT: local });
  await assert.rejects(
    openHubStore({ zone: "eu-a", endpoint: "10.0.0.1:1" }, configOf(values), edges),
    refused,
  );
});

test("files that are no certificate, no key or no pair are refused by the variable's name", async () => {
  const ca = await generateAuthority({ algorithm: "p256", edges });
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(path.join(dir, name), text, { mode: 0o600 });
    return path.join(dir, name);
  };
  const good = await issueServerCertificate({ ca, edges, names: ["127.0.0.1"] });
  const crt = await file("good.crt", good.crt);
  const key = await file("good.key", good.key);
  const nonsense = await file("nonsense", "nonsense-secret");
  const other = await file("other.key", ca.key);
  const cases = [
    [nonsense, key, "KONTINUUM_SERVER_TLS_CERT_FILE"],
    [crt, nonsense, "KONTINUUM_SERVER_TLS_KEY_FILE"],
    [crt, other, "KONTINUUM_SERVER_TLS_KEY_FILE"],
    [path.join(dir, "absent"), key, "KONTINUUM_SERVER_TLS_CERT_FILE"],
  ] as const;
  for (const [certFile, keyFile, variable] of cases) {
    const config = configOf({
      KONTINUUM_SERVER_STORAGE: "memory://",
      KONTINUUM_SERVER_TLS_CERT_FILE: certFile,
      KONTINUUM_SERVER_TLS_KEY_FILE: keyFile,
    });
    await assert.rejects(startProcess(config, { edges }), (error) => {
      assert.ok(isCoded(error, "invalid_argument"));
      assert.ok(error.message.startsWith(variable), error.message);
      assert.ok(!error.message.includes("nonsense-secret"));
      return true;
    });
  }
});
