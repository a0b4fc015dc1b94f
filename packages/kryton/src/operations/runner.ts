/**
 * Runs provider work: claims the next operation of a machine, performs it, writes down how it ended.
 *
 * What always holds: one operation at a time per machine, whatever the number of replicas, because a
 * claim is a key that must not exist; everything written for an operation is fenced by that claim; a
 * claim dies with its replica's lease and the operation is then run again by another, which finds by
 * the intent id what was already made. An operation leaves the queue in the same transaction that
 * writes its end. The request that asked for it plays no part.
 */
import { InvariantError, messageOf, type Edges, type Timer } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { formatTime } from "../model/bytes.ts";
import { isFinal, operationSchema, type Operation } from "../model/operation.ts";
import { ProviderError, type Provider, type ProviderCall } from "../provider-contract/contract.ts";
import { Change, type Fence } from "../store/change.ts";
import { Documents, type Stored } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import type { Lease, ReplicaSession } from "../store/session.ts";
import { WorkBoard } from "./board.ts";
import { perform, type Effect, type Tools } from "./effects.ts";
import { failure, observeLimitMs, postponed, retryDelayMs, shouldRetry, withoutMachine } from "./endings.ts";
import { Progress } from "./progress.ts";
import { machineRecordSchema, type MachineRecord } from "./record.ts";
import { transitional } from "./transitions.ts";
import { Waiters, type Waiter } from "./waiters.ts";

/** Operations one replica runs at a time. */
export const maxRunning = 64;
/** How often a transaction that others keep overtaking is tried. */
const maxAttempts = 16;
/** How long an operation is left to other replicas after it asked for one. */
const avoidMs = 15_000;
const storeRetryMs = 500;
/** How long a claim of ours may stand without work before it counts as lost. */
const suspectMs = 1_000;
/** How often an operation is begun at all: one that takes its process down each time must not do so for ever. */
export const maxBegun = 25;

/** An operation this replica holds. */
export interface Held {
  readonly operation: Operation;
  readonly record: Stored<MachineRecord>;
  /** The claim. */
  readonly fence: Fence;
  /** The lease the claim ends with. */
  readonly lease: Lease;
}

/** What a runner needs. */
export interface RunnerOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly session: ReplicaSession;
  readonly tools: Tools;
  /** Called when an operation this replica ran has ended. */
  onEnd?(operation: Operation): void;
}

/**
 * A place of this replica for work on one machine, taken before the claim is: so a claim of ours that has a
 * place is never mistaken for a lost one, and places are never given out twice.
 */
export interface Slot {
  /** Runs the operation that was accepted together with its claim. */
  begin(held: Held): void;
  /** Gives the place up: nothing was accepted. */
  release(): void;
}

interface Running {
  readonly operationId: string;
  /** Aborts when somebody asked to cancel the operation. */
  readonly cancel: AbortController;
  /** Aborts when the claim is gone: the work is somebody else's. */
  readonly lost: AbortController;
  /** Revision of the claim, once it is taken. */
  claimRevision?: number;
}

/** See the module comment. */
export class OperationRunner {
  readonly board: WorkBoard;
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #session: ReplicaSession;
  readonly #tools: Tools;
  readonly #documents: Documents;
  readonly #onEnd: (operation: Operation) => void;
  readonly #active = new Map<string, Running>();
  readonly #postponed = new Set<string>();
  /** Claims of ours without work, by the revision at which they were seen. */
  readonly #suspects = new Map<string, number>();
  readonly #timers = new Map<string, Timer>();
  readonly #waiters: Waiters;
  readonly #stop = new AbortController();
  readonly #work = new Set<Promise<void>>();
  #following: Promise<void> | undefined;

  constructor({ store, edges, session, tools, onEnd }: RunnerOptions) {
    this.#store = store;
    this.#edges = edges;
    this.#session = session;
    this.#tools = tools;
    this.#documents = new Documents(store, edges.log);
    this.#onEnd = onEnd ?? (() => {});
    this.#waiters = new Waiters(edges.clock);
    this.board = new WorkBoard(store, edges);
  }

  get provider(): Provider {
    return this.#tools.provider;
  }

  /** Operations running in this replica. */
  get running(): number {
    return this.#active.size;
  }

  /** Begins to follow the queue; resolves when everything left from before is known. */
  start(): Promise<void> {
    return new Promise((ready) => {
      this.#following = this.board.run(
        {
          changed: (machineId) => this.#consider(machineId),
          cancelled: (operationId) => this.#cancel(operationId),
          released: (machineId, revision) => this.#released(machineId, revision),
          left: (operationId) => this.#waiters.wake(operationId),
        },
        ready,
        this.#stop.signal,
      );
    });
  }

  /** Stops taking work, interrupts what runs and waits for it. What was interrupted goes on elsewhere. */
  async stop(): Promise<void> {
    this.#stop.abort();
    for (const timer of this.#timers.values()) timer.clear();
    this.#timers.clear();
    await Promise.allSettled([...this.#work, this.#following]);
    this.#waiters.wakeAll();
  }

  /** A place for an operation that could begin at once in this replica, or `undefined` when it has to wait. */
  reserve(machineId: string, operationId: string): Slot | undefined {
    const free =
      !this.#stop.signal.aborted &&
      this.#active.size < maxRunning &&
      !this.#active.has(machineId) &&
      !this.board.claimed(machineId) &&
      this.board.length(machineId) === 0;
    if (!free) return undefined;
    const running = this.#take(machineId, operationId);
    return {
      begin: (held) => this.#track(machineId, running, this.#run(held, running)),
      release: () => this.#free(machineId, running),
    };
  }

  /** A waiter for an operation; made before the operation is, so that no end is missed. */
  waiter(operationId: string): Waiter {
    return this.#waiters.waiter(operationId);
  }

  #cancel(operationId: string): void {
    for (const running of this.#active.values()) {
      if (running.operationId === operationId) running.cancel.abort("cancelled");
    }
  }

  #released(machineId: string, revision: number): void {
    const running = this.#active.get(machineId);
    if (running?.claimRevision === revision) running.lost.abort("the claim is gone");
  }

  #take(machineId: string, operationId: string): Running {
    const running: Running = {
      operationId,
      cancel: new AbortController(),
      lost: new AbortController(),
    };
    this.#active.set(machineId, running);
    return running;
  }

  /** The machine's next operation, and others that waited for a place, may begin. */
  #free(machineId: string, running: Running): void {
    if (this.#active.get(machineId) === running) this.#active.delete(machineId);
    if (this.#stop.signal.aborted) return;
    this.#consider(machineId);
    for (const waiting of [...this.#postponed].slice(0, maxRunning - this.#active.size)) {
      this.#postponed.delete(waiting);
      this.#consider(waiting);
    }
  }

  #track(machineId: string, running: Running, work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        if (error instanceof InvariantError) throw error;
        this.#edges.log.warn("operation was interrupted", { machineId, problem: messageOf(error) });
        this.#later(machineId, storeRetryMs);
      })
      .finally(() => {
        this.#work.delete(tracked);
        this.#free(machineId, running);
      });
    this.#work.add(tracked);
  }

  #later(machineId: string, delayMs: number): void {
    this.#timers.get(machineId)?.clear();
    const timer = this.#edges.clock.timer(delayMs, () => {
      this.#timers.delete(machineId);
      this.#consider(machineId);
    });
    this.#timers.set(machineId, timer);
  }

  #consider(machineId: string): void {
    if (this.#stop.signal.aborted || this.#active.has(machineId)) return;
    const claim = this.board.claim(machineId);
    if (claim) {
      if (claim.replica === this.#session.replicaId) this.#suspect(machineId, claim.revision);
      return;
    }
    const head = this.board.head(machineId);
    if (!head) return;
    const now = this.#edges.clock.now();
    const notBefore = head.avoid === this.#session.replicaId ? head.notBefore + avoidMs : head.notBefore;
    if (notBefore > now) return this.#later(machineId, notBefore - now);
    if (this.#active.size >= maxRunning) {
      this.#postponed.add(machineId);
      return;
    }
    const running = this.#take(machineId, head.operationId);
    this.#track(
      machineId,
      running,
      this.#claim(machineId, head.operationId).then((held) => (held ? this.#run(held, running) : undefined)),
    );
  }

  /**
   * A claim of ours that nobody here works on: the store took it and its answer was lost. It is given back,
   * unless the work begins meanwhile, because the lease that would end it lives on.
   */
  #suspect(machineId: string, revision: number): void {
    if (this.#suspects.get(machineId) !== revision) {
      this.#suspects.set(machineId, revision);
      this.#later(machineId, suspectMs);
      return;
    }
    this.#suspects.delete(machineId);
    const fence: Fence = { key: keys.claim(machineId), revision };
    new Change()
      .fencedBy(fence)
      .delete(fence.key)
      .commit(this.#store, this.#edges)
      .catch((error: unknown) => {
        this.#edges.log.warn("a lost claim could not be given back yet", {
          machineId,
          problem: messageOf(error),
        });
        this.#later(machineId, suspectMs);
      });
  }

  /** Takes the claim and marks the operation as running; `undefined` when somebody else was first. */
  async #claim(machineId: string, operationId: string): Promise<Held | undefined> {
    const lease = await this.#session.lease();
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const operation = await this.#documents.get(keys.operation(operationId), operationSchema);
      const machineKey = operation && keys.machine(operation.value.project, machineId);
      const record = machineKey && (await this.#documents.get(machineKey, machineRecordSchema));
      const now = this.#edges.clock.now();
      if (!operation || !record) {
        // Nothing left to work on: the entry must not block the queue for ever.
        const change = new Change()
          .absent(keys.claim(machineId))
          // The board may lag: what has left the queue ended by itself.
          .present(keys.queue(machineId, operationId))
          .delete(keys.queue(machineId, operationId))
          .delete(keys.cancel(operationId));
        if (operation && !isFinal(operation.value)) withoutMachine(operation, formatTime(now), change);
        await change.commit(this.#store, this.#edges);
        return undefined;
      }
      const begun: Operation = {
        ...operation.value,
        state: "running",
        attempt: operation.value.attempt + 1,
        startedAt: operation.value.startedAt ?? formatTime(now),
        updatedAt: formatTime(now),
      };
      const next = transitional(begun, record.value, now);
      const take = new Change()
        .absent(keys.claim(machineId))
        // The board may lag: an operation that has left the queue must never run again.
        .present(keys.queue(machineId, operationId))
        .unchanged(operation.key, operation.modRevision)
        .unchanged(record.key, record.modRevision)
        .put(keys.claim(machineId), { operation: operationId, replica: this.#session.replicaId }, lease.id)
        .put(operation.key, begun)
        .put(record.key, next);
      const taken = await this.#session.commit(take, lease);
      if (taken.succeeded) {
        return {
          operation: begun,
          record: { ...record, value: next, modRevision: taken.revision },
          fence: { key: keys.claim(machineId), revision: taken.revision },
          lease,
        };
      }
      const claim = await this.#store.range({ key: keys.claim(machineId), countOnly: true });
      const entry = await this.#store.range({ key: keys.queue(machineId, operationId), countOnly: true });
      if (claim.count > 0 || entry.count === 0) return undefined;
    }
    return undefined;
  }

  async #run(held: Held, running: Running): Promise<void> {
    const { fence } = held;
    running.claimRevision = fence.revision;
    // Not the session's present lease: the claim ends with the one it was bound to.
    const over = AbortSignal.any([held.lease.signal, running.lost.signal, this.#stop.signal]);
    const signal = AbortSignal.any([over, running.cancel.signal]);
    if (this.board.cancelRequested(held.operation.id)) running.cancel.abort("cancelled");
    const progress = new Progress(this.#store, this.#edges, held, () => running.cancel.signal.aborted);
    const call: ProviderCall = { signal, fence, progress: (update) => progress.report(update) };
    let effect: Effect;
    let ended: Operation;
    const now = (): string => formatTime(this.#edges.clock.now());
    try {
      signal.throwIfAborted();
      if (held.operation.attempt > maxBegun) {
        throw new ProviderError("failed", `${held.operation.kind} was interrupted ${maxBegun} times`);
      }
      effect = await perform(held.operation, held.record.value, this.#tools, call);
      const time = now();
      const { error: _, notBefore: __, ...rest } = held.operation;
      ended = { ...rest, state: "succeeded", progressPercent: 100, updatedAt: time, finishedAt: time };
    } catch (error) {
      // Interrupted from outside: somebody else goes on with it, nothing is written.
      if (over.aborted) throw error;
      await progress.settle();
      let cancelled = running.cancel.signal.aborted;
      if (!cancelled && shouldRetry(held.operation, error)) {
        if (await this.#postpone(held, error)) return;
        cancelled = true;
      }
      this.#edges.log.warn(cancelled ? "operation was cancelled" : "operation failed", {
        operationId: held.operation.id,
        kind: held.operation.kind,
        machineId: held.operation.machineId,
        problem: messageOf(error),
      });
      const limit = new AbortController();
      const timer = this.#edges.clock.timer(observeLimitMs, () => limit.abort("took too long"));
      const after = { ...call, signal: AbortSignal.any([over, limit.signal]) };
      ({ effect, operation: ended } = await failure(held, error, cancelled, this.#tools, after, now()));
      timer.clear();
    }
    await progress.settle();
    await this.#finish(held, ended, effect);
  }

  /** Gives the claim back and leaves the operation in the queue for a later attempt; false when it was cancelled. */
  async #postpone(held: Held, error: unknown): Promise<boolean> {
    const { operation, fence } = held;
    const now = this.#edges.clock.now();
    const delay = retryDelayMs(operation.attempt, this.#edges.random);
    const { queued, entry } = postponed(operation, error, now, delay, this.#session.replicaId);
    const { succeeded } = await new Change()
      .fencedBy(fence)
      // A cancellation that came meanwhile must not wait for the next attempt.
      .absent(keys.cancel(operation.id))
      .put(keys.operation(operation.id), queued)
      .put(keys.queue(operation.machineId, operation.id), entry)
      .delete(fence.key)
      .commit(this.#store, this.#edges);
    if (succeeded) return true;
    const { count } = await this.#store.range({ key: keys.cancel(operation.id), countOnly: true });
    return count === 0;
  }

  async #finish(held: Held, ended: Operation, effect: Effect): Promise<void> {
    const { operation, fence } = held;
    let record: Stored<MachineRecord> | undefined = held.record;
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const change = new Change().fencedBy(fence);
      let next: MachineRecord | undefined;
      if (record) {
        const { operation: shown, ...rest } = record.value;
        next = effect(
          shown && shown.id !== operation.id ? { ...rest, operation: shown } : rest,
          change.unchanged(record.key, record.modRevision),
          this.#edges.clock.now(),
        );
        if (next) change.put(record.key, next);
      }
      const done = await change
        .put(keys.operation(operation.id), ended)
        .delete(keys.queue(operation.machineId, operation.id))
        .delete(keys.cancel(operation.id))
        .delete(fence.key)
        .commit(this.#store, this.#edges);
      if (done.succeeded) {
        this.#onEnd(ended);
        this.#waiters.wake(operation.id, { operation: ended, ...(next ? { record: next } : {}) });
        return;
      }
      const { kvs } = await this.#store.range({ key: fence.key });
      if (kvs[0]?.createRevision !== fence.revision) return;
      record = await this.#documents.get(held.record.key, machineRecordSchema);
    }
    throw new Error(`machine ${operation.machineId} is changed too often to write down an operation`);
  }
}
