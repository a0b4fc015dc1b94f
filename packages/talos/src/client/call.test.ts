/**
 * Calls end at their deadline, whatever the connection below does.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { Caller } from "./call.ts";
import { GrpcSession } from "./grpc-session.ts";
import { isTalosError } from "./talos-error.ts";

const edges = systemEdges();
const caller = new Caller(
  new GrpcSession({ address: "127.0.0.1", port: 1, edges }),
  edges,
  "127.0.0.1:1",
  undefined,
);

/** Says one thing and then, as after a connection that was torn down, nothing for ever: not even an end. */
function silent(): AsyncIterable<number> {
  let said = false;
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        if (said) return new Promise(() => {});
        said = true;
        return Promise.resolve({ done: false, value: 1 });
      },
    }),
  };
}

test("a stream that falls silent ends at its deadline", { timeout: 10_000 }, async () => {
  const heard: number[] = [];
  await assert.rejects(
    (async () => {
      for await (const message of caller.stream("Upgrade", { timeoutMs: 50 }, silent)) heard.push(message);
    })(),
    (error) => isTalosError(error, "timeout"),
  );
  assert.deepEqual(heard, [1]);
});

test("a watch that falls silent ends when its caller leaves", { timeout: 10_000 }, async () => {
  const leave = new AbortController();
  const options = { timeoutMs: 5_000, untilFirst: true, signal: leave.signal };
  await assert.rejects(
    (async () => {
      for await (const _ of caller.stream("Watch", options, silent)) leave.abort();
    })(),
    (error) => isTalosError(error, "cancelled"),
  );
});
