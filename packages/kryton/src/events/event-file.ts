/**
 * The original's events file: every event as one JSON line, and at first start the last lines as history.
 *
 * The file is a copy for other tools; the log in the store is what counts. It is rotated to `<file>.1` at
 * a bounded size, and a failure to write is logged and otherwise ignored.
 */
import { appendFile, open, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { ensureFolder, messageOf, type Edges } from "@kontinuum/std";
import { prefixRange, type Store } from "@kontinuum/storage/client";
import { eventSchema, type CloudEvent } from "../model/event.ts";
import { keys } from "../store/keyspace.ts";
import type { EventLog, LoggedEvent } from "./event-log.ts";

/** Lines that are imported. */
const maxImported = 500;
/** Longest line, bytes. */
const maxLineBytes = 2 * 1024 * 1024;
/** Bytes of the end of the file that are read. */
const tailBytes = 8 * 1024 * 1024;
/** Size at which the file is rotated, bytes. */
export const maxFileBytes = 64 * 1024 * 1024;
/** Events that wait to be written. */
const maxPending = 10_000;

/** Writes the log to a file, in order. */
export class EventFile {
  readonly #path: string;
  readonly #edges: Edges;
  #pending: LoggedEvent[] = [];
  #writing: Promise<void> = Promise.resolve();
  #unlisten: (() => void) | undefined;

  constructor(path: string, edges: Edges) {
    this.#path = path;
    this.#edges = edges;
  }

  /** Copies the file's last events into an empty log. Fails when the file cannot be opened. */
  async import(store: Store): Promise<void> {
    await ensureFolder(dirname(this.#path), { setting: "KRYTON_EVENTS_FILE", mode: 0o750 });
    const { count } = await store.range({ ...prefixRange(keys.event()), countOnly: true });
    if (count > 0) return;
    for (const event of await this.#lastEvents()) {
      await store.txn({
        success: [{ type: "put", key: keys.event(event.id), value: JSON.stringify(event) }],
      });
    }
  }

  /** Writes every event from now on. */
  follow(log: EventLog): void {
    this.#unlisten = log.listen((events) => {
      this.#pending.push(...events);
      if (this.#pending.length > maxPending) {
        this.#edges.log.warn("events file is too slow; events are left out of it", { file: this.#path });
        this.#pending = this.#pending.slice(-maxPending);
      }
      this.#writing = this.#writing.then(() => this.#flush());
    });
  }

  async stop(): Promise<void> {
    this.#unlisten?.();
    await this.#writing;
  }

  async #flush(): Promise<void> {
    const events = this.#pending.splice(0);
    if (events.length === 0) return;
    try {
      const size = (await stat(this.#path).catch(() => undefined))?.size ?? 0;
      if (size > maxFileBytes) await rename(this.#path, `${this.#path}.1`);
      await appendFile(this.#path, events.map(({ json }) => `${json}\n`).join(""), { mode: 0o600 });
    } catch (error) {
      this.#edges.log.warn("events file could not be written", {
        file: this.#path,
        problem: messageOf(error),
      });
    }
  }

  async #lastEvents(): Promise<CloudEvent[]> {
    const file = await open(this.#path, "a+", 0o600);
    try {
      const { size } = await file.stat();
      const from = Math.max(0, size - tailBytes);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
      const lines = buffer.subarray(0, bytesRead).toString("utf8").split("\n");
      const events: CloudEvent[] = [];
      for (const line of lines.slice(from > 0 ? 1 : 0)) {
        if (line === "" || line.length > maxLineBytes) continue;
        const event = parse(line);
        if (event) events.push(event);
      }
      return events.slice(-maxImported);
    } finally {
      await file.close();
    }
  }
}

function parse(line: string): CloudEvent | undefined {
  try {
    const parsed = eventSchema.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
