/**
 * What a case of the contract works with: a store, keys of its own, watches that end with it. Test code only.
 */
import assert from "node:assert/strict";
import { isCoded, type ErrorCode } from "@kontinuum/std";
import type { KeyValue, Op, OpResult, Store, StoreEvent, TxnResult, Watch } from "../contract.ts";

/** A store under test. */
export interface Subject {
  readonly store: Store;
  /** Lets `ms` pass for the store: on a simulated clock at once, on a real one by waiting for it. */
  readonly pass: (ms: number) => Promise<void>;
  /** A second store over the same data, for drivers that allow several. */
  readonly second?: () => Promise<Store>;
  readonly close: () => Promise<void>;
}

/** What a case works with. */
export class Bench {
  readonly store: Store;
  readonly pass: Subject["pass"];
  readonly second: Subject["second"];
  readonly #prefix: string;
  readonly #watches: Watch[] = [];

  constructor(subject: Subject, prefix: string) {
    this.store = subject.store;
    this.pass = subject.pass;
    this.second = subject.second;
    this.#prefix = prefix;
  }

  /** A key of this case. */
  key(name: string): string {
    return this.#prefix + name;
  }

  /** The range of this case's keys that start with `name`. */
  all(name = ""): { key: Buffer; end: Buffer } {
    const key = Buffer.from(this.key(name));
    const end = Buffer.from(key);
    end[end.length - 1] = (end.at(-1) ?? 0) + 1;
    return { key, end };
  }

  /** A key without this case's prefix. */
  short(kv: { readonly key: Buffer }): string {
    return kv.key.toString().slice(this.#prefix.length);
  }

  /** Runs operations without conditions. */
  do(...success: Op[]): Promise<TxnResult> {
    return this.store.txn({ success });
  }

  /** Puts one key and answers its revision. */
  async put(name: string, value = "", lease?: bigint): Promise<number> {
    const op: Op = { type: "put", key: this.key(name), value, ...(lease === undefined ? {} : { lease }) };
    return (await this.do(op)).revision;
  }

  async delete(name: string): Promise<number> {
    return (await this.do({ type: "delete", key: this.key(name) })).revision;
  }

  async get(name: string, revision = 0): Promise<KeyValue | undefined> {
    return (await this.store.range({ key: this.key(name), revision })).kvs[0];
  }

  /** `name=value` of all keys of the case. */
  async contents(revision = 0): Promise<string[]> {
    const { kvs } = await this.store.range({ ...this.all(), revision });
    return kvs.map((kv) => `${this.short(kv)}=${kv.value.toString()}`);
  }

  /** Opens a watch that ends with the case. */
  async watch(request: Partial<Parameters<Store["watch"]>[0]> = {}): Promise<Reader> {
    const watch = this.store.watch({ ...this.all(), ...request });
    this.#watches.push(watch);
    await watch.ready;
    return new Reader(watch);
  }

  end(): void {
    for (const watch of this.#watches) watch.close();
  }
}

/** Reads a watch event by event. */
export class Reader {
  readonly watch: Watch;
  readonly #iterator: AsyncIterator<{ events: readonly StoreEvent[]; revision: number }>;
  readonly #pending: StoreEvent[] = [];
  /** Revisions of the batches seen. */
  readonly batches: number[] = [];

  constructor(watch: Watch) {
    this.watch = watch;
    this.#iterator = watch[Symbol.asyncIterator]();
  }

  /** The next `count` events. */
  async events(count: number): Promise<StoreEvent[]> {
    while (this.#pending.length < count) await this.batch();
    return this.#pending.splice(0, count);
  }

  /** The next batch; its events also wait for {@link events}. */
  async batch(): Promise<{ events: readonly StoreEvent[]; revision: number }> {
    const step = await this.#iterator.next();
    assert.equal(step.done, undefined === step.value, "the watch goes on");
    assert.ok(!step.done);
    for (const event of step.value.events) assert.ok(event.kv.modRevision <= step.value.revision);
    this.batches.push(step.value.revision);
    this.#pending.push(...step.value.events);
    return step.value;
  }

  next(): Promise<IteratorResult<{ events: readonly StoreEvent[]; revision: number }>> {
    return this.#iterator.next();
  }
}

/** One statement of the contract. */
export interface ContractCase {
  readonly name: string;
  readonly run: (bench: Bench) => Promise<void>;
}

/** Asserts that a promise fails with a code. */
export async function refuses(promise: Promise<unknown>, code: ErrorCode): Promise<Error> {
  let seen: Error | undefined;
  await assert.rejects(promise, (error: Error) => {
    seen = error;
    assert.ok(isCoded(error), `a coded error, not ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return true;
  });
  assert.ok(seen);
  return seen;
}

/** The result of one kind at an index. */
export function resultAt<T extends OpResult["type"]>(
  txn: TxnResult,
  index: number,
  type: T,
): Extract<OpResult, { type: T }> {
  const result = txn.results[index];
  assert.equal(result?.type, type);
  return result as Extract<OpResult, { type: T }>;
}
