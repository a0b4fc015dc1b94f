/**
 * The store that every driver with a log becomes: plans requests, queues writes, serves watches,
 * ends leases, compacts. All decisions are here or in what this file composes; all data is in the
 * backend.
 */
import { CodedError, type Edges } from "@kontinuum/std";
import type {
  CallOptions,
  LeaseId,
  LeaseInfo,
  RangeRequest,
  RangeResult,
  Revision,
  Store,
  StoreAlarm,
  StoreStatus,
  TxnRequest,
  TxnResult,
  Watch,
  WatchRequest,
} from "../contract.ts";
import {
  compacted,
  fault,
  futureRevision,
  leaseNotFound,
  leaseText,
  reasonOf,
  storeClosed,
} from "../faults.ts";
import type { Backend, Contents, Needs, Session } from "./backend.ts";
import { Compactor, defaultRetention, type Retention } from "./compactor.ts";
import { hashPairs } from "./contents-hash.ts";
import { evaluate, revoke } from "./evaluate.ts";
import { GroupWriter, type Job } from "./group-writer.ts";
import { LeaseExpiry } from "./lease-expiry.ts";
import { needsOf, planRange, planTxn } from "./request-check.ts";
import { answerRange } from "./selection.ts";
import { WatchHub } from "./watch-hub.ts";

/** Longest lease in seconds; etcd's bound. */
const maxLeaseTtl = 9_000_000_000;

/** Looks at a lease only, or at its keys as well. */
const needsLease = (id: LeaseId, keys = false): Needs => ({
  scans: [],
  leases: [id],
  leaseKeys: keys ? [id] : [],
});

/** A {@link Store} over a {@link Backend}. */
export class EngineStore implements Store {
  readonly #backend: Backend;
  readonly #edges: Edges;
  readonly #writer: GroupWriter;
  readonly #hub: WatchHub;
  readonly #expiry: LeaseExpiry;
  readonly #compactor: Compactor;
  #closing: Promise<void> | undefined;
  /** The revision at which a write found no room. A later one shows that there is room again. */
  #fullAt: Revision | undefined;

  constructor(backend: Backend, edges: Edges, retention: Partial<Retention> = {}) {
    this.#backend = backend;
    this.#edges = edges;
    this.#writer = new GroupWriter(backend, edges.clock);
    this.#hub = new WatchHub(backend, edges);
    this.#expiry = new LeaseExpiry(backend, edges, (id) => this.#expire(id));
    this.#compactor = new Compactor(backend, edges, { ...defaultRetention, ...retention });
    this.#expiry.start();
    this.#compactor.start();
  }

  async range(request: RangeRequest, options?: CallOptions): Promise<RangeResult> {
    this.#checkOpen(options);
    const plan = planRange(request);
    const found = await this.#backend.scan(plan.scan, options);
    return answerRange(plan, found, found.at);
  }

  async txn(request: TxnRequest, options?: CallOptions): Promise<TxnResult> {
    this.#checkOpen(options);
    const plan = planTxn(request);
    const result = await this.#submit(
      { needs: needsOf(plan), bytes: plan.bytes, run: (session) => evaluate(session, plan) },
      options?.signal,
    );
    this.#compactor.grown(result.revision);
    return result;
  }

  watch(request: WatchRequest): Watch {
    this.#checkOpen();
    return this.#hub.watch(request);
  }

  async compact(revision: Revision, options?: CallOptions): Promise<void> {
    this.#checkOpen(options);
    const position = await this.#backend.position(options);
    if (!Number.isSafeInteger(revision) || revision > position.revision)
      throw futureRevision(revision, position.revision);
    if (revision <= position.compactRevision) throw compacted(revision, position.compactRevision);
    await this.#backend.setCompact(revision);
    this.#compactor.sweepSoon();
  }

  async leaseGrant(ttl: number, id: LeaseId = 0n): Promise<LeaseInfo> {
    this.#checkOpen();
    if (!Number.isFinite(ttl) || ttl > maxLeaseTtl)
      throw fault("lease_ttl", `a lease lasts at most ${maxLeaseTtl} seconds`);
    const grantedTtl = Math.max(1, Math.ceil(ttl));
    const chosen = id === 0n ? this.#newLeaseId() : id;
    await this.#write(needsLease(chosen), (session) => {
      if (session.hasLease(chosen))
        throw fault("lease_exists", `lease ${leaseText(chosen)} exists already: choose another id`);
      session.putLease(chosen, grantedTtl);
    });
    this.#expiry.within(grantedTtl * 1_000);
    return { id: chosen, grantedTtl, ttl: grantedTtl, keys: [] };
  }

  async leaseKeepAlive(id: LeaseId): Promise<LeaseInfo> {
    this.#checkOpen();
    const ttl = await this.#write(needsLease(id), (session) => {
      const lease = session.lease(id);
      // A lease that is due is over, even when its keys are not deleted yet.
      if (!lease || lease.remainingMs <= 0) throw leaseNotFound(id);
      session.putLease(id, lease.ttl);
      return lease.ttl;
    });
    this.#expiry.within(ttl * 1_000);
    return { id, grantedTtl: ttl, ttl, keys: [] };
  }

  async leaseRevoke(id: LeaseId): Promise<{ readonly revision: Revision }> {
    this.#checkOpen();
    return this.#write(needsLease(id, true), (session) => {
      if (!session.hasLease(id)) throw leaseNotFound(id);
      revoke(session, id);
      return { revision: session.revision };
    });
  }

  async leaseTimeToLive(id: LeaseId, withKeys = false): Promise<LeaseInfo> {
    this.#checkOpen();
    const lease = await this.#backend.lease(id);
    if (!lease || lease.remainingMs <= 0) return { id, grantedTtl: 0, ttl: -1, keys: [] };
    const keys = withKeys ? await this.#backend.leaseKeys(id) : [];
    return { id, grantedTtl: lease.ttl, ttl: Math.ceil(lease.remainingMs / 1_000), keys };
  }

  async leases(): Promise<readonly LeaseId[]> {
    this.#checkOpen();
    return this.#backend.leases();
  }

  async revision(): Promise<Revision> {
    this.#checkOpen();
    return (await this.#backend.position()).revision;
  }

  async status(): Promise<StoreStatus> {
    this.#checkOpen();
    const [position, status] = [await this.#backend.position(), await this.#backend.status()];
    return { driver: this.#backend.driver, ...position, ...status };
  }

  async hash(
    revision: Revision = 0,
  ): Promise<{ hash: number; revision: Revision; compactRevision: Revision }> {
    this.#checkOpen();
    return hashPairs(this, revision, () => this.#backend.known.compactRevision);
  }

  /**
   * Fills an empty store with the contents of a backup, revisions included. Fails with
   * `failed_precondition` when the store was ever written to.
   */
  async load(contents: Contents): Promise<void> {
    this.#checkOpen();
    const { revision } = await this.#backend.position();
    const { keys } = await this.#backend.status();
    if (revision > 1 || keys > 0)
      throw new CodedError(
        "failed_precondition",
        `the store to restore into is not empty (revision ${revision}): give a new one`,
      );
    await this.#backend.load(contents);
    this.#expiry.start();
  }

  /** Looks for damage in what is stored; each finding names what is wrong. */
  check(): AsyncIterable<string> {
    this.#checkOpen();
    return this.#backend.check();
  }

  async defragment(): Promise<void> {
    this.#checkOpen();
    await this.#compactor.drain();
    await this.#backend.shrink?.();
  }

  async alarms(): Promise<readonly StoreAlarm[]> {
    this.#checkOpen();
    return this.#fullAt === this.#backend.known.revision ? ["no_space"] : [];
  }

  async disarm(alarm: StoreAlarm): Promise<void> {
    if (alarm === "no_space") this.#fullAt = undefined;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#expiry.close();
    await this.#compactor.close();
    await this.#writer.close();
    this.#hub.close();
    await this.#backend.close();
  }

  #write<T>(needs: Needs, run: (session: Session) => T): Promise<T> {
    return this.#submit({ needs, bytes: 0, run });
  }

  async #submit<T>(job: Job<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await this.#writer.submit(job, signal);
    } catch (error) {
      if (reasonOf(error) === "no_space") this.#fullAt = this.#backend.known.revision;
      throw error;
    }
  }

  async #expire(id: LeaseId): Promise<void> {
    await this.#write(needsLease(id, true), (session) => {
      const lease = session.lease(id);
      if (lease && lease.remainingMs <= 0) revoke(session, id);
    });
  }

  #newLeaseId(): LeaseId {
    const id = Buffer.from(this.#edges.random.bytes(8)).readBigUInt64BE() >> 1n;
    return id === 0n ? 1n : id;
  }

  #checkOpen(options?: CallOptions): void {
    if (this.#closing) throw storeClosed();
    if (options?.signal?.aborted)
      throw new CodedError("cancelled", "the request was cancelled before it began", {
        cause: options.signal.reason,
      });
  }
}
