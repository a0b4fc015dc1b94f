/**
 * What one simulated replica has of the world: a clock that stops with it, and a store that is slow, fails,
 * loses answers, and goes silent for ever when the replica is killed.
 *
 * Every call to the store is a point at which a replica can die, before or after the call took effect.
 */
import { CodedError, type Clock, type Random, type SimulatedClock, type Timer } from "@kontinuum/std";
import type { Store, Watch, WatchBatch, WatchRequest } from "@kontinuum/storage/client";

/** What may go wrong, as shares of calls, and how slow the store is. */
export interface Weather {
  /** Calls that fail before they take effect. */
  refused: number;
  /** Calls that take effect and whose answer is lost. */
  unanswered: number;
  /** Longest way to the store and back, milliseconds each. */
  delayMs: number;
  /** Longest time a watch is behind, milliseconds. */
  lagMs: number;
}

/** Nothing goes wrong, and everything takes no time. */
export const calm: Readonly<Weather> = { refused: 0, unanswered: 0, delayMs: 0, lagMs: 0 };

/** Where in a call a replica dies. */
export type CrashPoint = "before" | "after";

/** The part of the world one replica can see. */
export class Wire {
  readonly clock: Clock;
  readonly store: Store;
  /** Calls made so far. */
  calls = 0;
  /** Asked at each point of each call whether the replica dies there. */
  crash: (call: number, point: CrashPoint, method: string) => boolean = () => false;
  #dead = false;
  #frozenUntil = 0;
  readonly #time: SimulatedClock;
  readonly #random: Random;
  readonly #weather: Weather;
  #died = Promise.withResolvers<void>();

  constructor(store: Store, time: SimulatedClock, random: Random, weather: Weather, skewMs: number) {
    this.#time = time;
    this.#random = random;
    this.#weather = weather;
    this.clock = this.#ownClock(skewMs);
    this.store = this.#ownStore(store);
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Resolves when the replica is killed. */
  get died(): Promise<void> {
    return this.#died.promise;
  }

  /** Ends everything of the replica between two instructions. */
  kill(): void {
    this.#dead = true;
    this.#died.resolve();
  }

  /** Nothing of the replica moves for so long, as in a long collection of garbage or a stopped host. */
  freeze(forMs: number): void {
    this.#frozenUntil = this.#time.now() + forMs;
  }

  /** Waits as long as the replica is frozen, and for ever when it is dead. */
  async #alive(): Promise<void> {
    while (!this.#dead && this.#time.now() < this.#frozenUntil) {
      await this.#time.sleep(this.#frozenUntil - this.#time.now());
    }
    if (this.#dead) await new Promise<never>(() => {});
  }

  #ownClock(skewMs: number): Clock {
    const timer = (delayMs: number, callback: () => void): Timer => {
      const run = (): void => {
        if (this.#dead) return;
        const left = this.#frozenUntil - this.#time.now();
        if (left > 0) current = this.#time.timer(left, run);
        else callback();
      };
      let current = this.#time.timer(delayMs, run);
      return { clear: () => current.clear() };
    };
    return {
      now: () => this.#time.now() + skewMs,
      monotonic: () => this.#time.monotonic(),
      timer,
      sleep: (delayMs, signal) =>
        new Promise((resolve, reject) => {
          const stopped = (): void => reject(new CodedError("cancelled", "cancelled"));
          if (signal?.aborted) return stopped();
          const running = timer(delayMs, () => {
            signal?.removeEventListener("abort", onAbort);
            resolve();
          });
          const onAbort = (): void => {
            running.clear();
            stopped();
          };
          signal?.addEventListener("abort", onAbort, { once: true });
        }),
    };
  }

  #ownStore(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        if (name === "watch") return (request: WatchRequest) => this.#watch(target, request);
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) =>
          this.#call(String(name), () => Promise.resolve(Reflect.apply(value, target, args)));
      },
    });
  }

  async #call<T>(method: string, work: () => Promise<T>): Promise<T> {
    const call = ++this.calls;
    const { refused, unanswered, delayMs } = this.#weather;
    await this.#point(call, "before", method, delayMs);
    const luck = this.#random.float();
    if (luck < refused) throw new CodedError("unavailable", "the store could not be reached");
    const result = await work().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    await this.#point(call, "after", method, delayMs);
    if (luck < refused + unanswered) throw new CodedError("unavailable", "the store's answer was lost");
    if ("error" in result) throw result.error;
    return result.value;
  }

  async #point(call: number, point: CrashPoint, method: string, delayMs: number): Promise<void> {
    await this.#alive();
    if (this.crash(call, point, method)) this.kill();
    if (!this.#dead && delayMs > 0) await this.#time.sleep(this.#random.integer(delayMs + 1));
    await this.#alive();
  }

  #watch(store: Store, request: WatchRequest): Watch {
    const inner = store.watch(request);
    const wait = async (): Promise<void> => {
      const { lagMs } = this.#weather;
      if (lagMs > 0 && !this.#dead) await this.#time.sleep(this.#random.integer(lagMs + 1));
      await this.#alive();
    };
    void this.#died.promise.then(() => inner.close());
    return {
      ready: inner.ready.then(async (revision) => {
        await wait();
        return revision;
      }),
      progress: () => inner.progress(),
      close: () => inner.close(),
      async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch> {
        for await (const batch of inner) {
          await wait();
          yield batch;
        }
        await wait();
      },
    };
  }
}
