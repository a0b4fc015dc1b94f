/**
 * Client certificates, front proxies, impersonation: who a connection may claim to be.
 */
import "reflect-metadata";
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import https from "node:https";
import { after, before, describe, test } from "node:test";
import * as x509 from "@peculiar/x509";
import { at } from "@kontinuum/std";
import { Cluster, selfSigned, userToken } from "./cluster.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

interface Authority {
  readonly pem: string;
  issue(subject: string): Promise<{ cert: string; key: string }>;
}

async function authority(name: string): Promise<Authority> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const times = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + 86_400_000) };
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    ...times,
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  return {
    pem: root.toString("pem"),
    async issue(subject) {
      const own = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
      const certificate = await x509.X509CertificateGenerator.create({
        subject,
        issuer: root.subject,
        ...times,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
        extensions: [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])],
      });
      const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", own.privateKey)).toString("base64");
      return {
        cert: certificate.toString("pem"),
        key: `-----BEGIN PRIVATE KEY-----\n${pkcs8.match(/.{1,64}/g)?.join("\n") ?? ""}\n-----END PRIVATE KEY-----\n`,
      };
    },
  };
}

describe("certificates and identities", () => {
  let c: Cluster;
  let clients: Authority;
  let proxies: Authority;
  let strangers: Authority;
  before(async () => {
    const tls = await selfSigned();
    clients = await authority("clients");
    proxies = await authority("proxies");
    strangers = await authority("strangers");
    c = await Cluster.start({
      listen: {
        port: 0,
        tls: { ...tls, clientCa: clients.pem, requestHeaderCa: proxies.pem, requestHeaderNames: ["front"] },
      },
    });
  });
  after(() => c.stop());

  /** Asks who one is, over a connection with a certificate. */
  function whoami(
    identity: { cert: string; key: string } | undefined,
    headers: Record<string, string | string[]> = {},
  ): Promise<{ status: number; body: unknown }> {
    return new Promise((resolve, reject) => {
      const request = https.request(
        `${c.server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews`,
        {
          method: "POST",
          ...identity,
          rejectUnauthorized: false,
          agent: false,
          headers: { "content-type": "application/json", ...headers },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }),
          );
        },
      );
      request.on("error", reject);
      request.end("{}");
    });
  }
  const user = (answer: { body: unknown }): unknown => at(answer.body, "status", "userInfo", "username");

  test("a certificate of the client authority names user and groups", async () => {
    const answer = await whoami(await clients.issue("CN=alice, O=devs, O=ops"));
    assert.equal(answer.status, 201);
    assert.equal(user(answer), "alice");
    assert.deepEqual(at(answer.body, "status", "userInfo", "groups"), [
      "devs",
      "ops",
      "system:authenticated",
    ]);
    assert.match(JSON.stringify(answer.body), /X509SHA256=[0-9a-f]{64}/);
  });

  test("a certificate of anybody else is 401, not anonymous", async () => {
    assert.equal((await whoami(await strangers.issue("CN=admin, O=system:masters"))).status, 401);
    assert.equal((await whoami(undefined)).status, 403);
  });

  test("only a front proxy may name a user in headers", async () => {
    const headers = {
      "x-remote-user": "bob",
      "x-remote-group": ["g1", "g2"],
      "x-remote-extra-scope%2fa": "x",
    };
    const proxied = await whoami(await proxies.issue("CN=front"), headers);
    assert.equal(user(proxied), "bob");
    assert.deepEqual(at(proxied.body, "status", "userInfo", "groups"), ["g1", "g2", "system:authenticated"]);
    assert.deepEqual(at(proxied.body, "status", "userInfo", "extra"), { "scope/a": ["x"] });
    // Without that certificate the headers mean nothing.
    assert.equal(user(await whoami(await clients.issue("CN=alice"), headers)), "alice");
    assert.equal((await whoami(undefined, headers)).status, 403);
    // Nor does another certificate of the proxies' authority.
    assert.equal((await whoami(await proxies.issue("CN=other"), headers)).status, 401);
    // The proxy itself is nobody.
    assert.equal((await whoami(await proxies.issue("CN=front, O=system:masters"))).status, 403);
  });

  test("impersonation needs the right to it", async () => {
    const as = (token: string | undefined, headers: Record<string, string>) =>
      c.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        body: {},
        headers,
        ...(token === undefined ? {} : { token }),
      });
    const refused = await as(userToken, { "impersonate-user": "x" });
    assert.equal(refused.status, 403);
    assert.match(
      refused.text,
      /users \\"x\\" is forbidden: User \\"u\\" cannot impersonate resource \\"users\\" in API group \\"\\" at the cluster scope/,
    );
    const allowed = await as(undefined, { "impersonate-user": "system:serviceaccount:ns:sa" });
    assert.deepEqual(allowed.at("status", "userInfo", "groups"), [
      "system:serviceaccounts",
      "system:serviceaccounts:ns",
      "system:authenticated",
    ]);
    assert.equal((await as(undefined, { "impersonate-group": "g" })).status, 400);
  });
});
