/**
 * Encryption at rest over any store: values under chosen prefixes are sealed on their way in and opened
 * on their way out. Keys, revisions and leases are not hidden.
 *
 * What the store below cannot decide on sealed values (comparing and sorting by value) is decided here,
 * on a read that the transaction then holds still. Plain values and values under older keys stay
 * readable until they are rewritten ({@link EncryptedStore.rewrite}).
 */
import { CodedError, type Random } from "@kontinuum/std";
import {
  prefixRange,
  toBytes,
  type BytesLike,
  type CallOptions,
  type Compare,
  type KeyRange,
  type KeyValue,
  type Op,
  type OpResult,
  type RangeRequest,
  type RangeResult,
  type Revision,
  type Store,
  type StoreAlarm,
  type StoreEvent,
  type TxnRequest,
  type TxnResult,
  type Watch,
  type WatchBatch,
  type WatchRequest,
} from "../contract.ts";
import { hashPairs } from "../engine/contents-hash.ts";
import { compareHolds } from "../engine/evaluate.ts";
import { guardedTxn, keysOf, stillSo } from "../engine/observed.ts";
import { pagesOf } from "../engine/paging.ts";
import { planRange } from "../engine/request-check.ts";
import { answerRange } from "../engine/selection.ts";
import { inSpan, overlaps, spanOf, type Span } from "../engine/span.ts";
import { fault } from "../faults.ts";
import { isEnvelope, keyIdOf, seal, unseal } from "./envelope.ts";
import type { EncryptionKeys } from "./key-file.ts";

/** Times a transaction that compares sealed values is tried when they change meanwhile. */
const maxCompareAttempts = 16;
/** Pairs looked at under each prefix when a store is opened, to find a wrong key before anything is served. */
const checkedPairs = 200;

/** What is encrypted, and with what. */
export interface EncryptionOptions {
  readonly keys: EncryptionKeys;
  /** Keys that start with one of these are encrypted; `""` for all. */
  readonly prefixes: readonly BytesLike[];
  readonly random: Random;
}

/** A store whose values are sealed in the store below. */
export class EncryptedStore implements Store {
  /** The store below, with sealed values: what a backup is taken of. */
  readonly below: Store;
  readonly #keys: EncryptionKeys;
  readonly #random: Random;
  readonly #spans: readonly Span[];

  /**
   * Wraps a store. Fails with `failed_precondition` or `data_loss` when what is stored needs a key that is
   * missing or is another one of the same name.
   */
  static async over(below: Store, options: EncryptionOptions): Promise<EncryptedStore> {
    const store = new EncryptedStore(below, options);
    await store.#checkKeys(options.prefixes);
    return store;
  }

  private constructor(below: Store, options: EncryptionOptions) {
    this.below = below;
    this.#keys = options.keys;
    this.#random = options.random;
    this.#spans = options.prefixes.map((prefix) => spanOf(prefixRange(prefix)));
  }

  async range(request: RangeRequest, options?: CallOptions): Promise<RangeResult> {
    if (request.sort?.by !== "value" || !this.#touches(request))
      return this.#opened(await this.below.range(request, options));
    const all = await this.below.range({ ...keysOf(request), revision: request.revision ?? 0 }, options);
    return answerRange(planRange(request), this.#opened(all), all.revision);
  }

  async txn(request: TxnRequest, options?: CallOptions): Promise<TxnResult> {
    for (let attempt = 0; attempt < maxCompareAttempts; attempt++) {
      const guards: Compare[] = [];
      const sealed = await this.#sealed(request, guards, options);
      const result = await guardedTxn(this.below, guards, sealed, options);
      if (result) return this.#openedTxn(result);
    }
    throw fault("overloaded", "the compared values kept changing: try again");
  }

  watch(request: WatchRequest): Watch {
    const watch = this.below.watch(request);
    const open = (batch: WatchBatch): WatchBatch => ({
      events: batch.events.map((event) => this.#openedEvent(event)),
      revision: batch.revision,
    });
    return {
      ready: watch.ready,
      progress: () => watch.progress(),
      close: () => watch.close(),
      async *[Symbol.asyncIterator]() {
        for await (const batch of watch) yield open(batch);
      },
    };
  }

  compact: Store["compact"] = (revision, options) => this.below.compact(revision, options);
  leaseGrant: Store["leaseGrant"] = (ttl, id) => this.below.leaseGrant(ttl, id);
  leaseKeepAlive: Store["leaseKeepAlive"] = (id) => this.below.leaseKeepAlive(id);
  leaseRevoke: Store["leaseRevoke"] = (id) => this.below.leaseRevoke(id);
  leaseTimeToLive: Store["leaseTimeToLive"] = (id, withKeys) => this.below.leaseTimeToLive(id, withKeys);
  leases: Store["leases"] = () => this.below.leases();
  revision: Store["revision"] = () => this.below.revision();
  status: Store["status"] = () => this.below.status();
  close: Store["close"] = () => this.below.close();

  async defragment(): Promise<void> {
    await this.below.defragment?.();
  }

  async alarms(): Promise<readonly StoreAlarm[]> {
    return (await this.below.alarms?.()) ?? [];
  }

  async disarm(alarm: StoreAlarm): Promise<void> {
    await this.below.disarm?.(alarm);
  }

  async hash(
    revision: Revision = 0,
  ): Promise<{ hash: number; revision: Revision; compactRevision: Revision }> {
    const { compactRevision } = await this.status();
    return hashPairs(this, revision, () => compactRevision);
  }

  /**
   * Seals everything under the prefixes that is plain or under another than the active key, while the
   * store serves. Each rewritten pair is an ordinary change. Afterwards old keys can be taken out.
   */
  async rewrite(prefixes: readonly BytesLike[], signal?: AbortSignal): Promise<{ rewritten: number }> {
    const call = signal ? { signal } : {};
    let rewritten = 0;
    for (const prefix of prefixes) {
      for await (const { kvs } of pagesOf(this.below, prefixRange(prefix), 0, call))
        for (const kv of kvs) if (await this.#rewriteOne(kv, call)) rewritten++;
    }
    return { rewritten };
  }

  async #rewriteOne(kv: KeyValue, call: CallOptions): Promise<boolean> {
    if (isEnvelope(kv.value) && keyIdOf(kv.value) === this.#keys.active.id) return false;
    const { value } = this.#open(kv);
    const { succeeded } = await this.below.txn(
      {
        compare: [{ key: kv.key, target: "mod", result: "equal", operand: kv.modRevision }],
        success: [{ type: "put", key: kv.key, value: this.#seal(kv.key, value), ignoreLease: true }],
      },
      call,
    );
    // Changed meanwhile: whoever changed it sealed it with the active key.
    return succeeded;
  }

  async #checkKeys(prefixes: readonly BytesLike[]): Promise<void> {
    const seen = new Set<string>();
    for (const prefix of prefixes) {
      const { kvs } = await this.below.range({ ...prefixRange(prefix), limit: checkedPairs });
      for (const kv of kvs) {
        if (!isEnvelope(kv.value) || seen.has(keyIdOf(kv.value))) continue;
        this.#open(kv);
        seen.add(keyIdOf(kv.value));
      }
    }
  }

  #covers(key: Buffer): boolean {
    return this.#spans.some((span) => inSpan(span, key));
  }

  #touches(range: KeyRange): boolean {
    const span = spanOf(range);
    return this.#spans.some((each) => overlaps(each, span));
  }

  #seal(key: Buffer, value: Buffer): Buffer {
    return seal(this.#keys.active, key, value, this.#random);
  }

  #open(kv: KeyValue): KeyValue {
    if (!isEnvelope(kv.value)) return kv;
    if (this.#covers(kv.key)) return { ...kv, value: unseal(this.#keys.all, kv.key, kv.value) };
    // Outside of the prefixes it is an envelope of an earlier choice of prefixes, or anybody's bytes that
    // only look like one: those must not break a read.
    try {
      return { ...kv, value: unseal(this.#keys.all, kv.key, kv.value) };
    } catch {
      return kv;
    }
  }

  #opened(result: RangeResult): RangeResult {
    return { ...result, kvs: result.kvs.map((kv) => this.#open(kv)) };
  }

  #openedEvent(event: StoreEvent): StoreEvent {
    const kv = this.#open(event.kv);
    return event.prev ? { type: event.type, kv, prev: this.#open(event.prev) } : { type: event.type, kv };
  }

  #openedTxn(result: TxnResult): TxnResult {
    return { ...result, results: result.results.map((each) => this.#openedResult(each)) };
  }

  #openedResult(result: OpResult): OpResult {
    switch (result.type) {
      case "put":
        return result.prev ? { type: "put", prev: this.#open(result.prev) } : result;
      case "delete":
        return { ...result, prev: result.prev.map((kv) => this.#open(kv)) };
      case "range":
        return { type: "range", range: this.#opened(result.range) };
      case "txn":
        return { type: "txn", txn: this.#openedTxn(result.txn) };
    }
  }

  /** The transaction for the store below; conditions that were decided here are added to `guards`. */
  async #sealed(request: TxnRequest, guards: Compare[], options?: CallOptions): Promise<TxnRequest> {
    const compare: Compare[] = [];
    for (const each of request.compare ?? []) {
      if (each.target !== "value" || !this.#touches(each)) {
        compare.push(each);
        continue;
      }
      const found = await this.below.range(keysOf(each), options);
      guards.push(...stillSo(each, found));
      if (!compareHolds(each, this.#opened(found).kvs)) compare.push(never(each));
    }
    const ops = async (list: readonly Op[] = []): Promise<Op[]> => {
      const sealed: Op[] = [];
      for (const op of list) sealed.push(await this.#sealedOp(op, guards, options));
      return sealed;
    };
    return { compare, success: await ops(request.success), failure: await ops(request.failure) };
  }

  async #sealedOp(op: Op, guards: Compare[], options?: CallOptions): Promise<Op> {
    if (op.type === "txn") return { type: "txn", ...(await this.#sealed(op, guards, options)) };
    if (op.type === "range" && op.sort?.by === "value" && this.#touches(op))
      throw new CodedError(
        "unsupported",
        "sorting encrypted values inside a transaction is not possible: sort the answer",
      );
    if (op.type !== "put" || op.ignoreValue === true) return op;
    const key = toBytes(op.key);
    return this.#covers(key) ? { ...op, value: this.#seal(key, toBytes(op.value)) } : op;
  }
}

/** A condition that never holds. */
function never(range: KeyRange): Compare {
  return { key: range.key, target: "version", result: "less", operand: 0 };
}

/** The store that holds what is on disk: below encryption, if there is any. */
export function storedForm(store: Store): Store {
  return store instanceof EncryptedStore ? store.below : store;
}
