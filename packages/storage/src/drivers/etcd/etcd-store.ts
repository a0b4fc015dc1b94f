/**
 * The drivers `etcd://`, `grpc://` and `unix://`: a store behind an etcd3 endpoint, with the server's own
 * semantics. Transactions, leases, compaction and watches are the server's; this side translates, keeps
 * watches alive and gives every failure a code.
 */
import { create } from "@bufbuild/protobuf";
import { CodedError, isCoded, type Edges } from "@kontinuum/std";
import {
  prefixRange,
  toBytes,
  type BytesLike,
  type CallOptions,
  type LeaseId,
  type LeaseInfo,
  type RangeRequest,
  type RangeResult,
  type Revision,
  type Store,
  type StoreAlarm,
  type StoreStatus,
  type TxnRequest,
  type TxnResult,
  type Watch,
  type WatchRequest,
} from "../../contract.ts";
import { identity } from "../../etcd/call.ts";
import { hashPairs } from "../../engine/contents-hash.ts";
import { maxRequestBytes } from "../../engine/request-check.ts";
import { SharedRead } from "../../engine/shared-read.ts";
import {
  alarmNames,
  rangeMessage,
  rangeResultFrom,
  toBuffer,
  txnMessage,
  txnResultFrom,
} from "../../etcd/messages.ts";
import { fromWire } from "../../etcd/status-text.ts";
import { compacted, fault, leaseNotFound, reasonOf, storeClosed } from "../../faults.ts";
import * as rpc from "../../gen/etcd/etcdserverpb/rpc_pb.ts";
import { callTimeoutMs, Channel, type Clients, type EtcdTarget } from "./channel.ts";
import { EtcdWatch } from "./etcd-watch.ts";
import { openRequest, Overview } from "./overview.ts";

/** Times a read is tried, over all endpoints. */
const maxReadAttempts = 4;
/** Pause before a read is tried again, milliseconds, doubled each time. */
const readRetryMs = 50;

/** Longest time that giving space back may take, milliseconds. */
const defragmentTimeoutMs = 10 * 60_000;

const firstKey = Buffer.from([0]);
const { GET, DEACTIVATE } = rpc.AlarmRequest_AlarmAction;

/** A {@link Store} behind an etcd3 endpoint. */
class EtcdStore implements Store {
  readonly #channel: Channel;
  readonly #edges: Edges;
  readonly #driver: string;
  readonly #watches = new Set<EtcdWatch>();
  #quirks: Promise<Quirks> | undefined;
  #closed = false;
  readonly #revision = new SharedRead(() => this.#readRevision());
  readonly #overview: Overview;
  /** This user may not watch the whole key space: the server's own answers must do. */
  #seesOnlyParts = false;

  /** `driver` is what the status names. */
  constructor(target: EtcdTarget, edges: Edges, driver: string) {
    this.#channel = new Channel(target);
    this.#edges = edges;
    this.#driver = driver;
    this.#overview = new Overview({
      channel: this.#channel,
      clock: edges.clock,
      revision: () => this.revision(),
    });
  }

  async range(request: RangeRequest, options: CallOptions = {}): Promise<RangeResult> {
    const asked = request.revision ?? 0;
    try {
      const answer = await this.#read((c, o) => c.kv.range(rangeMessage(request), o), options);
      return rangeResultFrom(answer, Number(answer.header?.revision ?? 0n));
    } catch (error) {
      throw await this.#explained(error, asked, request.key);
    }
  }

  async txn(request: TxnRequest, options: CallOptions = {}): Promise<TxnResult> {
    try {
      const answer = await this.#once((c, o) => c.kv.txn(txnMessage(request), o), options);
      return txnResultFrom(answer, Number(answer.header?.revision ?? 0n));
    } catch (error) {
      throw await this.#explained(error, 0, firstKey);
    }
  }

  watch(request: WatchRequest): Watch {
    if (this.#closed) throw storeClosed();
    const watch = new EtcdWatch(
      {
        channel: this.#channel,
        edges: this.#edges,
        overview: () => this.#chooseOverview(),
        overviewRefused: () => (this.#seesOnlyParts = true),
        checkStart: (start, watched) => this.#checkStart(start, watched),
        forget: (ended) => {
          this.#watches.delete(ended);
          if (this.#watches.size === 0) this.#overview.stop();
        },
      },
      request,
    );
    this.#watches.add(watch);
    return watch;
  }

  async compact(revision: Revision, options: CallOptions = {}): Promise<void> {
    try {
      await this.#once((c, o) => c.kv.compact({ revision: BigInt(revision) }, o), options);
    } catch (error) {
      throw await this.#explained(error, revision, firstKey);
    }
  }

  async leaseGrant(ttl: number, id: LeaseId = 0n): Promise<LeaseInfo> {
    if (!Number.isFinite(ttl)) throw fault("lease_ttl", "a lease needs a time to live in seconds");
    const answer = await this.#once((c, o) => c.lease.leaseGrant({ TTL: BigInt(Math.ceil(ttl)), ID: id }, o));
    const granted = Number(answer.TTL);
    return { id: answer.ID, grantedTtl: granted, ttl: granted, keys: [] };
  }

  async leaseKeepAlive(id: LeaseId): Promise<LeaseInfo> {
    return this.#once(async (clients, options) => {
      const requests = (async function* () {
        yield create(rpc.LeaseKeepAliveRequestSchema, { ID: id });
      })();
      for await (const { TTL } of clients.lease.leaseKeepAlive(requests, options)) {
        const ttl = Number(TTL);
        if (ttl <= 0) throw leaseNotFound(id);
        return { id, grantedTtl: ttl, ttl, keys: [] };
      }
      throw fault("lost", "the store ended the keep-alive without an answer");
    });
  }

  async leaseRevoke(id: LeaseId): Promise<{ readonly revision: Revision }> {
    const answer = await this.#once((c, o) => c.lease.leaseRevoke({ ID: id }, o));
    return { revision: Number(answer.header?.revision ?? 0n) };
  }

  async leaseTimeToLive(id: LeaseId, withKeys = false): Promise<LeaseInfo> {
    const answer = await this.#read((c, o) => c.lease.leaseTimeToLive({ ID: id, keys: withKeys }, o));
    const ttl = Number(answer.TTL);
    // A lease that is due is over, even while the server has not removed it yet.
    if (ttl <= 0 && Number(answer.grantedTTL) === 0) return { id, grantedTtl: 0, ttl: -1, keys: [] };
    const keys = answer.keys.map(toBuffer).sort((a, b) => a.compare(b));
    return { id, grantedTtl: Number(answer.grantedTTL), ttl: Math.max(0, ttl), keys };
  }

  async leases(): Promise<readonly LeaseId[]> {
    const answer = await this.#read((c, o) => c.lease.leaseLeases({}, o));
    return answer.leases.map((lease) => lease.ID);
  }

  revision(): Promise<Revision> {
    return this.#revision.get();
  }

  async #readRevision(): Promise<Revision> {
    try {
      // The least a linearizable read can be: one key that need not exist.
      return (await this.range({ key: firstKey, countOnly: true })).revision;
    } catch (error) {
      if (!isCoded(error, "permission_denied")) throw error;
      // A user who may not read that key: what a member knows is the best there is.
      const status = await this.#read((c, o) => c.maintenance.status({}, o));
      return Number(status.header?.revision ?? 0n);
    }
  }

  async status(): Promise<StoreStatus> {
    const status = await this.#read((c, o) => c.maintenance.status({}, o));
    const { count } = await this.range({ ...prefixRange(""), countOnly: true });
    return {
      driver: this.#driver,
      revision: Number(status.header?.revision ?? 0n),
      compactRevision: await this.#compactRevision(),
      sizeBytes: Number(status.dbSize),
      sizeInUseBytes: Number(status.dbSizeInUse),
      keys: count,
    };
  }

  async hash(
    revision: Revision = 0,
  ): Promise<{ hash: number; revision: Revision; compactRevision: Revision }> {
    const compactRevision = await this.#compactRevision();
    return hashPairs(this, revision, () => compactRevision);
  }

  async *snapshot({ signal }: CallOptions = {}): AsyncIterable<Uint8Array> {
    const { clients } = await this.#channel.stream();
    try {
      for await (const { blob } of clients.snapshots.snapshot({}, signal ? { signal } : {})) yield blob;
    } catch (error) {
      throw fromWire(error);
    }
  }

  async defragment(): Promise<void> {
    if (this.#closed) throw storeClosed();
    await this.#channel.call((clients) =>
      clients.maintenance.defragment({}, { timeoutMs: defragmentTimeoutMs }),
    );
  }

  async alarms(): Promise<readonly StoreAlarm[]> {
    const { alarms } = await this.#read((c, o) => c.maintenance.alarm({ action: GET }, o));
    const found = alarms.map(({ alarm }) => alarmNames.get(alarm)).filter((name) => name !== undefined);
    return [...new Set(found)];
  }

  async disarm(wanted: StoreAlarm): Promise<void> {
    const { alarms } = await this.#read((c, o) => c.maintenance.alarm({ action: GET }, o));
    for (const { memberID, alarm } of alarms)
      if (alarmNames.get(alarm) === wanted)
        await this.#once((c, o) => c.maintenance.alarm({ action: DEACTIVATE, memberID, alarm }, o));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#overview.stop();
    for (const watch of this.#watches) watch.storeClosed();
    this.#channel.close();
  }

  async #once<T>(
    work: (clients: Clients, options: { timeoutMs: number; signal?: AbortSignal }) => Promise<T>,
    { signal }: CallOptions = {},
  ): Promise<T> {
    if (this.#closed) throw storeClosed();
    if (signal?.aborted)
      throw new CodedError("cancelled", "the request was cancelled before it began", {
        cause: signal.reason,
      });
    const options = { timeoutMs: callTimeoutMs, ...(signal ? { signal } : {}) };
    return this.#channel.call((clients) => work(clients, options));
  }

  /** Reads are harmless to repeat, so a lost endpoint or a new leader is not the caller's concern. */
  async #read<T>(
    work: (clients: Clients, options: { timeoutMs: number; signal?: AbortSignal }) => Promise<T>,
    options: CallOptions = {},
  ): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(work, options);
      } catch (error) {
        const reason = reasonOf(error);
        if (attempt === maxReadAttempts || this.#closed || (reason !== "lost" && reason !== "timeout"))
          throw error;
        await this.#edges.clock.sleep(readRetryMs * 2 ** (attempt - 1), options.signal);
      }
    }
  }

  /** Adds to a refusal what the caller needs and the wire does not say. */
  async #explained(error: unknown, asked: Revision, key: BytesLike): Promise<unknown> {
    switch (reasonOf(error)) {
      case "compacted":
        return compacted(asked, await this.#compactRevision(key));
      case "request_too_large":
        return fault(
          "request_too_large",
          `the request is larger than the store takes (${maxRequestBytes} bytes)`,
          {
            cause: error,
          },
        );
      default:
        return error;
    }
  }

  /** etcd has no call for it; a watch of the distant past is refused with it. Asked on a key that may be read. */
  async #compactRevision(at: BytesLike = firstKey): Promise<Revision> {
    const abort = new AbortController();
    const key = toBytes(at);
    try {
      await this.#read((c, o) => c.kv.range({ key, revision: 1n, countOnly: true }, o));
      return 0;
    } catch (error) {
      if (reasonOf(error) !== "compacted") throw error;
    }
    const { clients } = await this.#channel.stream();
    const request = create(rpc.WatchCreateRequestSchema, { key, startRevision: 1n });
    const requests = openRequest(request, abort.signal);
    try {
      for await (const response of clients.watch.watch(requests, {
        signal: abort.signal,
        timeoutMs: callTimeoutMs,
      }))
        if (response.canceled) return Number(response.compactRevision);
    } finally {
      abort.abort();
    }
    return 0;
  }

  /** What this server is known to get wrong; asked once. */
  #serverQuirks(): Promise<Quirks> {
    this.#quirks ??= this.#read((c, o) => c.maintenance.status({}, o)).then(
      // Our own face names a version for etcd's clients but has none of its faults.
      ({ version, header }) => quirksOf(header?.clusterId === identity.clusterId ? "" : version),
      (error: unknown) => {
        // Not allowed to ask: a face like ours, whose rules are not etcd's of old.
        if (isCoded(error, "permission_denied") || isCoded(error, "unsupported")) return quirksOf("");
        this.#quirks = undefined;
        throw error;
      },
    );
    return this.#quirks;
  }

  /** Who finds out where watches stand, when the server cannot be asked. */
  async #chooseOverview(): Promise<Overview | undefined> {
    const { earlyProgress } = await this.#serverQuirks();
    return earlyProgress && !this.#seesOnlyParts ? this.#overview : undefined;
  }

  async #checkStart(start: Revision, { key }: WatchRequest): Promise<void> {
    if (!(await this.#serverQuirks()).lostTombstones) return;
    const compactRevision = await this.#compactRevision(key);
    if (compactRevision > 0 && start <= compactRevision) throw compacted(start, compactRevision);
  }
}

/** What older servers get wrong. */
interface Quirks {
  /** A progress request is answered without regard to events under way (before 3.4.25 and 3.5.8). */
  readonly earlyProgress: boolean;
  /** A watch from the compaction mark may miss a deletion at it (before 3.4.34 and 3.5.16). */
  readonly lostTombstones: boolean;
}

function quirksOf(version: string): Quirks {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  const before = (patch34: number, patch35: number): boolean =>
    version !== "" &&
    major === 3 &&
    (minor < 4 || (minor === 4 && patch < patch34) || (minor === 5 && patch < patch35));
  return { earlyProgress: before(25, 8), lostTombstones: before(34, 16) };
}

/** Opens a store behind an etcd3 endpoint; connects on first use. */
export function connectEtcd(target: EtcdTarget, edges: Edges, driver = "etcd"): Store {
  return new EtcdStore(target, edges, driver);
}
