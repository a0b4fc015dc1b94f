/**
 * Snapshots of demo guests: records beside the guest, ready at once.
 */
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { z } from "zod";
import {
  ProviderError,
  type MachineRef,
  type Observation,
  type ProviderCall,
  type SnapshotObservation,
  type SnapshotProvider,
} from "../../provider-contract/contract.ts";
import { Change } from "../../store/change.ts";
import { Documents } from "../../store/documents.ts";
import { keys } from "../../store/keyspace.ts";

const recordSchema = z.object({ name: z.string(), restored: z.boolean() });

/** See the module comment. */
export class DemoSnapshots implements SnapshotProvider {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #documents: Documents;
  readonly #observe: (machine: MachineRef) => Promise<Observation | undefined>;

  constructor(
    store: Store,
    edges: Edges,
    observe: (machine: MachineRef) => Promise<Observation | undefined>,
  ) {
    this.#store = store;
    this.#edges = edges;
    this.#documents = new Documents(store, edges.log);
    this.#observe = observe;
  }

  async create(
    machine: MachineRef,
    snapshot: { id: string; name: string },
    call?: ProviderCall,
  ): Promise<SnapshotObservation> {
    if (!(await this.#observe(machine))) {
      throw new ProviderError("not-found", `the demo guest of machine ${machine.id} is gone`);
    }
    const key = keys.demoSnapshot(machine.id, snapshot.id);
    await new Change()
      .heldBy(call?.fence)
      .absent(key)
      .put(key, { name: snapshot.name, restored: false })
      .commit(this.#store, this.#edges);
    return { state: "ready" };
  }

  async observe(machine: MachineRef, snapshot: { id: string }): Promise<SnapshotObservation | undefined> {
    const found = await this.#documents.get(keys.demoSnapshot(machine.id, snapshot.id), recordSchema);
    return found && { state: found.value.restored ? "restored" : "ready" };
  }

  async restore(
    machine: MachineRef,
    snapshot: { id: string; name: string },
    call?: ProviderCall,
  ): Promise<SnapshotObservation> {
    const key = keys.demoSnapshot(machine.id, snapshot.id);
    const observation = await this.#observe(machine);
    if (!observation || !(await this.#documents.get(key, recordSchema))) {
      throw new ProviderError("not-found", `snapshot ${snapshot.id} of machine ${machine.id} is gone`);
    }
    await new Change()
      .heldBy(call?.fence)
      .put(key, { name: snapshot.name, restored: true })
      .commit(this.#store, this.#edges);
    return {
      state: "restored",
      message: "Snapshot was restored.",
      machine: { ...observation, message: `Restored from snapshot ${snapshot.name}.` },
    };
  }

  async delete(machine: MachineRef, snapshot: { id: string }, call?: ProviderCall): Promise<void> {
    await new Change()
      .heldBy(call?.fence)
      .delete(keys.demoSnapshot(machine.id, snapshot.id))
      .commit(this.#store, this.#edges);
  }
}
