import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded, seededRandom, SimulatedClock, systemEdges } from "@kontinuum/std";
import { testContract } from "../contract/suite.ts";
import { prefixRange, type Store } from "../contract.ts";
import { openStore } from "../open.ts";
import { EncryptedStore } from "./encrypted-store.ts";
import { isEnvelope, keyIdOf, seal, unseal } from "./envelope.ts";
import { KeyRing } from "./key-file.ts";

const random = seededRandom(7);
const key = (id: string) => ({ id, secret: Buffer.from(random.bytes(32)) });
const memory = (): Promise<Store> =>
  openStore("memory://", systemEdges({ clock: new SimulatedClock(), random }));
const put = (store: Store, name: string, value: string) =>
  store.txn({ success: [{ type: "put", key: name, value }] });
const read = async (store: Store, name: string) => (await store.range({ key: name })).kvs[0]?.value;

testContract("encrypted", async () => {
  const clock = new SimulatedClock();
  const store = await openStore("memory://", systemEdges({ clock, random }), {
    encryption: { keys: new KeyRing([key("a")]), prefixes: [""] },
  });
  return { store, pass: (ms) => clock.advance(ms), close: () => store.close() };
});

test("values under the prefixes are sealed below, others are not", async () => {
  const below = await memory();
  const store = await EncryptedStore.over(below, {
    keys: new KeyRing([key("a")]),
    prefixes: ["/secret/"],
    random,
  });
  await put(store, "/secret/x", "hidden");
  await put(store, "/plain/x", "open");
  const raw = await read(below, "/secret/x");
  assert.ok(raw && isEnvelope(raw) && !raw.includes("hidden"));
  assert.equal((await read(below, "/plain/x"))?.toString(), "open");
  assert.equal((await read(store, "/secret/x"))?.toString(), "hidden");
  await store.close();
});

test("plain values and old keys stay readable, and are rewritten while serving", async () => {
  const below = await memory();
  await put(below, "/secret/plain", "before");
  const [old, fresh] = [key("old"), key("new")];
  const ring = new KeyRing([old]);
  const store = await EncryptedStore.over(below, { keys: ring, prefixes: ["/secret/"], random });
  await put(store, "/secret/old", "sealed");
  assert.equal((await read(store, "/secret/plain"))?.toString(), "before");
  ring.replace([fresh, old]);
  assert.equal((await read(store, "/secret/old"))?.toString(), "sealed");
  assert.deepEqual(await store.rewrite(["/secret/"]), { rewritten: 2 });
  assert.deepEqual(await store.rewrite(["/secret/"]), { rewritten: 0 });
  for (const kv of (await below.range(prefixRange("/secret/"))).kvs) assert.equal(keyIdOf(kv.value), "new");
  ring.replace([fresh]);
  assert.equal((await read(store, "/secret/old"))?.toString(), "sealed");
  await store.close();
});

test("a missing or wrong key is refused before anything is served", async () => {
  const below = await memory();
  const store = await EncryptedStore.over(below, { keys: new KeyRing([key("a")]), prefixes: ["/"], random });
  await put(store, "/x", "hidden");
  const over = (ring: KeyRing) => EncryptedStore.over(below, { keys: ring, prefixes: ["/"], random });
  await assert.rejects(over(new KeyRing([key("b")])), (error) => {
    assert.ok(isCoded(error, "failed_precondition"));
    assert.match(error.message, /"a".*add it to the key file/);
    return true;
  });
  await assert.rejects(over(new KeyRing([key("a")])), (error) => isCoded(error, "data_loss"));
  await store.close();
});

test("a value that only looks sealed does not break a read outside of the prefixes", async () => {
  const below = await memory();
  const looks = seal(key("a"), Buffer.from("/elsewhere"), Buffer.from("x"), random);
  const store = await EncryptedStore.over(below, {
    keys: new KeyRing([key("a")]),
    prefixes: ["/secret/"],
    random,
  });
  await store.txn({ success: [{ type: "put", key: "/plain/x", value: looks }] });
  assert.deepEqual(await read(store, "/plain/x"), looks);
  // Under the prefixes it is sealed like any other value.
  await store.txn({ success: [{ type: "put", key: "/secret/x", value: looks }] });
  assert.deepEqual(await read(store, "/secret/x"), looks);
  await store.close();
});

test("a sealed value cannot be moved to another key or changed", () => {
  const one = key("a");
  const keys = new Map([[one.id, one]]);
  const sealed = seal(one, Buffer.from("/x"), Buffer.from("value"), random);
  assert.equal(unseal(keys, Buffer.from("/x"), sealed).toString(), "value");
  assert.throws(
    () => unseal(keys, Buffer.from("/y"), sealed),
    (error) => isCoded(error, "data_loss"),
  );
  for (let i = 6; i < sealed.length; i++) {
    const changed = Buffer.from(sealed);
    changed[i] = (changed[i] ?? 0) ^ 1;
    assert.throws(() => unseal(keys, Buffer.from("/x"), changed));
  }
});
