/**
 * Looks at what is really there: state changes nobody asked for, machines that vanished, machines the
 * store does not know (adopted).
 *
 * One replica at a time looks. A machine with an operation under way is left to its operation. What was
 * seen is written by compare-and-swap, so an older look never overwrites a newer fact.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import { prefixRange, type Store } from "@kontinuum/storage";
import { formatTime } from "../model/bytes.ts";
import type { Machine } from "../model/machine.ts";
import { stateEvent } from "../operations/effects.ts";
import { machineRecordSchema, withObservation, withState, type MachineRecord } from "../operations/record.ts";
import type { Found, Provider, ProviderCall } from "../provider-contract/contract.ts";
import { Change, type Fence } from "../store/change.ts";
import { Documents, type Stored } from "../store/documents.ts";
import { keys, timeKey } from "../store/keyspace.ts";
import { pause, type Leadership } from "../store/leadership.ts";

const page = 500;

/** What an observer needs. */
export interface ObserverOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly leadership: Leadership;
  readonly provider: Provider;
  projects(): readonly string[];
}

/** See the module comment. */
export class Observer {
  readonly #options: ObserverOptions;
  readonly #documents: Documents;

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.#documents = new Documents(options.store, options.edges.log);
  }

  /** Looks whenever this replica leads, until `signal` aborts. Once only when nothing changes by itself. */
  async run(signal: AbortSignal): Promise<void> {
    const { leadership, edges, provider } = this.#options;
    await leadership.run(
      "observer",
      async (fence, held) => {
        while (!held.aborted) {
          try {
            await this.look(fence, held);
          } catch (error) {
            if (!held.aborted)
              edges.log.warn("provider could not be observed", { problem: messageOf(error) });
          }
          await pause(edges, provider.observeEveryMs > 0 ? provider.observeEveryMs : idleMs, held);
        }
      },
      signal,
    );
  }

  /** One look at everything. */
  async look(fence: Fence, signal: AbortSignal): Promise<void> {
    const { provider, edges } = this.#options;
    const call: ProviderCall = { signal, progress: () => {} };
    const startedAt = edges.clock.now();
    const present = new Set<string>();
    for await (const found of provider.inventory(call)) {
      present.add(found.id);
      const known = await this.#documents.get(keys.machine(found.project, found.id), machineRecordSchema);
      if (known) await this.#update(known, found, fence);
      else await this.#adopt(found, fence);
      if (signal.aborted) return;
    }
    await this.#missing(present, startedAt, fence);
  }

  async #update(known: Stored<MachineRecord>, found: Found, fence: Fence): Promise<void> {
    const { record, before } = { record: known.value, before: known.value.machine };
    if (record.operation || record.desired === "deleted") return;
    // What failed and does not run stays failed, until somebody starts or deletes it.
    if (before.state === "failed" && found.observation.state !== "running") return;
    const machine = withObservation(before, found.observation, this.#options.edges.clock.now());
    if (machine === before) return;
    const change = new Change()
      .fencedBy(fence)
      .unchanged(known.key, known.modRevision)
      .put(known.key, { ...record, machine } satisfies MachineRecord);
    if (machine.state !== before.state) change.event(stateEvent(machine));
    await change.commit(this.#options.store, this.#options.edges);
  }

  /** Takes in a machine that exists outside and not here: the store is newer than the machine. */
  async #adopt(found: Found, fence: Fence): Promise<void> {
    const { edges, store, provider, projects } = this.#options;
    const { id, project, spec } = found;
    if (!spec || !projects().includes(project)) return;
    const now = edges.clock.now();
    const base: Machine = {
      id,
      project,
      provider: provider.name,
      state: found.observation.state,
      spec,
      providerRef: { ...found.observation.providerRef },
      createdAt: found.createdAt ?? formatTime(now),
      updatedAt: formatTime(now),
      ...(found.expiresAt === undefined ? {} : { expiresAt: found.expiresAt }),
    };
    const expiresMs = found.expiresAt === undefined ? NaN : Date.parse(found.expiresAt);
    const expiryKey = Number.isFinite(expiresMs) ? keys.expiry(timeKey(expiresMs), project, id) : undefined;
    const record: MachineRecord = {
      machine: withObservation(base, found.observation, now),
      desired: found.observation.state === "stopped" ? "stopped" : "running",
      ...(expiryKey ? { expiryKey } : {}),
    };
    const nameKey = keys.name(project, spec.name);
    const change = new Change()
      .fencedBy(fence)
      .absent(nameKey)
      .absent(keys.machine(project, id))
      .put(nameKey, id)
      .put(keys.machine(project, id), record);
    if (expiryKey) change.put(expiryKey, null);
    const { succeeded } = await change.commit(store, edges);
    if (succeeded) edges.log.info("machine was adopted from the provider", { machineId: id, project });
  }

  /** Machines that should be there and are not. */
  async #missing(present: ReadonlySet<string>, startedAt: number, fence: Fence): Promise<void> {
    const { store, edges } = this.#options;
    const { key: first, end } = prefixRange(keys.machines);
    let key: Buffer = first;
    for (;;) {
      const batch = await this.#documents.range({ key, end, limit: page }, machineRecordSchema);
      for (const stored of batch.items) {
        const { machine, operation, desired } = stored.value;
        const settledBefore = Date.parse(machine.updatedAt) < startedAt;
        if (present.has(machine.id) || operation || desired === "deleted" || !settledBefore) continue;
        if (machine.state === "failed") continue;
        const failed = withState(
          machine,
          "failed",
          edges.clock.now(),
          "The machine does not exist at its provider any more; delete it.",
        );
        await new Change()
          .fencedBy(fence)
          .unchanged(stored.key, stored.modRevision)
          .put(stored.key, { ...stored.value, machine: failed } satisfies MachineRecord)
          .event(stateEvent(failed))
          .commit(store, edges);
      }
      if (!batch.more || batch.last === undefined) return;
      key = Buffer.from(`${batch.last}\0`, "utf8");
    }
  }
}

/** Pause between looks when a provider changes nothing by itself. */
const idleMs = 60_000;
