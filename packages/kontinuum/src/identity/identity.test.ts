/**
 * Zone identity: keys and certificates, the hub's Secret, tokens and every way a token can be wrong.
 */
import assert from "node:assert/strict";
import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { test } from "node:test";
import { isCoded, SimulatedClock, systemRandom, type ErrorCode } from "@kontinuum/std";
import { SignJWT } from "jose";
import {
  acceptedCertificates,
  formatAuthSecret,
  parseAuthSecret,
  rotated,
  rotationDue,
} from "./auth-secret.ts";
import { generateIdentity, isPair, parseIdentityCertificate, thumbprint } from "./zone-identity.ts";
import { claimedZone, signZoneToken, tokenAudience, verifyZoneToken } from "./zone-token.ts";

const clock = new SimulatedClock();
const edges = { clock, random: systemRandom };
const refuses = (promise: Promise<unknown>, code: ErrorCode, text: RegExp): Promise<void> =>
  assert.rejects(promise, (error) => isCoded(error, code) && text.test(error.message));

test("an identity is a matching pair in the contract's shape, and two are distinct", async () => {
  const [a, b] = await Promise.all([
    generateIdentity("eu-hel01", edges),
    generateIdentity("eu-hel01", edges),
  ]);
  const certificate = parseIdentityCertificate(a.certificatePem);
  assert.equal(certificate.subject, "CN=eu-hel01");
  assert.ok(certificate.verify(certificate.publicKey), "self-signed");
  assert.ok(certificate.validToDate.getUTCFullYear() - new Date(clock.now()).getUTCFullYear() >= 99);
  assert.match(a.privateKeyPem, /^-----BEGIN PRIVATE KEY-----/);
  assert.ok(isPair(createPrivateKey(a.privateKeyPem), a.certificatePem));
  assert.ok(!isPair(createPrivateKey(b.privateKeyPem), a.certificatePem));
  assert.match(thumbprint(a.certificatePem), /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  assert.equal(thumbprint(a.certificatePem), thumbprint(a.certificatePem));
  assert.notEqual(thumbprint(a.certificatePem), thumbprint(b.certificatePem));
});

test("a certificate that is none, or of another key type, is refused", () => {
  assert.throws(
    () => parseIdentityCertificate("nothing"),
    (error) => isCoded(error, "invalid_argument"),
  );
});

test("the Secret survives a round trip; missing and malformed entries are named", async () => {
  const { certificatePem } = await generateIdentity("z", edges);
  const auth = rotated(undefined, certificatePem, clock.now());
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "z-etcd-auth" },
    data: formatAuthSecret(auth),
  };
  assert.deepEqual(parseAuthSecret(secret), auth);
  for (const key of Object.keys(secret.data)) {
    const { [key]: _, ...rest } = secret.data;
    assert.throws(
      () => parseAuthSecret({ ...secret, data: rest }),
      (error) => isCoded(error, "invalid_argument") && error.message.includes(key),
    );
    assert.throws(
      () => parseAuthSecret({ ...secret, data: { ...secret.data, [key]: "AAAA" } }),
      (error) => isCoded(error, "invalid_argument"),
    );
  }
});

test("a key stays valid until it is replaced, the previous one for five minutes more", async () => {
  const [first, second] = await Promise.all([generateIdentity("z", edges), generateIdentity("z", edges)]);
  const start = clock.now();
  const week = 7 * 24 * 3_600_000;
  const auth = rotated(undefined, first.certificatePem, start);
  assert.deepEqual(acceptedCertificates(auth, start + week), [first.certificatePem]);
  assert.ok(!rotationDue(auth, start + 6 * 3_600_000 - 1));
  assert.ok(rotationDue(auth, start + 6 * 3_600_000));
  const next = rotated(auth, second.certificatePem, start + week);
  assert.deepEqual(acceptedCertificates(next, start + week + 299_999), [
    second.certificatePem,
    first.certificatePem,
  ]);
  assert.deepEqual(acceptedCertificates(next, start + week + 300_000), [second.certificatePem]);
});

test("a token verifies with any current key, and only for as long as it lives", async () => {
  const [a, b] = [generateKeyPairSync("ed25519"), generateKeyPairSync("ed25519")];
  const now = new SimulatedClock();
  const token = await signZoneToken("eu-hel01", b.privateKey, now);
  assert.equal(claimedZone(token), "eu-hel01");
  const verified = await verifyZoneToken(token, [a.publicKey, b.publicKey], now);
  assert.deepEqual([verified.zone, verified.keyIndex], ["eu-hel01", 1]);
  await refuses(verifyZoneToken(token, [a.publicKey], now), "unauthenticated", /no current key/);
  await now.advance(309_000);
  await verifyZoneToken(token, [b.publicKey], now);
  await now.advance(2_000);
  await refuses(verifyZoneToken(token, [b.publicKey], now), "unauthenticated", /expired/);
});

test("tokens with wrong claims are refused", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const now = new SimulatedClock();
  const seconds = Math.floor(now.now() / 1000);
  const make = (
    claims: Record<string, unknown>,
    key: KeyObject | Uint8Array = privateKey,
    alg = "EdDSA",
  ): Promise<string> =>
    new SignJWT({ iss: "z", sub: "z", aud: tokenAudience, iat: seconds, exp: seconds + 300, ...claims })
      .setProtectedHeader({ alg })
      .sign(key);
  await verifyZoneToken(await make({}), [publicKey], now);
  const wrong: Record<string, unknown>[] = [
    { aud: "other" },
    { sub: "y" },
    { iss: "y" },
    { exp: undefined },
    { iat: undefined },
    { exp: seconds + 301 },
    { iat: seconds + 3600, exp: seconds + 3700 },
    { iss: "a/../b", sub: "a/../b" },
    { iss: "Z", sub: "Z" },
    { iss: 7 },
  ];
  for (const claims of wrong)
    await refuses(verifyZoneToken(await make(claims), [publicKey], now), "unauthenticated", /not valid/);
  await refuses(verifyZoneToken("a.b.c", [publicKey], now), "unauthenticated", /JSON Web Token/);
  await refuses(verifyZoneToken("x".repeat(5000), [publicKey], now), "unauthenticated", /too long/);
  const shared = await make({}, Buffer.from("0123456789abcdef0123456789abcdef"), "HS256");
  await refuses(verifyZoneToken(shared, [publicKey], now), "unauthenticated", /not valid/);
});
