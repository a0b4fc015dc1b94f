/**
 * The mapping of failures, on the error codes Node gives for what other TLS stacks send.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { CodedError, errorTable } from "@kontinuum/std";
import { talosErrorOf, TalosError, type TalosErrorReason } from "./talos-error.ts";

const context = {
  target: "192.0.2.10:50000",
  method: "Version",
  timeoutMs: 1000,
  expired: false,
  lost: false,
  connectionFailure: undefined,
};

const coded = (code: string): Error => Object.assign(new Error(code), { code });

test("TLS failures are told before the status code they hide behind", () => {
  const table: [string, TalosErrorReason][] = [
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "certificate_required"],
    ["ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE", "certificate_required"],
    ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "untrusted_certificate"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "untrusted_certificate"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "untrusted_certificate"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "untrusted_certificate"],
    ["CERT_HAS_EXPIRED", "untrusted_certificate"],
    ["ECONNREFUSED", "unreachable"],
    ["ECONNRESET", "unreachable"],
  ];
  for (const [code, reason] of table) {
    const wrapped = new ConnectError("internal", Code.Internal, undefined, undefined, coded(code));
    assert.equal(talosErrorOf(wrapped, context).reason, reason, code);
    const hidden = { ...context, connectionFailure: coded(code), lost: true };
    assert.equal(talosErrorOf(new ConnectError("gone", Code.Canceled), hidden).reason, reason, code);
  }
});

test("our own deadline wins over whatever the abort looked like", () => {
  const failure = talosErrorOf(new ConnectError("aborted", Code.Canceled), { ...context, expired: true });
  assert.equal(failure.reason, "timeout");
  assert.match(failure.message, /Version on 192\.0\.2\.10:50000: no answer within 1000 ms/);
});

test("a node's text is bounded", () => {
  const failure = talosErrorOf(new ConnectError("x".repeat(100_000), Code.InvalidArgument), context);
  assert(failure.message.length < 2100);
});

test("a failure of the network edge keeps its meaning", () => {
  assert.equal(talosErrorOf(new CodedError("unavailable", "cut"), context).reason, "unreachable");
  assert.equal(talosErrorOf(new CodedError("deadline_exceeded", "slow"), context).reason, "timeout");
});

test("a cause that points at itself ends", () => {
  const ring = new Error("ring");
  ring.cause = ring;
  assert.equal(talosErrorOf(ring, context).reason, "failed");
});

test("a TalosError is a coded error with its class in the details", () => {
  const failure = new TalosError("not_ready", "etcd is not up");
  assert.equal(failure.meaning, errorTable.failed_precondition);
  assert.deepEqual(failure.details, { reason: "not_ready", class: "wait" });
});
