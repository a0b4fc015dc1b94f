import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { start, until } from "../kryton.fixture.ts";
import { maxFileBytes } from "./event-file.ts";

test("events are copied to a file and come back as history of a new store, bad lines skipped", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-events-"));
  const file = join(directory, "sub", "events.jsonl");
  try {
    {
      await using api = await start({ env: { KRYTON_EVENTS_FILE: file } });
      await api.machine("a");
      await until(async () =>
        (await readFile(file, "utf8")).includes("machine.created") ? true : undefined,
      );
    }
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    await writeFile(file, `${await readFile(file, "utf8")}{broken\n`);
    await using api = await start({ env: { KRYTON_EVENTS_FILE: file } });
    const { items } = (await api.call("GET", "/api/v1/events")).json;
    assert.equal(items.length, 1);
    assert.equal(items[0].type, "io.kryton.machine.created");
    await api.machine("b");
    await until(async () =>
      (await readFile(file, "utf8")).trim().split("\n").length === 3 ? true : undefined,
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("a file that has grown to its limit is set aside, and a new one begun", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-events-"));
  const file = join(directory, "events.jsonl");
  try {
    await writeFile(file, "");
    await truncate(file, maxFileBytes + 1);
    await using api = await start({ env: { KRYTON_EVENTS_FILE: file } });
    await api.machine("a");
    const old = await until(() => stat(`${file}.1`).catch(() => undefined));
    assert.equal(old.size, maxFileBytes + 1);
    const text = await until(() =>
      readFile(file, "utf8").then(
        (now) => now || undefined,
        () => undefined,
      ),
    );
    assert.match(text, /^\{"specversion":"1.0".*machine\.created.*\}\n$/);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
