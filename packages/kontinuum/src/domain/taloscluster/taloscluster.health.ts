/**
 * The health of clusters: Talos' own check, remembered for a while, because a cluster is looked at far more
 * often than it needs to be examined.
 */
import type { Clock } from "@kontinuum/std";
import type { Timings } from "../timings.ts";
import type { Member } from "./members.ts";
import { describeTalosFailure, type TalosAccess } from "./talos-access.ts";

interface Examination {
  readonly atMs: number;
  readonly members: string;
  readonly problem: string | undefined;
}

/** Most clusters whose last examination is remembered. */
const remembered = 10_000;

/** The last examination of each cluster of this process. */
export class HealthMemory {
  readonly #timings: Timings;
  readonly #clock: Clock;
  readonly #last = new Map<string, Examination>();

  constructor(timings: Timings, clock: Clock) {
    this.#timings = timings;
    this.#clock = clock;
  }

  /**
   * What is wrong with the cluster, or `undefined` when it is well. A good result holds for the recheck interval
   * and for the same members; a bad one is looked into again at once.
   */
  async check(
    key: string,
    members: readonly Member[],
    access: TalosAccess,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const names = members.map(({ role, address }) => `${role}@${address}`).join(",");
    const last = this.#last.get(key);
    const fresh = last && last.problem === undefined && last.members === names && this.#left(last) > 0;
    if (fresh) return undefined;
    const problem = await this.#examine(members, access, signal);
    this.#last.delete(key);
    this.#last.set(key, { atMs: this.#clock.monotonic(), members: names, problem });
    const [oldest] = this.#last.keys();
    if (this.#last.size > remembered && oldest !== undefined) this.#last.delete(oldest);
    return problem;
  }

  /** Until the next examination is due, milliseconds. */
  nextCheckMs(key: string): number {
    const last = this.#last.get(key);
    return last ? Math.max(1, this.#left(last)) : this.#timings.retryMs;
  }

  #left(last: Examination): number {
    return last.atMs + this.#timings.healthRecheckMs - this.#clock.monotonic();
  }

  /** Asks the control-plane machines in turn: one that is down must not make the cluster look down. */
  async #examine(
    members: readonly Member[],
    access: TalosAccess,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const addresses = (role: Member["role"]): string[] =>
      members.filter((member) => member.role === role).map(({ address }) => address);
    const controlPlane = addresses("controlplane");
    const workers = addresses("worker");
    let problem = "no control-plane machine has its configuration";
    for (const address of controlPlane) {
      try {
        await access.asAdmin(address, (talos) =>
          talos.healthCheck({ controlPlane, workers, timeoutMs: this.#timings.healthMs, signal }),
        );
        return undefined;
      } catch (error) {
        if (signal.aborted) throw error;
        problem = `health check: ${describeTalosFailure(error)}`;
      }
    }
    return problem;
  }
}
