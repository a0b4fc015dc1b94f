/**
 * What each kind of operation does at the provider, and what it leaves in the store.
 *
 * `perform` talks to the provider and returns an effect; the runner applies the effect to the newest
 * record inside a fenced transaction, again if somebody else changed the record meanwhile. So an
 * effect is a pure function of the record: it may run more than once.
 */
import type { Clock } from "@kontinuum/std";
import type { CatalogImage, Image } from "../model/image.ts";
import type { EventDraft, EventType } from "../model/event.ts";
import { snapshotSchema, type Machine, type Snapshot } from "../model/machine.ts";
import type { GuestSecrets } from "../model/dockur-options.ts";
import type { Operation } from "../model/operation.ts";
import {
  ProviderError,
  type MachineRef,
  type Observation,
  type Provider,
  type ProviderCall,
  type SnapshotProvider,
} from "../provider-contract/contract.ts";
import type { Change } from "../store/change.ts";
import type { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { refOf, withObservation, type MachineRecord } from "./record.ts";

/** Adds its writes and events to `change`; returns the machine's new record, or `undefined` when it is gone. */
export type Effect = (record: MachineRecord, change: Change, nowMs: number) => MachineRecord | undefined;

/** Time between two looks at a guest that shuts down, milliseconds. */
const stopPollMs = 500;

/** What an operation may use. */
export interface Tools {
  readonly provider: Provider;
  readonly clock: Clock;
  readonly documents: Documents;
  /** The catalog entry, or `undefined` when the image is no longer in it. */
  image(id: string): CatalogImage | undefined;
  /** Secrets sealed for a machine, if any are left. */
  secrets(machineId: string): Promise<GuestSecrets>;
  /** The record of another machine: the source of a clone. */
  machine(project: string, id: string): Promise<MachineRecord | undefined>;
}

/** Data of a machine event; `state` is left out where the contract has none. */
export function machineEvent(
  type: EventType,
  machine: Machine,
  more: Record<string, unknown> = {},
): EventDraft {
  return {
    type,
    subject: `machines/${machine.id}`,
    data: { project: machine.project, machineId: machine.id, name: machine.spec.name, ...more },
  };
}

/** The events that announce a new machine. */
export function creationEvents(machine: Machine): EventDraft[] {
  const consoleUrl = machine.consoleUrl ?? "";
  const created = machineEvent("io.kryton.machine.created", machine, { state: machine.state, consoleUrl });
  if (machine.state !== "provisioning") return [created];
  const message = machine.message ?? "";
  return [created, machineEvent("io.kryton.machine.install.started", machine, { consoleUrl, message })];
}

/** Runs an operation at the provider. Throws what the provider throws. */
export async function perform(
  operation: Operation,
  record: MachineRecord,
  tools: Tools,
  call: ProviderCall,
): Promise<Effect> {
  const { provider } = tools;
  const machine = record.machine;
  const ref = refOf(machine);
  switch (operation.kind) {
    case "create":
    case "clone":
      return create(operation, machine, tools, call);
    case "start":
      return observed(await provider.start(ref, call), "io.kryton.machine.started");
    case "stop":
      return observed(await stop(operation, ref, tools, call), "io.kryton.machine.stopped");
    case "pause":
    case "resume": {
      const work = provider[operation.kind]?.bind(provider);
      if (!work) throw new ProviderError("unsupported", `this provider cannot ${operation.kind} machines`);
      const type = operation.kind === "pause" ? "io.kryton.machine.paused" : "io.kryton.machine.resumed";
      return observed(await work(ref, call), type);
    }
    case "restart":
      return observed(await restart(provider, ref, call), "io.kryton.machine.restarted");
    case "resize":
      return resize(operation, ref, provider, call);
    case "delete":
      await provider.delete(ref, call);
      return remove(operation);
    case "snapshot":
      return snapshotEffect(operation, tools, "io.kryton.snapshot.created", (snapshots, which) =>
        snapshots.create(ref, which, call),
      );
    case "snapshot-restore":
      return snapshotEffect(operation, tools, "io.kryton.snapshot.restored", async (snapshots, which) => {
        const seen = await snapshots.restore(ref, which, call);
        return operation.parameters.start ? { ...seen, machine: await provider.start(ref, call) } : seen;
      });
    case "snapshot-delete":
      return deleteSnapshot(operation, tools, ref, call);
  }
}

async function create(
  operation: Operation,
  machine: Machine,
  tools: Tools,
  call: ProviderCall,
): Promise<Effect> {
  const entry = tools.image(machine.spec.image);
  if (!entry)
    throw new ProviderError("invalid", `image ${machine.spec.image} is not in the catalog any more`);
  const image: Image = { ...entry, ready: true };
  const source = operation.parameters.sourceMachineId;
  const cloneOf = source === undefined ? undefined : (await tools.machine(machine.project, source))?.machine;
  if (source !== undefined && !cloneOf)
    throw new ProviderError("invalid", `machine ${source} to clone is gone`);
  const seen = await tools.provider.create(
    {
      ...refOf(machine),
      image,
      secrets: await tools.secrets(machine.id),
      createdAt: machine.createdAt,
      expiresAt: machine.expiresAt,
      cloneOf: cloneOf && refOf(cloneOf),
    },
    call,
  );
  return (record, change, nowMs) => {
    const made = withObservation(record.machine, seen, nowMs);
    change.delete(keys.secret(machine.id));
    if (tools.provider.settlesAtOnce) for (const event of creationEvents(made)) change.event(event);
    else if (made.state !== record.machine.state) change.event(stateEvent(made));
    return { ...record, machine: made };
  };
}

async function restart(provider: Provider, ref: MachineRef, call: ProviderCall): Promise<Observation> {
  if (!provider.restart) throw new ProviderError("unsupported", "this provider cannot restart machines");
  return provider.restart(ref, call);
}

/** Stops a machine: politely, by force, or politely with a limit after which force is used. */
async function stop(
  { parameters }: Operation,
  ref: MachineRef,
  { provider, clock }: Tools,
  call: ProviderCall,
): Promise<Observation> {
  const { force = false, forceAfterSeconds } = parameters;
  let seen: Observation | undefined = await provider.stop(ref, { force }, call);
  if (force || forceAfterSeconds === undefined) return seen;
  const deadline = clock.monotonic() + forceAfterSeconds * 1_000;
  while (seen?.state !== "stopped" && clock.monotonic() < deadline) {
    call.progress({ phase: "shutdown", message: "waiting for the guest to shut down" });
    await clock.sleep(Math.min(stopPollMs, Math.max(0, deadline - clock.monotonic())), call.signal);
    seen = await provider.observe(ref, call);
  }
  return seen?.state === "stopped" ? seen : provider.stop(ref, { force: true }, call);
}

function observed(seen: Observation, type: EventType): Effect {
  return (record, change, nowMs) => {
    const machine = withObservation(record.machine, seen, nowMs);
    change.event(machineEvent(type, machine, { state: machine.state }));
    return { ...record, machine };
  };
}

async function resize(
  operation: Operation,
  ref: MachineRef,
  provider: Provider,
  call: ProviderCall,
): Promise<Effect> {
  if (!provider.resize) throw new ProviderError("unsupported", "this provider cannot resize machines");
  const { cpu, memoryMiB, diskGiB } = operation.parameters;
  const size = {
    ...(cpu === undefined ? {} : { cpu }),
    ...(memoryMiB === undefined ? {} : { memoryMiB }),
    ...(diskGiB === undefined ? {} : { diskGiB }),
  };
  const seen = await provider.resize(ref, size, call);
  return (record, change, nowMs) => {
    const { spec } = record.machine;
    const resized: Machine = {
      ...record.machine,
      spec: {
        ...spec,
        compute: { cpu: cpu ?? spec.compute.cpu, memoryMiB: memoryMiB ?? spec.compute.memoryMiB },
        disk: { ...spec.disk, sizeGiB: diskGiB ?? spec.disk.sizeGiB },
      },
    };
    const machine = withObservation(resized, seen, nowMs);
    change.event(machineEvent("io.kryton.machine.updated", machine, { state: machine.state }));
    return { ...record, machine };
  };
}

function remove(operation: Operation): Effect {
  return (record, change) => {
    const { machine } = record;
    change.delete(keys.machine(machine.project, machine.id));
    change.delete(keys.name(machine.project, machine.spec.name));
    change.delete(keys.secret(machine.id));
    if (record.expiryKey) change.delete(record.expiryKey);
    change.deletePrefix(keys.snapshot(machine.id));
    const expired = operation.parameters.reason === "expired";
    change.event(machineEvent(expired ? "io.kryton.machine.expired" : "io.kryton.machine.deleted", machine));
    return undefined;
  };
}

type SnapshotWork = (
  snapshots: SnapshotProvider,
  which: { id: string; name: string },
) => Promise<{ state: Snapshot["state"]; message?: string; machine?: Observation }>;

async function snapshotEffect(
  operation: Operation,
  tools: Tools,
  type: EventType,
  work: SnapshotWork,
): Promise<Effect> {
  const { snapshots } = tools.provider;
  if (!snapshots) throw new ProviderError("unsupported", "this provider has no snapshots");
  const snapshot = await snapshotOf(operation, tools);
  const seen = await work(snapshots, { id: snapshot.id, name: snapshot.name });
  return (record, change, nowMs) => {
    const { message: _, ...rest } = snapshot;
    change.put(keys.snapshot(snapshot.machineId, snapshot.id), {
      ...rest,
      state: seen.state,
      ...(seen.message ? { message: seen.message } : {}),
    } satisfies Snapshot);
    change.event({
      type,
      subject: `snapshots/${snapshot.id}`,
      data: {
        project: snapshot.project,
        machineId: snapshot.machineId,
        snapshotId: snapshot.id,
        name: snapshot.name,
      },
    });
    return seen.machine
      ? { ...record, machine: withObservation(record.machine, seen.machine, nowMs) }
      : record;
  };
}

async function deleteSnapshot(
  operation: Operation,
  tools: Tools,
  ref: MachineRef,
  call: ProviderCall,
): Promise<Effect> {
  const { snapshots } = tools.provider;
  if (!snapshots) throw new ProviderError("unsupported", "this provider has no snapshots");
  const snapshot = await snapshotOf(operation, tools);
  await snapshots.delete(ref, { id: snapshot.id, name: snapshot.name }, call);
  return (record, change) => {
    change.delete(keys.snapshot(snapshot.machineId, snapshot.id));
    change.event({
      type: "io.kryton.snapshot.deleted",
      subject: `snapshots/${snapshot.id}`,
      data: { project: snapshot.project, machineId: snapshot.machineId, snapshotId: snapshot.id },
    });
    return record;
  };
}

async function snapshotOf(operation: Operation, tools: Tools): Promise<Snapshot> {
  const id = operation.parameters.snapshotId ?? "";
  const stored = await tools.documents.get(keys.snapshot(operation.machineId, id), snapshotSchema);
  if (!stored) throw new ProviderError("not-found", `snapshot ${id} is gone`);
  return stored.value;
}

/** The event of a state that was seen, not asked for. */
export function stateEvent(machine: Machine): EventDraft {
  const type: EventType =
    machine.state === "running"
      ? "io.kryton.machine.running"
      : machine.state === "failed"
        ? "io.kryton.machine.failed"
        : "io.kryton.machine.state.changed";
  return machineEvent(type, machine, {
    state: machine.state,
    ...(machine.message ? { message: machine.message } : {}),
  });
}
