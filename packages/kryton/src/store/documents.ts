/**
 * JSON documents in the store, read with a schema and never trusted.
 *
 * Bytes that do not parse are somebody's damage, not a reason to stop: a list skips and reports
 * them, a single read answers `undefined` and logs.
 */
import type { Log } from "@kontinuum/std";
import { prefixRange, type KeyValue, type RangeRequest, type Store } from "@kontinuum/storage/client";

/** A checker in zod's form: only `safeParse` is needed. */
export interface Schema<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false; error: { message: string } };
}

/** A document and the revisions that made it. */
export interface Stored<T> {
  readonly key: string;
  readonly value: T;
  readonly createRevision: number;
  readonly modRevision: number;
}

/** The document of a pair, or `undefined` (and a line in the log) when the bytes are not one. */
export function decode<T>(kv: KeyValue, schema: Schema<T>, log: Log): Stored<T> | undefined {
  let raw: unknown;
  try {
    raw = JSON.parse(kv.value.toString("utf8"));
  } catch {
    raw = undefined;
  }
  const parsed = schema.safeParse(raw);
  const key = kv.key.toString("utf8");
  if (!parsed.success) {
    log.error("stored document is damaged and was skipped", { storeKey: key, problem: parsed.error.message });
    return undefined;
  }
  return { key, value: parsed.data, createRevision: kv.createRevision, modRevision: kv.modRevision };
}

/** Reads documents of one store. */
export class Documents {
  readonly #store: Store;
  readonly #log: Log;

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /** The document at `key`, or `undefined` when there is none. */
  async get<T>(key: string, schema: Schema<T>): Promise<Stored<T> | undefined> {
    const { kvs } = await this.#store.range({ key });
    const kv = kvs[0];
    return kv && decode(kv, schema, this.#log);
  }

  /** Documents under `prefix`, by key; see {@link Documents.range} for the paged form. */
  async list<T>(
    prefix: string,
    schema: Schema<T>,
    options: Partial<RangeRequest> = {},
  ): Promise<Stored<T>[]> {
    return (await this.range({ ...options, ...prefixRange(prefix) }, schema)).items;
  }

  /** Documents of a range, and whether more follow. */
  async range<T>(
    request: RangeRequest,
    schema: Schema<T>,
  ): Promise<{ items: Stored<T>[]; more: boolean; last: string | undefined }> {
    const { kvs, more } = await this.#store.range({ uncounted: true, ...request });
    const items: Stored<T>[] = [];
    for (const kv of kvs) {
      const stored = decode(kv, schema, this.#log);
      if (stored) items.push(stored);
    }
    return { items, more, last: kvs.at(-1)?.key.toString("utf8") };
  }
}
