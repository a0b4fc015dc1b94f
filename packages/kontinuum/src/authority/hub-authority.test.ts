/**
 * The hub's own authority: one for all replicas, renewed in time, never lost to two that start at once.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { isCoded, SimulatedClock, systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { parseConfig } from "../config/config.ts";
import { readValues, type Values } from "../config/variables.ts";
import { authorityLifeMs, publishBeforeMs, signBeforeMs } from "./authorities.ts";
import { authorityKey, HubAuthority } from "./hub-authority.ts";
import { servingNames } from "./serving-names.ts";

const dayMs = 86_400_000;
const names = ["hub.example", "127.0.0.1"];

async function world() {
  const clock = new SimulatedClock();
  const edges = systemEdges({ clock });
  // Years pass for the hub only: the store has work to do every second.
  const store = await openStore("memory://", systemEdges());
  return { clock, edges, store, open: () => HubAuthority.open(store, names, edges) };
}

const isSignedBy = (pem: string, bundle: string): boolean =>
  bundle
    .split(/(?=-----BEGIN)/)
    .some((one) => new X509Certificate(pem).verify(new X509Certificate(one).publicKey));
const authoritiesIn = (bundle: string): number => bundle.split("-----BEGIN").length - 1;

test("replicas that start at once have one authority, and each a certificate of its own", async () => {
  const { open, store } = await world();
  const replicas = await Promise.all([open(), open(), open()]);
  assert.equal(new Set(replicas.map(({ bundle }) => bundle)).size, 1);
  assert.equal(new Set(replicas.map(({ pair }) => pair.cert)).size, 3);
  const [first] = replicas;
  assert.ok(first && isSignedBy(first.pair.cert, first.bundle));
  const certificate = new X509Certificate(first.pair.cert);
  assert.ok(certificate.checkHost("hub.example") && certificate.checkIP("127.0.0.1"));
  assert.equal(certificate.checkHost("other.example"), undefined);
  assert.equal((await open()).bundle, first.bundle, "a restart keeps it");
  await store.close();
});

test("a certificate is replaced at half of its life, by the same authority", async () => {
  const { open, clock, store } = await world();
  const one = await open();
  const { cert } = one.pair;
  const { bundle } = one;
  await clock.advance(14 * dayMs);
  assert.equal(await one.renew(), false);
  await clock.advance(2 * dayMs);
  assert.equal(await one.renew(), true);
  assert.notEqual(one.pair.cert, cert);
  assert.equal(one.bundle, bundle);
  await store.close();
});

test("a new authority is trusted for a year before it signs, and an old one leaves when it expired", async () => {
  const { open, clock, store } = await world();
  const one = await open();
  const first = one.bundle;
  await clock.advance(authorityLifeMs - publishBeforeMs + dayMs);
  await one.renew();
  assert.equal(authoritiesIn(one.bundle), 2);
  assert.ok(isSignedBy(one.pair.cert, first), "who knows only the first still gets in");
  assert.ok(publishBeforeMs - signBeforeMs >= 365 * dayMs);
  await clock.advance(publishBeforeMs - signBeforeMs);
  assert.equal(await one.renew(), true);
  assert.ok(!isSignedBy(one.pair.cert, first));
  assert.equal(authoritiesIn(one.bundle), 2);
  await clock.advance(signBeforeMs);
  await one.renew();
  assert.equal(authoritiesIn(one.bundle), 1);
  assert.ok(isSignedBy(one.pair.cert, one.bundle));
  await store.close();
});

test("what can't be read in the store is refused with the remedy, and never shown", async () => {
  const { open, store } = await world();
  for (const value of ["nonsense-secret", '{"authorities":[{"crt":"nonsense-secret"}]}', "{}"]) {
    await store.txn({ success: [{ type: "put", key: authorityKey, value }] });
    await assert.rejects(
      open(),
      (error) => isCoded(error, "data_loss") && !error.message.includes("nonsense-secret"),
    );
  }
  await store.close();
});

test("the certificate is good for what the outside calls the hub", () => {
  const namesOf = (values: Partial<Values>): readonly string[] =>
    servingNames(parseConfig(readValues({ KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true", ...values })), {
      name: "Rack-1",
      addresses: ["192.0.2.7", "2001:db8::7"],
    });
  assert.deepEqual(
    namesOf({ KONTINUUM_SERVER_GRPC_ENDPOINT: "hub.example:443", KONTINUUM_SERVER_ADDR: "0.0.0.0:8080" }),
    ["hub.example", "localhost", "127.0.0.1", "::1", "rack-1", "192.0.2.7", "2001:db8::7"],
  );
  assert.ok(namesOf({ KONTINUUM_SERVER_GRPC_ENDPOINT: "[2001:db8::1]:443" }).includes("2001:db8::1"));
});
