/**
 * Bundles of the official tool, bundles of ours, and hostile texts.
 */
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import fc from "fast-check";
import { parse } from "yaml";
import { official } from "../testing/official.ts";
import { openSslPem, pemLabel } from "./pem.ts";
import { generateSecretsBundle, parseSecretsBundle, serializeSecretsBundle } from "./secrets-bundle.ts";

const edges = systemEdges();
const refuses = (text: string, pattern: RegExp): void =>
  assert.throws(
    () => parseSecretsBundle(text),
    (error) => isCoded(error, "invalid_argument") && pattern.test(error.message),
  );

test("an official bundle loads and is written back the same", () => {
  for (const path of ["secrets/secrets.yaml", "machine-config/stability/secrets.yaml"]) {
    const bundle = parseSecretsBundle(official(path));
    assert.deepEqual(parse(serializeSecretsBundle(bundle, "yaml")), parse(official(path)));
    assert.deepEqual(parseSecretsBundle(serializeSecretsBundle(bundle, "json")), bundle);
  }
});

test("an incomplete bundle is refused by the name of what is missing, without a value", () => {
  refuses(official("secrets/invalid-secrets.yaml"), /exactly one of/);
  const good = JSON.parse(serializeSecretsBundle(parseSecretsBundle(official("secrets/secrets.yaml"))));
  for (const [path, pattern] of [
    [["Cluster", "Id"], /lacks Cluster\.Id/],
    [["TrustdInfo", "Token"], /lacks TrustdInfo\.Token/],
    [["Certs", "OS", "Key"], /lacks Certs\.OS\.Key/],
    [["Certs", "K8sServiceAccount"], /lacks|K8sServiceAccount/],
  ] as const) {
    const broken = structuredClone(good);
    let at = broken;
    for (const key of path.slice(0, -1)) at = at[key];
    delete at[path.at(-1) ?? ""];
    refuses(JSON.stringify(broken), pattern);
  }
  const swapped = structuredClone(good);
  swapped.Certs.Etcd.Key = good.Certs.K8s.Key;
  refuses(JSON.stringify(swapped), /Certs\.Etcd that does not fit/);
  const both = structuredClone(good);
  both.Secrets.AESCBCEncryptionSecret = "x";
  refuses(JSON.stringify(both), /exactly one of/);
});

test("a new bundle has Talos' shapes", async () => {
  const bundle = await generateSecretsBundle({ talosVersion: "v1.13.0", edges });
  assert.match(bundle.cluster.id, /^[A-Za-z0-9_-]{43}=$/);
  assert.equal(Buffer.from(bundle.cluster.secret, "base64").length, 32);
  assert.match(bundle.secrets.bootstrapToken, /^[0-9a-z]{6}\.[0-9a-z]{16}$/);
  assert.match(bundle.trustdInfo.token, /^[0-9a-z]{6}\.[0-9a-z]{16}$/);
  assert.equal(Buffer.from(bundle.secrets.secretboxEncryptionSecret ?? "", "base64").length, 32);
  const { os, etcd, k8s, k8sAggregator, k8sServiceAccount } = bundle.certs;
  assert.equal(pemLabel(os.key), "ED25519 PRIVATE KEY");
  assert.equal(pemLabel(etcd.key), "EC PRIVATE KEY");
  assert.equal(pemLabel(k8sServiceAccount.key), "RSA PRIVATE KEY");
  assert.equal(createPrivateKey(openSslPem(k8sServiceAccount.key)).asymmetricKeyDetails?.modulusLength, 4096);
  const subjects = [os, etcd, k8s, k8sAggregator].map(({ crt }) => new X509Certificate(crt).subject);
  assert.deepEqual(subjects, ["O=talos", "O=etcd", "O=kubernetes", ""]);
  assert.deepEqual(parseSecretsBundle(serializeSecretsBundle(bundle)), bundle);
  assert.deepEqual(parseSecretsBundle(serializeSecretsBundle(bundle, "yaml")), bundle);
});

test("older contracts get an ECDSA service-account key and, before 1.3, an AES-CBC secret", async () => {
  const bundle = await generateSecretsBundle({ talosVersion: "v1.2", edges });
  assert.equal(pemLabel(bundle.certs.k8sServiceAccount.key), "EC PRIVATE KEY");
  assert(bundle.secrets.aescbcEncryptionSecret);
  assert.equal(bundle.secrets.secretboxEncryptionSecret, undefined);
});

test("making the RSA key leaves the event loop free", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 5);
  await generateSecretsBundle({ talosVersion: "v1.13", edges });
  clearInterval(timer);
  // Generation takes 100 ms and more; a blocked loop would have run no timer at all.
  assert(turns > 0);
});

test("any text is a bundle or refused as one", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.string().map((s) => `Certs: {OS: {Crt: ${s}`),
      ),
      (text) => {
        try {
          parseSecretsBundle(text);
          return false;
        } catch (error) {
          return isCoded(error, "invalid_argument");
        }
      },
    ),
  );
});
