/**
 * Addresses on the wire and for people, and which of a machine's addresses is dialled.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addressBytes, addressText, dialAddressOf, hardwareAddressText, isDialable } from "./addresses.ts";

test("bytes become text and text bytes", () => {
  for (const [text, bytes] of [
    ["192.0.2.10", [192, 0, 2, 10]],
    ["2001:db8::1", [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]],
  ] as const) {
    assert.equal(addressText(Uint8Array.from(bytes)), text);
    assert.deepEqual(addressBytes(text), Uint8Array.from(bytes));
  }
  const zoned = Buffer.concat([Buffer.from("fe80".padEnd(31, "0") + "1", "hex"), Buffer.from("eth0")]);
  assert.equal(addressText(zoned), "fe80::1%eth0");
});

test("what is no address is none", () => {
  for (const length of [0, 3, 5, 15, 81]) assert.equal(addressText(new Uint8Array(length)), undefined);
  for (const text of ["", "1", "0x7f000001", "127.1", "192.0.2.256", "::g", "192.0.2.1/24"]) {
    assert.equal(addressBytes(text), undefined);
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const text = addressText(bytes);
      return text === undefined || text.length > 0;
    }),
  );
});

test("the first address that can be reached from elsewhere is dialled", () => {
  const interfaces = [
    { addresses: ["127.0.0.1/8", "::1/128"] },
    { addresses: ["fe80::1/64", "169.254.1.1/16", "224.0.0.1/4"] },
    { addresses: ["192.0.2.10/24", "2001:db8::1/64"] },
  ];
  assert.equal(dialAddressOf(interfaces), "192.0.2.10");
  assert.equal(dialAddressOf(interfaces.slice(0, 2)), undefined);
  assert.equal(dialAddressOf([{ addresses: ["nonsense", "2001:db8::1/64"] }]), "2001:db8::1");
  assert(!isDialable("fe80::1%eth0"));
  assert(isDialable("10.0.0.1"));
});

test("a hardware address has colons", () => {
  assert.equal(hardwareAddressText(Uint8Array.from([0x52, 0x54, 0, 1, 2, 255])), "52:54:00:01:02:ff");
  assert.equal(hardwareAddressText(new Uint8Array()), "");
});
