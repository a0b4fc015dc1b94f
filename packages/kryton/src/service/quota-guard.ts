/**
 * Keeps projects within their quotas, whatever is asked for at the same time.
 *
 * What is used is counted from the machines themselves; a key that every such change rewrites makes two
 * of them at the same time impossible, so the count cannot drift.
 */
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { formatTime } from "../model/bytes.ts";
import type { Machine } from "../model/machine.ts";
import type { Change } from "../store/change.ts";
import { keys } from "../store/keyspace.ts";
import type { MachineReader } from "./machine-reader.ts";
import { addUsage, checkQuota, noUsage, usageOf, type Quota, type Usage } from "./quotas.ts";

/** What a guard needs. */
export interface QuotaGuardOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly machines: MachineReader;
  quota(project: string): Quota | undefined;
}

/** See the module comment. */
export class QuotaGuard {
  readonly #options: QuotaGuardOptions;

  constructor(options: QuotaGuardOptions) {
    this.#options = options;
  }

  /** Adds to `change` what makes a second creation at the same time impossible when a quota is set. */
  async guard(
    project: string,
    before: Machine | undefined,
    target: { readonly cpu: number; readonly memoryMiB: number; readonly diskGiB: number },
    change: Change,
  ): Promise<void> {
    const quota = this.#options.quota(project);
    if (!quota) return;
    const guard = await this.#options.store.range({ key: keys.usage(project) });
    let used: Usage = noUsage;
    for await (const machine of this.#options.machines.each(project))
      used = addUsage(used, usageOf(machine.spec));
    const base = before ? addUsage(used, usageOf(before.spec), -1) : used;
    const next = addUsage(base, {
      machines: 1,
      cpu: target.cpu,
      memoryMiB: target.memoryMiB,
      diskGiB: target.diskGiB,
    });
    checkQuota(project, quota, used, next);
    change
      .unchanged(keys.usage(project), guard.kvs[0]?.modRevision ?? 0)
      .put(keys.usage(project), { checkedAt: formatTime(this.#options.edges.clock.now()) });
  }
}
