/**
 * The same random program for a real etcd and for our face: whatever they answer differently is found here.
 *
 * A program is a list of calls made from a seed. Each is made on every server in turn and the answers are compared as they
 * are on the wire: revisions, errors with their codes and texts, order, counts, previous pairs. Only what names a server
 * (ids of cluster and member, terms) and what depends on time is left out.
 */
import { create, toJson, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Client } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Random } from "@kontinuum/std";
import * as rpc from "../../packages/storage/src/gen/etcd/etcdserverpb/rpc_pb.ts";
import {
  Event_EventType,
  EventSchema,
  type Event,
} from "../../packages/storage/src/gen/etcd/mvccpb/kv_pb.ts";

const { NOPUT, NODELETE } = rpc.WatchCreateRequest_FilterType;
const { NONE, ASCEND, DESCEND } = rpc.RangeRequest_SortOrder;
const { KEY, VERSION, CREATE, MOD, VALUE } = rpc.RangeRequest_SortTarget;
const { EQUAL, GREATER, LESS, NOT_EQUAL } = rpc.Compare_CompareResult;
const targets = rpc.Compare_CompareTarget;

/** The generated clients of one server. */
export interface Wire {
  readonly name: string;
  readonly kv: Client<typeof rpc.KV>;
  readonly lease: Client<typeof rpc.Lease>;
  readonly watch: Client<typeof rpc.Watch>;
  close(): void;
}

/** Connects to `host:port`. */
export function wireTo(name: string, endpoint: string): Wire {
  const baseUrl = `http://${endpoint}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const transport = createGrpcTransport({ baseUrl, sessionManager, acceptCompression: [] });
  return {
    name,
    kv: createClient(rpc.KV, transport),
    lease: createClient(rpc.Lease, transport),
    watch: createClient(rpc.Watch, transport),
    close: () => sessionManager.abort(),
  };
}

/** One call of a program. */
export interface Step {
  /** What it is, for the report of a difference. */
  readonly text: string;
  /** The mark that it asks for, if it is a compaction. */
  readonly compactsAt?: number;
  run(wire: Wire): Promise<unknown>;
}

/** What a server said, comparable with what others say: an answer, or a refusal. */
export async function answerOf(wire: Wire, step: Step): Promise<string> {
  try {
    return JSON.stringify(await step.run(wire), withoutNames, 1);
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return `refused: ${Code[code]}: ${rawMessage}`;
  }
}

/** Leaves out what names a server or depends on time. */
function withoutNames(key: string, value: unknown): unknown {
  if (["clusterId", "memberId", "raftTerm", "TTL", "watchId"].includes(key)) return undefined;
  return value;
}

const keys = ["a", "b", "c", "aa", "ab", "b\0", "\xff", "z"];
const ends = ["", "", "\0", "b", "c", "ac", "a", "\xff", "a\0"];
const values = ["", "1", "2", "x", "a long value"];
const leases = [11n, 12n, 13n, 14n];

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

/** Makes programs. Keeps an eye on revisions, so that the past and the future are both met. */
export class ProgramMaker {
  readonly #random: Random;
  /** The revision that the store is at; told after each step. */
  revision = 1;
  /** The compaction mark. */
  compacted = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  #pick<T>(options: readonly T[]): T {
    const option = options[this.#random.integer(options.length)];
    if (option === undefined) throw new Error("nothing to pick from");
    return option;
  }

  #chance(share: number): boolean {
    return this.#random.float() < share;
  }

  #key(): Buffer {
    return bytes(this.#chance(0.02) ? "" : this.#pick(keys));
  }

  #revision(): bigint {
    const r = this.#random.integer(10);
    if (r < 5) return 0n;
    if (r < 9) return BigInt(Math.max(1, this.revision - this.#random.integer(12)));
    return BigInt(this.#pick([1, this.revision + 1, this.revision + 100, -1]));
  }

  #bound(): bigint {
    return this.#chance(0.85) ? 0n : BigInt(this.#random.integer(this.revision + 2));
  }

  #range(inTxn = false): rpc.RangeRequest {
    const revision = this.#revision();
    const sortTarget = this.#pick([KEY, VERSION, CREATE, MOD, VALUE]);
    // Known difference: with a target but no order etcd cuts at the limit first and sorts what is left.
    const orders = sortTarget === KEY ? [NONE, ASCEND, DESCEND] : [ASCEND, DESCEND];
    return create(rpc.RangeRequestSchema, {
      key: this.#key(),
      rangeEnd: bytes(this.#pick(ends)),
      // Known difference: inside a transaction etcd takes a negative revision for one before the compaction mark.
      revision: inTxn && revision < 0n ? 0n : revision,
      limit: BigInt(this.#pick([0, 0, 0, 1, 2, 3, -1])),
      sortOrder: this.#pick(orders),
      sortTarget,
      keysOnly: this.#chance(0.2),
      countOnly: this.#chance(0.1),
      serializable: this.#chance(0.1),
      minModRevision: this.#bound(),
      maxModRevision: this.#bound(),
      minCreateRevision: this.#bound(),
      maxCreateRevision: this.#bound(),
    });
  }

  #put(): rpc.PutRequest {
    const keep = this.#random.integer(12);
    return create(rpc.PutRequestSchema, {
      key: this.#key(),
      value: bytes(keep === 0 && this.#chance(0.7) ? "" : this.#pick(values)),
      lease: this.#chance(0.7) ? 0n : this.#pick(leases),
      prevKv: this.#chance(0.3),
      ignoreValue: keep === 0,
      ignoreLease: keep === 1,
    });
  }

  #delete(): rpc.DeleteRangeRequest {
    return create(rpc.DeleteRangeRequestSchema, {
      key: this.#key(),
      rangeEnd: bytes(this.#chance(0.6) ? "" : this.#pick(ends)),
      prevKv: this.#chance(0.4),
    });
  }

  #compare(): rpc.Compare {
    const kinds = [targets.VERSION, targets.CREATE, targets.MOD, targets.VALUE, targets.LEASE];
    const kind = this.#random.integer(kinds.length);
    const number = BigInt(this.#random.integer(this.revision + 2));
    const union = [
      { case: "version", value: BigInt(this.#random.integer(4)) } as const,
      { case: "createRevision", value: number } as const,
      { case: "modRevision", value: number } as const,
      { case: "value", value: bytes(this.#pick(values)) } as const,
      { case: "lease", value: this.#pick([0n, ...leases]) } as const,
    ];
    // Now and then the operand is of another kind than the target says, or left out.
    const mixed = this.#random.integer(20);
    const operand = mixed === 0 ? undefined : union[mixed === 1 ? this.#random.integer(kinds.length) : kind];
    return create(rpc.CompareSchema, {
      key: this.#key(),
      rangeEnd: bytes(this.#chance(0.7) ? "" : this.#pick(ends)),
      result: this.#pick([EQUAL, GREATER, LESS, NOT_EQUAL]),
      target: kinds[kind] ?? targets.VERSION,
      ...(operand ? { targetUnion: operand } : {}),
    });
  }

  #op(depth: number): rpc.RequestOp {
    const kind = this.#random.integer(depth > 2 ? 9 : 11);
    if (kind < 4) return create(rpc.RequestOpSchema, { request: { case: "requestPut", value: this.#put() } });
    if (kind < 6)
      return create(rpc.RequestOpSchema, { request: { case: "requestDeleteRange", value: this.#delete() } });
    if (kind < 9)
      return create(rpc.RequestOpSchema, { request: { case: "requestRange", value: this.#range(true) } });
    return create(rpc.RequestOpSchema, { request: { case: "requestTxn", value: this.#txn(depth + 1) } });
  }

  #many<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#random.integer(most + 1) }, make);
  }

  #txn(depth: number): rpc.TxnRequest {
    // An operation that is none, alone: among others etcd may name another mistake first.
    if (depth === 0 && this.#chance(0.01))
      return create(rpc.TxnRequestSchema, { failure: [create(rpc.RequestOpSchema)] });
    return create(rpc.TxnRequestSchema, {
      compare: this.#many(2, () => this.#compare()),
      success: this.#many(3, () => this.#op(depth)),
      failure: this.#many(2, () => this.#op(depth)),
    });
  }

  #watch(): rpc.WatchCreateRequest {
    const filter = this.#random.integer(6);
    const start = Math.max(1, this.revision - this.#random.integer(25));
    return create(rpc.WatchCreateRequestSchema, {
      key: this.#key(),
      rangeEnd: bytes(this.#pick(ends)),
      // An old etcd may miss a deletion at the mark itself.
      startRevision: BigInt(start === this.compacted ? start + 1 : start),
      prevKv: this.#chance(0.5),
      fragment: this.#chance(0.3),
      filters: filter < 2 ? [filter === 0 ? NOPUT : NODELETE] : [],
    });
  }

  /** Takes note of where the store is after a call. */
  answered(step: Step, answer: string): void {
    const revision = /^\{\s*"header": \{\s*"revision": "(\d+)"/.exec(answer)?.[1];
    if (revision !== undefined) this.revision = Math.max(this.revision, Number(revision));
    if (step.compactsAt !== undefined && revision !== undefined) this.compacted = step.compactsAt;
  }

  /** The next call. */
  next(): Step {
    const kind = this.#random.integer(100);
    if (kind < 24) {
      const request = this.#range();
      return step("range", rpc.RangeRequestSchema, request, async ({ kv }) =>
        toJson(rpc.RangeResponseSchema, await kv.range(request)),
      );
    }
    if (kind < 44) {
      const request = this.#put();
      // Known difference: a put that is wrong in two ways names the lease first, one inside a transaction the key.
      if (request.ignoreValue) request.lease = 0n;
      return step("put", rpc.PutRequestSchema, request, async ({ kv }) =>
        toJson(rpc.PutResponseSchema, await kv.put(request)),
      );
    }
    if (kind < 52) {
      const request = this.#delete();
      return step("delete", rpc.DeleteRangeRequestSchema, request, async ({ kv }) =>
        toJson(rpc.DeleteRangeResponseSchema, await kv.deleteRange(request)),
      );
    }
    if (kind < 80) {
      let request = this.#txn(0);
      while (mayChangeTwice(request)) request = this.#txn(0);
      return step("txn", rpc.TxnRequestSchema, request, async ({ kv }) =>
        toJson(rpc.TxnResponseSchema, await kv.txn(request)),
      );
    }
    if (kind < 83) {
      const revision = BigInt(
        // Known difference: etcd accepts a compaction at 0 once.
        Math.max(1, this.revision - this.#pick([10, 3, 0, -5])),
      );
      const request = create(rpc.CompactionRequestSchema, { revision, physical: this.#chance(0.5) });
      const compact = step("compact", rpc.CompactionRequestSchema, request, async ({ kv }) =>
        toJson(rpc.CompactionResponseSchema, await kv.compact(request)),
      );
      return { ...compact, compactsAt: Number(revision) };
    }
    if (kind < 93) return this.#leaseStep();
    const request = this.#watch();
    return step("watch", rpc.WatchCreateRequestSchema, request, (wire) =>
      replay(wire, request, this.revision),
    );
  }

  #leaseStep(): Step {
    const ID = this.#pick([...leases, 99n]);
    switch (this.#random.integer(5)) {
      case 0:
      case 1: {
        const request = create(rpc.LeaseGrantRequestSchema, {
          ID,
          TTL: this.#pick([1000n, 5000n, 9_000_000_001n]),
        });
        return step("grant", rpc.LeaseGrantRequestSchema, request, async ({ lease }) =>
          toJson(rpc.LeaseGrantResponseSchema, await lease.leaseGrant(request)),
        );
      }
      case 2: {
        const request = create(rpc.LeaseRevokeRequestSchema, { ID });
        return step("revoke", rpc.LeaseRevokeRequestSchema, request, async ({ lease }) =>
          toJson(rpc.LeaseRevokeResponseSchema, await lease.leaseRevoke(request)),
        );
      }
      case 3: {
        const request = create(rpc.LeaseTimeToLiveRequestSchema, { ID, keys: this.#chance(0.7) });
        return step("timetolive", rpc.LeaseTimeToLiveRequestSchema, request, async ({ lease }) => {
          const answer = await lease.leaseTimeToLive(request);
          answer.keys.sort(Buffer.compare);
          return toJson(rpc.LeaseTimeToLiveResponseSchema, answer);
        });
      }
      default: {
        const request = create(rpc.LeaseLeasesRequestSchema);
        return step("leases", rpc.LeaseLeasesRequestSchema, request, async ({ lease }) => {
          const answer = await lease.leaseLeases(request);
          answer.leases.sort((x, y) => Number(x.ID - y.ID));
          return toJson(rpc.LeaseLeasesResponseSchema, answer);
        });
      }
    }
  }
}

/**
 * Known difference: what etcd lets pass and we refuse, because one revision would change a key twice. A put in one nested
 * transaction and a delete in a later one; a delete up to the end of the key space, which its check does not recognise.
 */
function mayChangeTwice({ success, failure }: rpc.TxnRequest): boolean {
  return [success, failure].some((ops) => {
    const nested = ops.flatMap(({ request }) => (request.case === "requestTxn" ? [request.value] : []));
    const firstPut = nested.findIndex((txn) => has(txn, isPut));
    const deletesAfter = firstPut >= 0 && nested.slice(firstPut + 1).some((txn) => has(txn, isDelete));
    const whole = create(rpc.TxnRequestSchema, { success: ops });
    return (
      deletesAfter ||
      (has(whole, isPut) && has(whole, isOpenDelete)) ||
      nested.some((txn) => mayChangeTwice(txn))
    );
  });
}

function has({ success, failure }: rpc.TxnRequest, what: (op: rpc.RequestOp) => boolean): boolean {
  return [...success, ...failure].some(
    (op) => what(op) || (op.request.case === "requestTxn" && has(op.request.value, what)),
  );
}

const isPut = ({ request }: rpc.RequestOp): boolean => request.case === "requestPut";
const isDelete = ({ request }: rpc.RequestOp): boolean => request.case === "requestDeleteRange";
const isOpenDelete = ({ request }: rpc.RequestOp): boolean =>
  request.case === "requestDeleteRange" && Buffer.from(request.value.rangeEnd).equals(bytes("\0"));

function step<S extends DescMessage>(
  name: string,
  schema: S,
  request: MessageShape<S>,
  run: (wire: Wire) => Promise<unknown>,
): Step {
  return { text: `${name} ${JSON.stringify(toJson(schema, request))}`, run };
}

/**
 * What a watch from the past delivers up to a revision that exists. How many events that are is known from a watch of
 * everything: a watch by itself does not say when it has caught up.
 */
async function replay(wire: Wire, request: rpc.WatchCreateRequest, through: number): Promise<unknown> {
  // The first change is at revision 2.
  if (through < 2 || Number(request.startRevision) > through) return "nothing to replay";
  const whole = create(rpc.WatchCreateRequestSchema, {
    key: bytes("\0"),
    rangeEnd: bytes("\0"),
    startRevision: request.startRevision,
  });
  const all = await watched(wire, whole, (seen) => Number(seen.at(-1)?.kv?.modRevision ?? 0n) >= through);
  // A start that is compacted is refused, everything else begins at least.
  if (typeof all === "string") return watched(wire, request, () => false);
  const wanted = all.filter((event) => passes(request, event)).length;
  const events = await watched(wire, request, (seen) => seen.length >= wanted);
  return typeof events === "string" ? events : events.map((event) => toJson(EventSchema, event));
}

/** Whether an event of the whole key space is one of a watch. */
function passes({ key, rangeEnd, filters }: rpc.WatchCreateRequest, event: Event): boolean {
  const kind = event.type === Event_EventType.DELETE ? NODELETE : NOPUT;
  const at = event.kv?.key ?? bytes("");
  if (filters.includes(kind)) return false;
  if (rangeEnd.length === 0) return Buffer.compare(key, at) === 0;
  const open = rangeEnd.length === 1 && rangeEnd[0] === 0;
  return Buffer.compare(key, at) <= 0 && (open || Buffer.compare(at, rangeEnd) < 0);
}

/** The events of a watch until there are enough, or how it was refused. */
async function watched(
  wire: Wire,
  request: rpc.WatchCreateRequest,
  enough: (seen: readonly Event[]) => boolean,
): Promise<Event[] | string> {
  const abort = new AbortController();
  const options = { signal: abort.signal, timeoutMs: 20_000 };
  const events: Event[] = [];
  try {
    for await (const response of wire.watch.watch(opened(request, abort.signal), options)) {
      if (response.canceled)
        return `refused, compacted at ${response.compactRevision}: ${response.cancelReason}`;
      events.push(...response.events);
      if (!response.fragment && enough(events)) return events;
    }
  } finally {
    abort.abort();
  }
  throw new Error("the watch ended by itself");
}

async function* opened(
  value: rpc.WatchCreateRequest,
  signal: AbortSignal,
): AsyncGenerator<rpc.WatchRequest, void, undefined> {
  yield create(rpc.WatchRequestSchema, { requestUnion: { case: "createRequest", value } });
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
