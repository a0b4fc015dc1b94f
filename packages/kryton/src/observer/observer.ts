/**
 * Looks at what is really there: state changes nobody asked for, machines that vanished, machines the
 * store does not know (adopted).
 *
 * One replica at a time looks. A look takes time, and what it tells is as old as its beginning; so it begins with the
 * store's revision and changes only records that nobody has written since then and on which no operation is under
 * way. Every operation writes the record at its beginning and at its end: an older look never overwrites a newer
 * fact, whoever's clock is wrong. A machine that ever had an operation here is never adopted; when its deletion
 * has ended and something of it is still outside, a call that came too late left it, and it is removed.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import { prefixRange, type Store } from "@kontinuum/storage/client";
import { z } from "zod";
import { formatTime } from "../model/bytes.ts";
import type { Machine, MachineSpec } from "../model/machine.ts";
import { operationSchema } from "../model/operation.ts";
import { stateEvent } from "../operations/effects.ts";
import {
  machineRecordSchema,
  refOf,
  withObservation,
  withState,
  type MachineRecord,
} from "../operations/record.ts";
import type { Found, Observation, Provider, ProviderCall } from "../provider-contract/contract.ts";
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
    const { provider, store } = this.#options;
    const look: Look = {
      call: { signal, progress: () => {} },
      asOf: await store.revision(),
      fence,
    };
    const present = new Set<string>();
    for await (const found of provider.inventory(look.call)) {
      present.add(found.id);
      const known = await this.#documents.get(keys.machine(found.project, found.id), machineRecordSchema);
      if (known) await this.#update(known, found.observation, look);
      else await this.#unknown(found, look);
      if (signal.aborted) return;
    }
    await this.#missing(present, look);
  }

  async #update(known: Stored<MachineRecord>, seen: Observation, look: Look): Promise<void> {
    const { record, before } = { record: known.value, before: known.value.machine };
    if (!comparable(known, look)) return;
    // What failed and does not run stays failed, until somebody starts or deletes it.
    if (before.state === "failed" && seen.state !== "running") return;
    const machine = withObservation(before, seen, this.#options.edges.clock.now());
    if (machine === before) return;
    const change = new Change()
      .fencedBy(look.fence)
      .unchanged(known.key, known.modRevision)
      .put(known.key, { ...record, machine } satisfies MachineRecord);
    if (machine.state !== before.state) change.event(stateEvent(machine));
    await change.commit(this.#options.store, this.#options.edges);
  }

  async #unknown(found: Found, look: Look): Promise<void> {
    const operations = await this.#documents.list(keys.operationOf(found.id), z.null(), {
      limit: 1,
      sort: { by: "key", descending: true },
    });
    const last = operations[0]?.key.slice(keys.operationOf(found.id).length);
    if (last === undefined) return this.#adopt(found, look.fence);
    const operation = await this.#documents.get(keys.operation(last), operationSchema);
    if (operation?.value.kind !== "delete" || operation.value.state !== "succeeded") return;
    const { edges, store, provider } = this.#options;
    const ref = { ...found, spec: found.spec, providerRef: found.observation.providerRef };
    if (!hasSpec(ref)) return;
    // Looked at again after its deletion is known to have ended: before that it was only old news.
    const { count } = await store.range({ key: keys.machine(found.project, found.id), countOnly: true });
    if (count > 0 || !(await provider.observe(ref, look.call))) return;
    edges.log.warn("what is left of a deleted machine is removed", {
      machineId: found.id,
      project: found.project,
    });
    await provider.delete(ref, { ...look.call, fence: look.fence });
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
      .absentPrefix(keys.operationOf(id))
      .absent(nameKey)
      .absent(keys.machine(project, id))
      .put(nameKey, id)
      .put(keys.machine(project, id), record);
    if (expiryKey) change.put(expiryKey, null);
    const { succeeded } = await change.commit(store, edges);
    if (succeeded) edges.log.info("machine was adopted from the provider", { machineId: id, project });
  }

  /** Machines that should be there and are not. */
  async #missing(present: ReadonlySet<string>, look: Look): Promise<void> {
    const { key: first, end } = prefixRange(keys.machines);
    let key: Buffer = first;
    for (;;) {
      const batch = await this.#documents.range({ key, end, limit: page }, machineRecordSchema);
      for (const stored of batch.items) {
        if (!present.has(stored.value.machine.id)) await this.#gone(stored, look);
        if (look.call.signal.aborted) return;
      }
      if (!batch.more || batch.last === undefined) return;
      key = Buffer.from(`${batch.last}\0`, "utf8");
    }
  }

  async #gone(stored: Stored<MachineRecord>, look: Look): Promise<void> {
    const { store, edges, provider } = this.#options;
    const { machine } = stored.value;
    if (machine.state === "failed" || !comparable(stored, look)) return;
    // An inventory leaves out what it cannot read; only who is asked for by name and not found is gone.
    if (await provider.observe(refOf(machine), look.call)) return;
    const failed = withState(
      machine,
      "failed",
      edges.clock.now(),
      "The machine does not exist at its provider any more; delete it.",
    );
    await new Change()
      .fencedBy(look.fence)
      .unchanged(stored.key, stored.modRevision)
      .put(stored.key, { ...stored.value, machine: failed } satisfies MachineRecord)
      .event(stateEvent(failed))
      .commit(store, edges);
  }
}

/** One look: since when, and by whom. */
interface Look {
  readonly call: ProviderCall;
  /** The store's revision before anything was looked at. */
  readonly asOf: number;
  readonly fence: Fence;
}

/** Whether what was seen is newer than everything the record says. */
function comparable({ value, modRevision }: Stored<MachineRecord>, { asOf }: Look): boolean {
  return modRevision <= asOf && !value.operation && value.desired !== "deleted";
}

function hasSpec<T extends { readonly spec: MachineSpec | undefined }>(
  found: T,
): found is T & { readonly spec: MachineSpec } {
  return found.spec !== undefined;
}

/** Pause between looks when a provider changes nothing by itself. */
const idleMs = 60_000;
