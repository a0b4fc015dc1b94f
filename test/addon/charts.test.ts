/**
 * Fetching charts over TLS from a Helm repository and an OCI registry, with archives the real helm made; and what a
 * hostile one may try.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { promisify } from "node:util";
import { isCoded, systemEdges } from "@kontinuum/std";
import { generateAuthority, issueServerCertificate } from "@kontinuum/talos";
import { pinFor } from "../../packages/kontinuum/src/domain/addon/addon.pin.ts";
import { ChartFetcher } from "../../packages/kontinuum/src/domain/addon/chart-fetch.ts";
import { openHelm } from "../../packages/kontinuum/src/domain/addon/helm.ts";
import { addon } from "../../packages/kontinuum/src/domain/objects.fixture.ts";
import { findHelm } from "../services/kubernetes-tools.ts";

const program = await findHelm();
const skip = typeof program === "string" ? false : program.missing;
const charts = path.resolve(import.meta.dirname, "../../packages/kontinuum/charts");
const edges = systemEdges();
const { signal } = new AbortController();
const version = "1.21.1";
let dir: string;
let ca: string;
let archive: Buffer;
let server: https.Server;
let base: string;
let host: string;
/** What the server does, replaced by a test. */
let answer: (request: IncomingMessage, response: ServerResponse) => void;
const seen: string[] = [];

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const index = (digest = digestOf(archive), url = `files/cert-manager-v${version}.tgz`): string =>
  `apiVersion: v1\nentries:\n  cert-manager:\n  - name: cert-manager\n    version: v${version}\n    digest: ${digest}\n    urls:\n    - ${url}\n`;

before(async () => {
  if (typeof program !== "string") return;
  dir = await mkdtemp(path.join(os.tmpdir(), "kontinuum-charts-"));
  await promisify(execFile)(
    program,
    ["package", "--destination", dir, "--", path.join(charts, "cert-manager")],
    {
      env: { HOME: dir, PATH: "/usr/bin:/bin" },
    },
  );
  const packaged = (await readdir(dir)).find((name) => name.endsWith(".tgz")) ?? "";
  archive = await readFile(path.join(dir, packaged));
  const authority = await generateAuthority({ organization: "charts", algorithm: "p256", edges });
  ca = authority.crt;
  const { crt, key } = await issueServerCertificate({
    ca: authority,
    edges,
    names: ["127.0.0.1", "127.0.0.2"],
  });
  server = https.createServer({ cert: crt, key }, (request, response) => {
    seen.push(`${request.socket.localAddress} ${request.url}`);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address);
  host = `127.0.0.1:${address.port}`;
  base = `https://${host}`;
});
after(async () => {
  if (skip) return;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(dir, { recursive: true, force: true });
});
beforeEach(() => {
  seen.length = 0;
  if (!skip) answer = repository(index(), archive);
});

const repository =
  (text: string, bytes: Uint8Array): typeof answer =>
  ({ url }, response) => {
    if (url === "/repo/index.yaml") response.end(text);
    else if (url === `/repo/files/cert-manager-v${version}.tgz`) response.end(bytes);
    else response.writeHead(404).end();
  };

const fetcher = (folder = path.join(dir, "fetched"), allow = ["127.0.0.1"]): ChartFetcher =>
  new ChartFetcher({ edges, folder: () => Promise.resolve(folder), allow, ca });
const chart = (): { repo: string; name: string; version: string } => ({
  repo: `${base}/repo`,
  name: "cert-manager",
  version: `v${version}`,
});

test("a repository's chart is fetched once, privately, and helm renders it", { skip }, async () => {
  const one = fetcher();
  const fetched = await one.fetch(chart(), undefined, signal);
  assert.equal(fetched.digest, `sha256:${digestOf(archive)}`);
  assert.equal((await stat(fetched.file)).mode & 0o077, 0);
  const pin = pinFor(addon("x"), fetched);
  assert.deepEqual(await one.fetch(chart(), pin, signal), fetched);
  assert.equal(seen.length, 2);
  const helm = await openHelm(typeof program === "string" ? program : "", "");
  try {
    const source = { chart: fetched.file, digest: fetched.digest };
    const call = { timeoutMs: 60_000, signal };
    const text = await helm.template({ release: "cm", namespace: "apps" }, source, {}, "v1.35.0", call);
    assert.match(text, /kind: Deployment/);
  } finally {
    await helm.close();
  }
});

test(
  "a registry's chart is fetched with the token the registry asks for, and no credential leaves its host",
  { skip },
  async () => {
    const digest = digestOf(archive);
    const layers = [
      {
        mediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
        digest: `sha256:${digest}`,
        size: archive.length,
      },
    ];
    const leaked: unknown[] = [];
    answer = (request, response) => {
      const { url = "", headers } = request;
      if (url.startsWith("/token?")) {
        assert.match(url, /scope=repository%3Acharts%2Fcert-manager%3Apull/);
        return void response.end(JSON.stringify({ token: "anonymous-token" }));
      }
      if (url === "/elsewhere/blob") {
        leaked.push(headers.authorization);
        return void response.end(archive);
      }
      if (headers.authorization !== "Bearer anonymous-token") {
        const challenge = `Bearer realm="${base}/token",service="charts",scope="repository:charts/cert-manager:pull"`;
        return void response.writeHead(401, { "www-authenticate": challenge }).end();
      }
      if (url === `/v2/charts/cert-manager/manifests/v${version}`)
        response.end(JSON.stringify({ schemaVersion: 2, layers }));
      else if (url === `/v2/charts/cert-manager/blobs/sha256:${digest}`)
        response.writeHead(307, { location: `https://127.0.0.2:${new URL(base).port}/elsewhere/blob` }).end();
      else if (url === "/v2/charts/cert-manager/tags/list")
        response.end(JSON.stringify({ tags: ["v1.9.0", `v${version}`] }));
      else response.writeHead(404).end();
    };
    const one = fetcher(undefined, ["127.0.0.1", "127.0.0.2"]);
    const name = `oci://${host}/charts/cert-manager`;
    for (const wanted of [`v${version}`, undefined]) {
      const fetched = await one.fetch(
        { name, ...(wanted === undefined ? {} : { version: wanted }) },
        undefined,
        signal,
      );
      assert.equal(fetched.digest, `sha256:${digest}`);
      assert.equal(fetched.reference, `${name} v${version}`);
    }
    assert.deepEqual([...new Set(leaked)], [undefined]);
  },
);

test("another archive under a known version is refused until somebody accepts it", { skip }, async () => {
  const pinned = pinFor(addon("x"), await fetcher().fetch(chart(), undefined, signal));
  const other = Buffer.concat([archive, Buffer.from("x")]);
  answer = repository(index(digestOf(other)), other);
  const changed = await fetcher().fetch(chart(), pinned, signal);
  const holder = (annotations: Record<string, string>) => addon("x", {}, { metadata: { annotations } });
  assert.throws(
    () => pinFor(holder({ "kontinuum.sh/chart-digest": pinned }), changed),
    (error) =>
      isCoded(error, "failed_precondition") &&
      /remove the annotation kontinuum\.sh\/chart-digest/.test(error.message),
  );
  assert.ok(pinFor(holder({}), changed).startsWith(changed.digest));
  const newer = { ...changed, reference: `${base}/repo cert-manager v9` };
  assert.ok(pinFor(holder({ "kontinuum.sh/chart-digest": pinned }), newer).endsWith(" v9"));
});

test(
  "an archive that is not what its index names, or that does not come, is not kept",
  { skip },
  async () => {
    const folder = path.join(dir, "refused");
    const one = fetcher(folder);
    const cases: [typeof answer, string][] = [
      [repository(index("0".repeat(64)), archive), "data_loss"],
      [repository("entries:\n", archive), "not_found"],
      [
        ({ url }, response) => void response.writeHead(url === "/repo/index.yaml" ? 500 : 200).end(),
        "unavailable",
      ],
      [(_request, response) => void response.writeHead(401).end(), "not_found"],
    ];
    for (const [how, code] of cases) {
      answer = how;
      await assert.rejects(one.fetch(chart(), undefined, signal), (error) => {
        assert.ok(isCoded(error));
        assert.equal(error.code, code, error.message);
        return true;
      });
    }
    await assert.rejects(stat(folder), { code: "ENOENT" });
  },
);

test("no index leads to an address that is not for charts", { skip }, async () => {
  const port = new URL(base).port;
  for (const url of [
    `https://127.0.0.2:${port}/secret`,
    "https://169.254.169.254/latest",
    "http://192.0.2.1/x.tgz",
  ]) {
    answer = repository(index(undefined, url), archive);
    await assert.rejects(
      fetcher().fetch(chart(), undefined, signal),
      (error) => isCoded(error, "permission_denied") || isCoded(error, "invalid_argument"),
    );
    answer = (_request, response) => void response.writeHead(302, { location: url }).end();
    await assert.rejects(fetcher().fetch(chart(), undefined, signal));
  }
  await assert.rejects(fetcher(undefined, []).fetch(chart(), undefined, signal), (error) =>
    isCoded(error, "permission_denied"),
  );
  assert.ok(
    seen.every((line) => !line.includes("127.0.0.2")),
    seen.join("\n"),
  );
});
