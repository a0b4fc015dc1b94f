/**
 * Who waits in this replica for the end of which operation.
 */
import type { Clock } from "@kontinuum/std";
import type { Operation } from "../model/operation.ts";
import type { MachineRecord } from "./record.ts";

/** How an operation ended, as far as this replica knows. */
export interface End {
  /** Absent when another replica ran it: then read it from the store. */
  readonly operation?: Operation;
  /** The machine's record after it; absent when it is gone or another replica ran it. */
  readonly record?: MachineRecord;
}

/** Waits for the end of one operation. */
export interface Waiter {
  /** The end, or `undefined` when `timeoutMs` passed first. Call once. */
  ended(timeoutMs: number): Promise<End | undefined>;
  release(): void;
}

/** See the module comment. */
export class Waiters {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<(end: End) => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A waiter for an operation; made before the operation is, so that no end is missed. */
  waiter(operationId: string): Waiter {
    const { promise, resolve } = Promise.withResolvers<End | undefined>();
    let waiting = this.#waiting.get(operationId);
    if (!waiting) this.#waiting.set(operationId, (waiting = new Set()));
    waiting.add(resolve);
    const release = (): void => {
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(operationId);
    };
    return {
      release,
      ended: async (timeoutMs) => {
        const timer = this.#clock.timer(timeoutMs, () => resolve(undefined));
        try {
          return await promise;
        } finally {
          timer.clear();
          release();
        }
      },
    };
  }

  /** Tells everybody who waits for the operation. */
  wake(operationId: string, end: End = {}): void {
    for (const done of this.#waiting.get(operationId) ?? []) done(end);
  }

  /** Tells everybody: this replica will hear of no end any more. */
  wakeAll(): void {
    for (const id of this.#waiting.keys()) this.wake(id);
  }
}
