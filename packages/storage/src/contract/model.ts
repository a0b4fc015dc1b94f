/**
 * The contract once more, as simply as it can be said: a list of whole states, one a revision. Slow, in
 * memory, and written without a look at the engine, so that the two can be compared. Test code only.
 */
import { toBytes, type Compare, type KeyRange, type Op, type TxnRequest } from "../contract.ts";

/** A pair of the model. */
export interface ModelPair {
  readonly value: string;
  readonly create: number;
  readonly mod: number;
  readonly version: number;
  readonly lease: bigint;
}

/** All pairs by key. Keys are text without multi-byte characters here, so text order is byte order. */
export type ModelState = ReadonlyMap<string, ModelPair>;

/** A change as a watch shows it. */
export interface ModelEvent {
  readonly revision: number;
  readonly key: string;
  readonly value: string | undefined;
  readonly prev: string | undefined;
}

interface ModelLease {
  readonly ttl: number;
  until: number;
}

/** What a read answers: `key=value@create/mod/version/lease`. */
export function showPair(key: string, pair: ModelPair): string {
  return `${key}=${pair.value}@${pair.create}/${pair.mod}/${pair.version}/${pair.lease}`;
}

const text = (bytes: string | Uint8Array): string => toBytes(bytes).toString("latin1");

/** The model store. */
export class Model {
  /** State after each revision; index 0 is unused, revision 1 is empty. */
  readonly states: ModelState[] = [new Map(), new Map()];
  readonly events: ModelEvent[] = [];
  readonly leases = new Map<bigint, ModelLease>();
  compactRevision = 0;
  now = 0;

  get revision(): number {
    return this.states.length - 1;
  }

  at(revision: number): ModelState {
    return this.states[revision === 0 ? this.revision : revision] ?? new Map();
  }

  /** Pairs of a range in key order. */
  range(range: KeyRange, state: ModelState): [string, ModelPair][] {
    const start = text(range.key);
    const end = range.end === undefined ? undefined : text(range.end);
    return [...state]
      .filter(([key]) => (end === undefined ? key === start : key >= start && (end === "\0" || key < end)))
      .sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Runs a transaction: what each operation answers as text, or `undefined` when it is refused. */
  txn(request: TxnRequest): { succeeded: boolean; answers: string[] } | undefined {
    const before = this.at(0);
    const chosen = this.#choose(request, before);
    const steps = flatten(chosen.ops);
    for (const op of steps) {
      if (op.type !== "put") continue;
      if (op.ignoreValue === true && !before.has(text(op.key))) return undefined;
      if (op.lease !== undefined && op.lease !== 0n && !this.leases.has(op.lease)) return undefined;
    }
    const state = new Map(before);
    const next = this.revision + 1;
    const events: ModelEvent[] = [];
    const answers = steps.map((op) => this.#step(op, state, next, events));
    this.#commit(state, events);
    return { succeeded: chosen.succeeded, answers };
  }

  grant(id: bigint, ttl: number): boolean {
    if (this.leases.has(id)) return false;
    this.leases.set(id, { ttl, until: this.now + ttl * 1_000 });
    return true;
  }

  keepAlive(id: bigint): boolean {
    const lease = this.leases.get(id);
    if (!lease) return false;
    lease.until = this.now + lease.ttl * 1_000;
    return true;
  }

  revoke(id: bigint): boolean {
    if (!this.leases.delete(id)) return false;
    const state = new Map(this.at(0));
    const events: ModelEvent[] = [];
    for (const [key, pair] of this.range({ key: "\0", end: "\0" }, state)) {
      if (pair.lease !== id) continue;
      state.delete(key);
      events.push({ revision: this.revision + 1, key, value: undefined, prev: pair.value });
    }
    this.#commit(state, events);
    return true;
  }

  /** Time passes; leases that are due end, soonest first. */
  pass(ms: number): void {
    this.now += ms;
    const due = [...this.leases].filter(([, lease]) => lease.until <= this.now);
    due.sort(([, a], [, b]) => a.until - b.until);
    for (const [id] of due) this.revoke(id);
  }

  compact(revision: number): "ok" | "gone" | "future" {
    if (revision > this.revision) return "future";
    if (revision <= this.compactRevision) return "gone";
    this.compactRevision = revision;
    return "ok";
  }

  #commit(state: ModelState, events: ModelEvent[]): void {
    if (events.length === 0) return;
    this.states.push(state);
    this.events.push(...events);
  }

  #choose(request: TxnRequest, state: ModelState): { succeeded: boolean; ops: (Op | Op[])[] } {
    const succeeded = (request.compare ?? []).every((compare) => this.#holds(compare, state));
    const ops = (succeeded ? request.success : request.failure) ?? [];
    // Nested branches are decided on the state before the whole.
    return {
      succeeded,
      ops: ops.map((op) => (op.type === "txn" ? flatten(this.#choose(op, state).ops) : op)),
    };
  }

  #holds(compare: Compare, state: ModelState): boolean {
    const found = this.range(compare, state).map(([, pair]) => pair);
    const subjects: (ModelPair | undefined)[] = found.length === 0 ? [undefined] : found;
    return subjects.every((pair) => {
      if (compare.target === "value")
        return pair !== undefined && relation(pair.value, text(compare.operand), compare.result);
      if (compare.target === "lease") return relation(pair?.lease ?? 0n, compare.operand, compare.result);
      return relation(pair?.[compare.target] ?? 0, compare.operand, compare.result);
    });
  }

  #step(op: Op, state: Map<string, ModelPair>, next: number, events: ModelEvent[]): string {
    if (op.type === "range") {
      const inPast = op.revision !== undefined && op.revision > 0;
      const found = this.range(op, inPast ? this.at(op.revision) : state);
      return found.map(([key, pair]) => showPair(key, pair)).join(" ");
    }
    if (op.type === "delete") {
      const found = this.range(op, state);
      for (const [key, pair] of found) {
        state.delete(key);
        events.push({ revision: next, key, value: undefined, prev: pair.value });
      }
      return `deleted ${found.length}`;
    }
    if (op.type === "txn") return "";
    const key = text(op.key);
    const old = state.get(key);
    const value = op.ignoreValue === true ? (old?.value ?? "") : text(op.value);
    state.set(key, {
      value,
      create: old?.create ?? next,
      mod: next,
      version: (old?.version ?? 0) + 1,
      lease: op.lease ?? 0n,
    });
    events.push({ revision: next, key, value, prev: old?.value });
    return `put over ${old?.value ?? "nothing"}`;
  }
}

function relation<T extends string | number | bigint>(a: T, b: T, result: Compare["result"]): boolean {
  return { equal: a === b, not_equal: a !== b, greater: a > b, less: a < b }[result];
}

function flatten(ops: readonly (Op | Op[])[]): Op[] {
  return ops.flatMap((op) => (Array.isArray(op) ? op : [op]));
}
