import assert from "node:assert/strict";
import { test } from "node:test";
import { addressPolicy } from "./address-policy.ts";

test("the server does not call itself, its neighbours or metadata services", () => {
  const { allows } = addressPolicy([]);
  const refused = [
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "0.0.0.0",
    "::",
    "169.254.169.254",
    "fe80::1",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "::ffff:127.0.0.1",
    "fd00:ec2::254",
    "100.100.100.200",
    "localhost",
    "",
  ];
  for (const address of refused) assert.equal(allows(address), false, address);
  for (const address of ["10.1.2.3", "192.168.0.1", "8.8.8.8", "2606:4700::1"])
    assert.equal(allows(address), true, address);
});

test("ranges can be allowed", () => {
  const { allows } = addressPolicy(["127.0.0.0/8", "169.254.169.254"]);
  assert.equal(allows("127.0.0.1"), true);
  assert.equal(allows("::ffff:127.0.0.1"), true);
  assert.equal(allows("169.254.169.254"), true);
  assert.equal(allows("169.254.1.1"), false);
  assert.throws(() => addressPolicy(["nonsense"]), /no address range/);
});
