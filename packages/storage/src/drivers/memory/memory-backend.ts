/**
 * The `memory` driver: log, history of each key and leases in this process, gone with it.
 *
 * Each key has the list of its versions, oldest first; the log is an array that compaction shortens
 * from the front. Nothing here waits, so a write is atomic by being one turn of the event loop; it is
 * undone from the log's tail when the work throws.
 */
import { assert, type Edges } from "@kontinuum/std";
import type { KeyValue, LeaseId, Revision } from "../../contract.ts";
import type {
  Backend,
  BackendStatus,
  Change,
  Contents,
  LeaseRecord,
  LogPage,
  Needs,
  Position,
  Scan,
  Scanned,
  Session,
} from "../../engine/backend.ts";
import { LeaseDeadlines } from "../../engine/lease-deadlines.ts";
import { inSpan, type Span } from "../../engine/span.ts";
import { compacted, futureRevision } from "../../faults.ts";
import { OrderedMap } from "./ordered-map.ts";

/** Log entries looked at between two looks at the clock while sweeping. */
const sweepStep = 256;

/** A key and its retained versions, oldest first; a delete is a version too. */
interface Versions {
  readonly list: Change[];
}

/** A backend without a disk. */
export class MemoryBackend implements Backend {
  readonly driver = "memory";
  readonly exclusive = true;
  readonly #edges: Edges;
  readonly #keys = new OrderedMap<Versions>();
  readonly #bound = new Map<LeaseId, Set<string>>();
  readonly #deadlines: LeaseDeadlines;
  #log: Change[] = [];
  #revision: Revision = 1;
  #compactRevision: Revision = 0;
  #live = 0;
  #liveBytes = 0;
  #listener: ((changes: readonly Change[]) => void) | undefined;

  constructor(edges: Edges) {
    this.#edges = edges;
    this.#deadlines = new LeaseDeadlines(edges.clock);
  }

  get known(): Position {
    return { revision: this.#revision, compactRevision: this.#compactRevision };
  }

  position(): Promise<Position> {
    return Promise.resolve(this.known);
  }

  async scan(scan: Scan): Promise<Scanned & { at: Revision }> {
    if (scan.revision > this.#revision) throw futureRevision(scan.revision, this.#revision);
    if (scan.revision > 0 && scan.revision < this.#compactRevision)
      throw compacted(scan.revision, this.#compactRevision);
    return { ...this.#scan(scan), at: this.#revision };
  }

  async write(_needs: Needs, work: (session: Session) => void): Promise<void> {
    const before = this.#log.length;
    const revision = this.#revision;
    try {
      this.#deadlines.atomically(() => work(this.#session()));
    } catch (error) {
      for (const change of this.#log.splice(before).reverse()) this.#undo(change);
      this.#revision = revision;
      throw error;
    }
    if (this.#log.length > before) this.#listener?.(this.#log.slice(before));
  }

  async log(request: { from: Revision; span: Span; prevKv: boolean; limit: number }): Promise<LogPage> {
    const { from, span, limit } = request;
    if (from < this.#compactRevision) throw compacted(from, this.#compactRevision);
    const start = this.#indexOf(from);
    let stop = Math.min(this.#log.length, start + limit);
    // A revision is never cut in two.
    while (stop < this.#log.length && this.#revisionAt(stop) === this.#revisionAt(stop - 1)) stop++;
    const changes = this.#log
      .slice(start, stop)
      .filter((change) => inSpan(span, change.kv.key))
      .map((change) => this.#withoutLostPrev(change));
    const through = stop === this.#log.length ? this.#revision : this.#revisionAt(stop - 1);
    return { changes, through };
  }

  onCommit(listener: (changes: readonly Change[]) => void): void {
    this.#listener = listener;
  }

  async setCompact(revision: Revision): Promise<void> {
    this.#compactRevision = Math.max(this.#compactRevision, revision);
  }

  async sweep(budgetMs: number): Promise<boolean> {
    const end = this.#indexOf(this.#compactRevision);
    const started = this.#edges.clock.monotonic();
    let done = 0;
    while (done < end) {
      for (const change of this.#log.slice(done, done + Math.min(sweepStep, end - done)))
        this.#prune(change.kv.key);
      done = Math.min(end, done + sweepStep);
      if (this.#edges.clock.monotonic() - started >= budgetMs) break;
    }
    // What was changed at the mark itself may have superseded older versions.
    for (let i = end; i < this.#log.length && this.#revisionAt(i) === this.#compactRevision; i++)
      this.#prune(this.#log[i]?.kv.key ?? Buffer.alloc(0));
    this.#log = this.#log.slice(done);
    return done < end;
  }

  async lease(id: LeaseId): Promise<LeaseRecord | undefined> {
    return this.#deadlines.get(id);
  }

  async leases(): Promise<readonly LeaseId[]> {
    return this.#deadlines.ids();
  }

  async leaseKeys(id: LeaseId): Promise<readonly Buffer[]> {
    return this.#leaseKeys(id);
  }

  async due(limit: number): Promise<{ ids: readonly LeaseId[]; nextMs: number | undefined }> {
    return this.#deadlines.due(limit);
  }

  async status(): Promise<BackendStatus> {
    let history = 0;
    for (const change of this.#log) history += change.kv.key.length + change.kv.value.length;
    const bytes = this.#liveBytes + history;
    return { sizeBytes: bytes, sizeInUseBytes: bytes, keys: this.#live };
  }

  async load({ pairs, leases, revision }: Contents): Promise<void> {
    for (const { id, ttl, remainingSeconds } of leases) this.#deadlines.start(id, ttl, remainingSeconds);
    for await (const kvs of pairs) {
      for (const kv of kvs) {
        this.#keys.set(kv.key, { list: [{ type: "put", kv }] });
        this.#count(kv, 1);
      }
    }
    this.#revision = revision;
    this.#compactRevision = revision;
  }

  async *check(): AsyncGenerator<string, void, undefined> {
    // Nothing lies outside of this process: there is nothing that could have been damaged.
  }

  async close(): Promise<void> {
    this.#listener = undefined;
  }

  #session(): Session {
    const revision = (): Revision => this.#revision;
    const compactRevision = (): Revision => this.#compactRevision;
    return {
      get revision() {
        return revision();
      },
      get compactRevision() {
        return compactRevision();
      },
      get: (key) => this.#newest(key),
      scan: (scan) => this.#scan(scan),
      hasLease: (id) => this.#deadlines.get(id) !== undefined,
      lease: (id) => this.#deadlines.get(id),
      leaseKeys: (id) => this.#leaseKeys(id),
      apply: (changes) => this.#apply(changes),
      putLease: (id, ttl) => void this.#deadlines.start(id, ttl),
      dropLease: (id) => this.#deadlines.drop(id),
    };
  }

  #scan(scan: Scan): Scanned {
    const kvs: KeyValue[] = [];
    let count = 0;
    const { start, end, single } = scan.span;
    const found = single ? present(this.#keys.get(start)) : this.#keys.between(start, end, scan.descending);
    for (const versions of found) {
      const kv = at(versions, scan.revision);
      if (!kv) continue;
      count++;
      if (scan.countOnly !== true && (scan.limit === 0 || kvs.length < scan.limit)) kvs.push(kv);
      if (scan.uncounted === true && kvs.length === scan.limit) break;
    }
    return { kvs, count };
  }

  #newest(key: Buffer): KeyValue | undefined {
    const versions = this.#keys.get(key);
    return versions && at(versions, 0);
  }

  #apply(changes: readonly Change[]): void {
    this.#revision++;
    for (const change of changes) {
      assert(change.kv.modRevision === this.#revision, "a change carries the revision it makes");
      const { key } = change.kv;
      const versions = this.#keys.get(key);
      if (versions) versions.list.push(change);
      else this.#keys.set(key, { list: [change] });
      this.#count(change.prev, -1);
      if (change.type === "put") this.#count(change.kv, 1);
      this.#log.push(change);
    }
  }

  #undo(change: Change): void {
    const versions = this.#keys.get(change.kv.key);
    assert(versions?.list.pop() === change, "the last version of a key is the one undone");
    if (versions.list.length === 0) this.#keys.delete(change.kv.key);
    if (change.type === "put") this.#count(change.kv, -1);
    this.#count(change.prev, 1);
  }

  /** Books a live pair in or out. */
  #count(kv: KeyValue | undefined, by: 1 | -1): void {
    if (!kv) return;
    this.#live += by;
    this.#liveBytes += by * (kv.key.length + kv.value.length);
    if (kv.lease === 0n) return;
    const name = kv.key.toString("latin1");
    const bound = this.#bound.get(kv.lease) ?? new Set();
    if (by === 1) this.#bound.set(kv.lease, bound.add(name));
    else if (bound.delete(name) && bound.size === 0) this.#bound.delete(kv.lease);
  }

  #leaseKeys(id: LeaseId): Buffer[] {
    return [...(this.#bound.get(id) ?? [])].sort().map((name) => Buffer.from(name, "latin1"));
  }

  /** Drops versions of a key that no read at or above the mark can see. */
  #prune(key: Buffer): void {
    const versions = this.#keys.get(key);
    if (!versions) return;
    const { list } = versions;
    let keep = 0;
    while ((list[keep + 1]?.kv.modRevision ?? Infinity) <= this.#compactRevision) keep++;
    const oldest = list[keep];
    if (oldest?.type === "delete" && oldest.kv.modRevision < this.#compactRevision) keep++;
    list.splice(0, keep);
    if (list.length === 0) this.#keys.delete(key);
  }

  #withoutLostPrev(change: Change): Change {
    return change.prev && change.kv.modRevision <= this.#compactRevision
      ? { type: change.type, kv: change.kv }
      : change;
  }

  #revisionAt(index: number): Revision {
    return this.#log[index]?.kv.modRevision ?? this.#revision;
  }

  /** Index of the first log entry at or above `revision`. */
  #indexOf(revision: Revision): number {
    let low = 0;
    let high = this.#log.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#revisionAt(middle) < revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function* present<T>(value: T | undefined): Generator<T, void, undefined> {
  if (value !== undefined) yield value;
}

/** The pair at a revision, 0 for the newest. */
function at(versions: Versions, revision: Revision): KeyValue | undefined {
  const { list } = versions;
  let i = list.length - 1;
  if (revision > 0) while (i >= 0 && (list[i]?.kv.modRevision ?? 0) > revision) i--;
  const change = list[i];
  return change?.type === "put" ? change.kv : undefined;
}
