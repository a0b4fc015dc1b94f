import assert from "node:assert/strict";
import { test } from "node:test";
import { protocolOf } from "./sniffer.ts";

test("the first bytes decide, one at a time or all at once", () => {
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  for (let length = 1; length < 16; length++)
    assert.equal(protocolOf(preface.subarray(0, length)), undefined);
  assert.equal(protocolOf(preface), "h2");
  assert.equal(protocolOf(Buffer.from([0x16])), "tls");
  // These share their first letters with the preface.
  for (const line of ["PUT / HTTP/1.1", "POST /", "PATCH /", "PROPFIND /", "PRI * HTTP/1.1"]) {
    assert.equal(protocolOf(Buffer.from(line)), "h1", line);
  }
  assert.equal(protocolOf(Buffer.from([0, 1, 2])), "h1");
  assert.equal(protocolOf(Buffer.alloc(0)), undefined);
});
