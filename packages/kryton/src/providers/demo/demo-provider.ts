/**
 * The demo provider: guests that exist only as records, for evaluation and smoke tests.
 *
 * Its "outside world" is a set of keys of its own in the shared store, apart from what the service
 * writes: so it survives a restart when the store does, every replica sees the same guests, and the
 * gap between "made outside" and "written down" is as real as with any provider. Every action
 * completes at once. Addresses are never handed out twice.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import { prefixRange, type Store } from "@kontinuum/storage/client";
import { z } from "zod";
import { machineSpecSchema, type MachineSpec } from "../../model/machine.ts";
import {
  ProviderError,
  type Capabilities,
  type CreateRequest,
  type Finding,
  type Found,
  type MachineRef,
  type Observation,
  type Provider,
  type ProviderCall,
  type Resize,
} from "../../provider-contract/contract.ts";
import { Change } from "../../store/change.ts";
import { Documents, type Stored } from "../../store/documents.ts";
import { keys } from "../../store/keyspace.ts";
import { DemoAddresses } from "./addresses.ts";
import type { DemoHook } from "./hook.ts";
import { DemoSnapshots } from "./snapshots.ts";

const guestSchema = z.object({
  id: z.string(),
  project: z.string(),
  spec: machineSpecSchema,
  power: z.enum(["running", "stopped", "paused"]),
  address: z.string(),
  addressKey: z.string(),
  message: z.string(),
  /** Addresses of what the hook booted, instead of the simulated one. */
  hooked: z.array(z.string()).optional(),
  createdAt: z.string(),
  expiresAt: z.string().optional(),
});
type Guest = z.infer<typeof guestSchema>;

const inventoryPage = 500;
/** How often a change that others keep overtaking is tried. */
const maxAttempts = 64;

/** What the provider is made from. */
export interface DemoOptions {
  readonly store: Store;
  readonly edges: Edges;
  /** Boots something behind guests of certain images, for example a simulated node. */
  readonly onMachine?: DemoHook;
}

/** See the module comment. */
export class DemoProvider implements Provider {
  readonly name = "demo";
  readonly settlesAtOnce = true;
  readonly observeEveryMs: number = 0;
  readonly capabilities: Capabilities = {
    snapshots: true,
    networks: true,
    ttl: true,
    liveMigration: false,
    console: false,
    restart: true,
    pause: true,
    forceStop: true,
    resize: true,
    clone: true,
  };
  readonly snapshots: DemoSnapshots;
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #documents: Documents;
  readonly #addresses: DemoAddresses;
  readonly #hook: DemoHook | undefined;

  constructor({ store, edges, onMachine }: DemoOptions) {
    this.#store = store;
    this.#edges = edges;
    this.#documents = new Documents(store, edges.log);
    this.#addresses = new DemoAddresses(store);
    this.#hook = onMachine;
    this.snapshots = new DemoSnapshots(store, edges, async (machine) => {
      const guest = await this.#find(machine);
      return guest && observationOf(guest.value);
    });
  }

  /** Boots again what the hook runs in this process. */
  async open(): Promise<void> {
    if (!this.#hook) return;
    for await (const guest of this.#guests()) {
      if (guest.power !== "running" || !this.#hook.handles(guest.spec.image)) continue;
      try {
        await this.#hook.start(guest);
      } catch (error) {
        this.#edges.log.error("demo guest could not be resumed", {
          machine: guest.id,
          problem: messageOf(error),
        });
      }
    }
  }

  async close(): Promise<void> {
    await this.#hook?.close?.();
  }

  async health(): Promise<void> {
    await this.#store.revision();
  }

  doctor(): Promise<readonly Finding[]> {
    return Promise.resolve([
      {
        check: "demo-provider",
        status: "pass",
        message: "Machines are simulated: they start at once and run nothing.",
      },
    ]);
  }

  check(): Promise<void> {
    return Promise.resolve();
  }

  reference({ project, spec }: Pick<MachineRef, "project" | "spec">): {
    provider: string;
    namespace: string;
    name: string;
  } {
    return { provider: "demo", namespace: project, name: spec.name };
  }

  async create(request: CreateRequest, call: ProviderCall): Promise<Observation> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      call.signal.throwIfAborted();
      const { address, key } = this.#addresses.next();
      const guest: Guest = {
        id: request.id,
        project: request.project,
        spec: request.spec,
        power: "running",
        address,
        addressKey: key,
        message: request.cloneOf ? `Cloned from ${request.cloneOf.spec.name}.` : "Demo machine is ready.",
        createdAt: request.createdAt,
        ...(request.expiresAt === undefined ? {} : { expiresAt: request.expiresAt }),
      };
      const made = await new Change()
        .heldBy(call.fence)
        .absent(keys.demoGuest(request.id))
        .absent(key)
        .put(keys.demoGuest(request.id), guest)
        .put(key, { guest: request.id })
        .commit(this.#store, this.#edges);
      if (made.succeeded) return observationOf(await this.#boot(guest, call));
      const existing = await this.#find(request);
      if (existing) return observationOf(await this.#boot(existing.value, call));
      await this.#stillHeld(call);
      await this.#addresses.refresh();
    }
    throw new ProviderError("unavailable", "no address could be had: too many machines are made at once");
  }

  async observe(machine: MachineRef): Promise<Observation | undefined> {
    const guest = await this.#find(machine);
    return guest && observationOf(guest.value);
  }

  async *inventory(): AsyncIterable<Found> {
    for await (const guest of this.#guests()) {
      yield {
        id: guest.id,
        project: guest.project,
        spec: guest.spec,
        createdAt: guest.createdAt,
        expiresAt: guest.expiresAt,
        observation: observationOf(guest),
      };
    }
  }

  async start(machine: MachineRef, call?: ProviderCall): Promise<Observation> {
    const guest = await this.#change(machine, call, (g) => ({ ...g, spec: machine.spec, power: "running" }));
    if (this.#hook?.handles(guest.spec.image)) await this.#hook.start(guest);
    return observationOf(guest);
  }

  async stop(
    machine: MachineRef,
    _options?: { readonly force: boolean },
    call?: ProviderCall,
  ): Promise<Observation> {
    const guest = await this.#change(machine, call, (g) => ({ ...g, spec: machine.spec, power: "stopped" }));
    if (this.#hook?.handles(guest.spec.image)) await this.#hook.stop(guest);
    return observationOf(guest);
  }

  async restart(machine: MachineRef, call?: ProviderCall): Promise<Observation> {
    await this.stop(machine, { force: false }, call);
    return this.start(machine, call);
  }

  async pause(machine: MachineRef, call?: ProviderCall): Promise<Observation> {
    return this.#freeze(machine, "paused", call);
  }

  async resume(machine: MachineRef, call?: ProviderCall): Promise<Observation> {
    return this.#freeze(machine, "running", call);
  }

  async resize(machine: MachineRef, size: Resize, call?: ProviderCall): Promise<Observation> {
    const resized = (spec: MachineSpec): MachineSpec => ({
      ...spec,
      compute: { cpu: size.cpu ?? spec.compute.cpu, memoryMiB: size.memoryMiB ?? spec.compute.memoryMiB },
      disk: { ...spec.disk, sizeGiB: size.diskGiB ?? spec.disk.sizeGiB },
    });
    return observationOf(await this.#change(machine, call, (g) => ({ ...g, spec: resized(g.spec) })));
  }

  async delete(machine: MachineRef, call?: ProviderCall): Promise<void> {
    const guest = await this.#find(machine);
    if (!guest) return;
    if (this.#hook?.handles(guest.value.spec.image)) await this.#hook.delete(guest.value);
    const gone = await new Change()
      .heldBy(call?.fence)
      .delete(guest.key)
      .delete(guest.value.addressKey)
      .deletePrefix(keys.demoSnapshot(machine.id))
      .commit(this.#store, this.#edges);
    if (!gone.succeeded) await this.#stillHeld(call);
  }

  async #freeze(
    machine: MachineRef,
    power: "paused" | "running",
    call: ProviderCall | undefined,
  ): Promise<Observation> {
    const guest = await this.#change(machine, call, (g) => {
      if (g.power !== "stopped") return { ...g, power };
      const verb = power === "paused" ? "paused" : "resumed";
      throw new ProviderError("conflict", `the machine is stopped: only one that runs can be ${verb}`);
    });
    return observationOf(guest);
  }

  async #boot(guest: Guest, call: ProviderCall): Promise<Guest> {
    if (!this.#hook?.handles(guest.spec.image)) return guest;
    const booted = await this.#hook.create(guest);
    if (!booted) return guest;
    return this.#change(guest, call, (g) => ({
      ...g,
      hooked: [...(booted.ipAddresses ?? [])],
      message: booted.message ?? g.message,
    }));
  }

  async #find(machine: { id: string; project: string }): Promise<Stored<Guest> | undefined> {
    const guest = await this.#documents.get(keys.demoGuest(machine.id), guestSchema);
    return guest?.value.project === machine.project ? guest : undefined;
  }

  /** Throws when the claim behind `call` is over: whatever was to be done is somebody else's now. */
  async #stillHeld(call: ProviderCall | undefined): Promise<void> {
    call?.signal.throwIfAborted();
    if (!call?.fence) return;
    const { kvs } = await this.#store.range({ key: call.fence.key });
    if (kvs[0]?.createRevision === call.fence.revision) return;
    throw new ProviderError("unavailable", "the work was taken over by another replica");
  }

  async #change(
    machine: { id: string; project: string },
    call: ProviderCall | undefined,
    change: (guest: Guest) => Guest,
  ): Promise<Guest> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const found = await this.#find(machine);
      if (!found) throw new ProviderError("not-found", `the demo guest of machine ${machine.id} is gone`);
      const next = change(found.value);
      const done = await new Change()
        .heldBy(call?.fence)
        .unchanged(found.key, found.modRevision)
        .put(found.key, next)
        .commit(this.#store, this.#edges);
      if (done.succeeded) return next;
      await this.#stillHeld(call);
    }
    throw new ProviderError("unavailable", `the demo guest of machine ${machine.id} is changed too often`);
  }

  async *#guests(): AsyncIterable<Guest> {
    const { key: first, end } = prefixRange(keys.demoGuest());
    let key = first;
    for (;;) {
      const page = await this.#documents.range({ key, end, limit: inventoryPage }, guestSchema);
      for (const guest of page.items) yield guest.value;
      if (!page.more || page.last === undefined) return;
      key = Buffer.from(`${page.last}\0`, "utf8");
    }
  }
}

function observationOf(guest: Guest): Observation {
  const addresses = guest.hooked?.length ? guest.hooked : [guest.address];
  return {
    state: guest.power,
    providerRef: { provider: "demo", namespace: guest.project, name: guest.spec.name },
    ipAddresses: addresses,
    consoleUrl: `https://console.demo.local/${guest.id}`,
    progressPercent: 100,
    message: guest.message,
  };
}
