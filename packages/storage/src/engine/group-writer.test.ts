import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, isCoded, SimulatedClock, systemEdges } from "@kontinuum/std";
import { MemoryBackend } from "../drivers/memory/memory-backend.ts";
import { reasonOf } from "../faults.ts";
import type { Needs, Session } from "./backend.ts";
import { GroupWriter } from "./group-writer.ts";

const none: Needs = { scans: [], leases: [], leaseKeys: [] };

/** A backend that counts groups, waits for `release` and can fail. */
class Slow extends MemoryBackend {
  groups = 0;
  failure: Error | undefined;
  release: Promise<void> = Promise.resolve();

  override async write(needs: Needs, work: (session: Session) => void): Promise<void> {
    this.groups++;
    await this.release;
    if (this.failure) throw this.failure;
    await super.write(needs, work);
  }
}

function open(): { backend: Slow; writer: GroupWriter } {
  const edges = systemEdges({ clock: new SimulatedClock() });
  const backend = new Slow(edges);
  return { backend, writer: new GroupWriter(backend, edges.clock) };
}

const job = <T>(run: () => T, bytes = 1) => ({ needs: none, bytes, run });

test("writers that wait together share a commit", async () => {
  const { backend, writer } = open();
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => writer.submit(job(() => i))));
  assert.deepEqual(
    answers,
    Array.from({ length: 100 }, (_, i) => i),
  );
  assert.equal(backend.groups, 1);
  await writer.close();
});

test("a job that fails fails alone; a commit that fails fails all", async () => {
  const { backend, writer } = open();
  const refusal = new CodedError("not_found", "no such lease");
  const mixed = await Promise.allSettled([
    writer.submit(job(() => "a")),
    writer.submit(
      job(() => {
        throw refusal;
      }),
    ),
    writer.submit(job(() => "b")),
  ]);
  assert.deepEqual(
    mixed.map((each) => each.status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  backend.failure = new CodedError("unavailable", "disk full");
  const all = await Promise.allSettled([writer.submit(job(() => 1)), writer.submit(job(() => 2))]);
  assert.ok(all.every((each) => each.status === "rejected" && each.reason === backend.failure));
  backend.failure = undefined;
  assert.equal(await writer.submit(job(() => "on")), "on");
  await writer.close();
});

test("what waits is bounded in number and in bytes", async () => {
  const { backend, writer } = open();
  let go = (): void => {};
  backend.release = new Promise((resolve) => (go = resolve));
  const first = writer.submit(job(() => 0));
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
  const waiting = Array.from({ length: 250 }, () => writer.submit(job(() => 1, 1024 * 1024)));
  await assert.rejects(writer.submit(job(() => 1, 7 * 1024 * 1024)), (error) => {
    assert.ok(isCoded(error, "unavailable"));
    assert.equal(reasonOf(error), "overloaded");
    return true;
  });
  const many = Array.from({ length: 16_384 - 250 }, () => writer.submit(job(() => 1, 0)));
  await assert.rejects(writer.submit(job(() => 1, 0)), (error) => reasonOf(error) === "overloaded");
  go();
  await Promise.all([first, ...waiting, ...many]);
  assert.ok(backend.groups > 30, "no commit took more than 8 MiB");
  await writer.close();
});

test("an aborted writer is told at once, the others go on", async () => {
  const { writer } = open();
  const abort = new AbortController();
  const one = writer.submit(
    job(() => 1),
    abort.signal,
  );
  const two = writer.submit(job(() => 2));
  abort.abort();
  await assert.rejects(one, (error) => isCoded(error, "cancelled"));
  assert.equal(await two, 2);
  await assert.rejects(
    writer.submit(
      job(() => 3),
      abort.signal,
    ),
    (error) => isCoded(error, "cancelled"),
  );
  await writer.close();
  await assert.rejects(writer.submit(job(() => 4)), (error) => reasonOf(error) === "closed");
});
