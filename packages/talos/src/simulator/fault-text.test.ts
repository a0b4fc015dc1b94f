/**
 * Faults as words: each one there is, and what a wrong one is told.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded } from "@kontinuum/std";
import { faultNames, parseFaults } from "./fault-text.ts";

test("every fault has a word", () => {
  const words: Readonly<Record<string, object>> = {
    "connections=blackhole": { connections: "blackhole" },
    "handshake-delay=2s": { handshakeDelayMs: 2_000 },
    "call-delay=200ms": { callDelayMs: 200 },
    "wrong-certificate": { wrongCertificate: true },
    "crash-at=install": { crashAt: "install" },
    "lose-reply=ApplyConfiguration+Reset": { loseReply: ["ApplyConfiguration", "Reset"] },
    "fail-calls=Version": { failCalls: ["Version"] },
    "disk-failure": { diskFailure: true },
    "clock-skew=-1h": { clockSkewMs: -3_600_000 },
    "time-not-synced": { timeNotSynced: true },
  };
  assert.deepEqual(
    Object.keys(words).map((word) => word.split("=")[0]),
    faultNames,
  );
  for (const [word, fault] of Object.entries(words)) {
    assert.deepEqual(parseFaults([word]), { "*": fault });
    assert.deepEqual(parseFaults([`node-002:${word}`]), { "node-002": fault });
  }
  assert.deepEqual(parseFaults(["disk-failure", "*:time-not-synced", "a:disk-failure"]), {
    "*": { diskFailure: true, timeNotSynced: true },
    a: { diskFailure: true },
  });
});

test("a wrong word is told what it could be", () => {
  for (const [word, told] of [
    ["disk-failed", /one of connections, handshake-delay/],
    ["", /one of connections/],
    [":disk-failure", /one of connections/],
    ["disk-failure=yes", /takes no value/],
    ["connections=slow", /is one of refuse, blackhole, cut/],
    ["crash-at", /is one of apply, install/],
    ["call-delay=2", /is a duration such as 200ms/],
    ["call-delay=-2s", /is a duration/],
    ["clock-skew=99999d", /which may be negative/],
    ["lose-reply=version", /methods joined by \+/],
    ["__proto__", /one of connections/],
  ] as const) {
    assert.throws(
      () => parseFaults([word]),
      (error) => isCoded(error, "invalid_argument") && told.test(error.message),
      word,
    );
  }
});
