import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { start } from "../../packages/kryton/src/kryton.fixture.ts";
import { findProgram, run, skipUnless } from "../services/service.ts";

const openssl = await findProgram("openssl", "openssl");

/** Status of a request over TLS, or the code of the failure. */
function request(url: string, options: https.RequestOptions): Promise<number | string> {
  return new Promise((resolve) => {
    const outgoing = https.get(`${url}/healthz`, { agent: false, ...options }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    outgoing.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

test(
  "TLS serves 1.2 and above; with a client CA nobody comes in without its certificate",
  { skip: skipUnless(openssl) },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "kryton-tls-"));
    const file = (name: string): string => join(folder, name);
    const certificate = async (name: string): Promise<void> => {
      const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"];
      const kind = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
      ];
      const files = ["-keyout", file(`${name}.key`), "-out", file(`${name}.crt`)];
      const made = await run(String(openssl), [...kind, ...files, ...subject]);
      assert.equal(made.code, 0, made.stderr);
    };
    try {
      await Promise.all(["server", "client", "stranger"].map(certificate));
      const read = (name: string): Promise<Buffer> => readFile(file(name));
      const ca = await read("server.crt");
      const env = { KRYTON_TLS_CERT_FILE: file("server.crt"), KRYTON_TLS_KEY_FILE: file("server.key") };
      {
        await using api = await start({ env });
        assert.match(api.url, /^https:/);
        assert.equal(await request(api.url, { ca }), 200);
        assert.notEqual(await request(api.url, { ca, maxVersion: "TLSv1.1", minVersion: "TLSv1" }), 200);
      }
      await using mutual = await start({ env: { ...env, KRYTON_CLIENT_CA_FILE: file("client.crt") } });
      const as = async (name: string) => ({
        ca,
        cert: await read(`${name}.crt`),
        key: await read(`${name}.key`),
      });
      assert.equal(await request(mutual.url, await as("client")), 200);
      assert.notEqual(await request(mutual.url, { ca }), 200);
      assert.notEqual(await request(mutual.url, await as("stranger")), 200);
      await writeFile(file("empty"), "no certificate here\n");
      await assert.rejects(
        start({ env: { ...env, KRYTON_CLIENT_CA_FILE: file("empty") } }),
        /KRYTON_CLIENT_CA_FILE/,
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
