/**
 * Sealing and unsealing over real sockets, and the attacks the service must not answer.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import { isTalosError } from "../client/talos-error.ts";
import { generateAuthority, issueServerCertificate } from "../pki/certificates.ts";
import { connectKms, type KmsClient } from "./kms-client.ts";
import { parseKmsEndpoint } from "./kms-endpoint.ts";
import {
  developmentKmsService,
  kmsService,
  parseKmsRootKey,
  sealedBytes,
  type KmsCaller,
} from "./kms-service.ts";
import { serveKms, type KmsServer } from "./serve-kms.ts";

const edges = systemEdges();
const node = "4c4c4544-0039-5a10-8053-b2c04f334232";
const other = "4c4c4544-0039-5a10-8053-b2c04f334233";
const stranger = "00000000-0000-0000-0000-000000000001";
const secret = Buffer.alloc(32, 7);
const rootKey = Buffer.alloc(32, 1);
const refusedAs = (reason: string) => (error: unknown) => isTalosError(error) && error.reason === reason;

describe("over TLS", () => {
  const callers: KmsCaller[] = [];
  let server: KmsServer;
  let client: KmsClient;
  let ca: string;
  before(async () => {
    const authority = await generateAuthority({ organization: "kms", algorithm: "ed25519", edges });
    const { crt, key } = await issueServerCertificate({ ca: authority, edges, names: ["127.0.0.1"] });
    ca = authority.crt;
    server = await serveKms({
      service: kmsService({
        rootKey,
        allow: (caller) => {
          callers.push(caller);
          return caller.nodeUuid !== stranger && caller.address === "127.0.0.1";
        },
        edges,
        delayMs: 30,
      }),
      address: "127.0.0.1",
      port: 0,
      tls: { cert: crt, key },
    });
    client = connectKms({ endpoint: `https://127.0.0.1:${server.port}`, ca, edges });
  });
  after(async () => {
    client.close();
    await server.close();
  });

  test("what is sealed comes back, for the same node only", async () => {
    const sealed = await client.seal(node.toUpperCase(), secret);
    assert.equal(sealed.length, sealedBytes);
    assert.deepEqual(Buffer.from(await client.unseal(node, sealed)), secret);
    assert.deepEqual(callers.at(-1), { nodeUuid: node, address: "127.0.0.1" });
    const again = await client.seal(node, secret);
    assert.notDeepEqual(Buffer.from(again), Buffer.from(sealed));
  });

  test("another node, an unknown node and a changed blob get random bytes, never an error", async () => {
    const sealed = Buffer.from(await client.seal(node, secret));
    const changed = Buffer.from(sealed);
    changed[20] = (changed[20] ?? 0) ^ 1;
    for (const [uuid, blob] of [
      [other, sealed],
      [stranger, sealed],
      [node, changed],
      [node, Buffer.alloc(60)],
    ] as const) {
      const first = Buffer.from(await client.unseal(uuid, blob));
      const second = Buffer.from(await client.unseal(uuid, blob));
      assert.equal(first.length, 32);
      assert.notDeepEqual(first, secret);
      assert.notDeepEqual(first, second);
    }
  });

  test("right and wrong answers take equally long", async () => {
    const sealed = Buffer.from(await client.seal(node, secret));
    const timed = async (uuid: string): Promise<number> => {
      const started = edges.clock.monotonic();
      await client.unseal(uuid, sealed);
      return edges.clock.monotonic() - started;
    };
    for (const uuid of [node, other, stranger]) assert((await timed(uuid)) >= 29);
  });

  test("wrong sizes and no UUID are refused by name", async () => {
    for (const size of [0, 31, 33]) {
      await assert.rejects(client.seal(node, Buffer.alloc(size)), refusedAs("refused"));
    }
    await assert.rejects(client.unseal(node, Buffer.alloc(59)), refusedAs("refused"));
    await assert.rejects(client.seal("node-1", secret), refusedAs("refused"));
    await assert.rejects(client.seal(stranger, secret), refusedAs("denied"));
  });

  test("a node without the right CA does not talk to it", async () => {
    const stray = connectKms({ endpoint: `https://127.0.0.1:${server.port}`, edges });
    await assert.rejects(stray.seal(node, secret), refusedAs("untrusted_certificate"));
    stray.close();
  });
});

test("a restart with the same root key unseals; a new root key does so with the old one beside it", async () => {
  const run = async <T>(
    keys: { rootKey: Uint8Array; previousRootKeys?: Uint8Array[] },
    use: (client: KmsClient) => Promise<T>,
  ): Promise<T> => {
    const server = await serveKms({
      service: kmsService({ ...keys, allow: () => true, edges, delayMs: 0 }),
      port: 0,
    });
    const client = connectKms({ endpoint: `127.0.0.1:${server.port}`, edges });
    try {
      return await use(client);
    } finally {
      client.close();
      await server.close();
    }
  };
  const sealed = await run({ rootKey }, (client) => client.seal(node, secret));
  const unseal = (client: KmsClient): Promise<Uint8Array> => client.unseal(node, sealed);
  assert.deepEqual(Buffer.from(await run({ rootKey }, unseal)), secret);
  const next = Buffer.alloc(32, 2);
  assert.notDeepEqual(Buffer.from(await run({ rootKey: next }, unseal)), secret);
  assert.deepEqual(Buffer.from(await run({ rootKey: next, previousRootKeys: [rootKey] }, unseal)), secret);
});

test("the development service serves loopback only and forgets at its end", async () => {
  const service = developmentKmsService(edges);
  await assert.rejects(serveKms({ service, address: "0.0.0.0", port: 0 }), (error) =>
    isCoded(error, "failed_precondition"),
  );
  const server = await serveKms({ service, port: 0 });
  const client = connectKms({ endpoint: `grpc://127.0.0.1:${server.port}`, edges });
  assert.deepEqual(Buffer.from(await client.unseal(node, await client.seal(node, secret))), secret);
  client.close();
  await server.close();
});

test("a permission check that fails is a refusal", async () => {
  const allow = (): never => {
    throw new Error("store is down");
  };
  const server = await serveKms({ service: kmsService({ rootKey, allow, edges, delayMs: 0 }), port: 0 });
  const client = connectKms({ endpoint: `127.0.0.1:${server.port}`, edges });
  await assert.rejects(client.seal(node, secret), refusedAs("denied"));
  client.close();
  await server.close();
});

test("root keys and endpoints are read strictly", () => {
  assert.deepEqual(Buffer.from(parseKmsRootKey(`${rootKey.toString("base64")}\n`)), rootKey);
  assert.deepEqual(Buffer.from(parseKmsRootKey(rootKey.toString("hex"))), rootKey);
  for (const bad of ["", "short", rootKey.toString("base64").slice(4), "!".repeat(44)]) {
    assert.throws(
      () => parseKmsRootKey(bad),
      (error) => isCoded(error, "invalid_argument"),
    );
  }
  assert.deepEqual(parseKmsEndpoint("kms.example:4050"), { host: "kms.example", port: 4050, secure: false });
  assert.deepEqual(parseKmsEndpoint("https://kms.example"), { host: "kms.example", port: 443, secure: true });
  assert.deepEqual(parseKmsEndpoint("grpc://[2001:db8::1]:99"), {
    host: "2001:db8::1",
    port: 99,
    secure: false,
  });
  for (const bad of ["", "https://", "https://a:0", "https://u@a", "a b"]) {
    assert.throws(
      () => parseKmsEndpoint(bad),
      (error) => isCoded(error, "invalid_argument"),
    );
  }
});
