/**
 * Machines: the verbs of the API, in terms of records and operations.
 *
 * Nothing here talks to a provider except to ask whether a request is possible at all; everything
 * else is accepted as a durable operation. A verb waits a moment for its operation and answers with
 * the final state when that sufficed, otherwise with the state in between.
 */
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import type { Catalog } from "../catalog/catalog.ts";
import { formatTime } from "../model/bytes.ts";
import { invalidRequest } from "../model/errors.ts";
import type { CatalogImage, Image } from "../model/image.ts";
import type { CloneMachine, CreateMachine, Machine, UpdateMachine } from "../model/machine.ts";
import type { Operation, OperationKind } from "../model/operation.ts";
import { Acceptance, type Accepted, type Base, type Wanted } from "../operations/acceptance.ts";
import type { MachineRecord } from "../operations/record.ts";
import type { OperationRunner } from "../operations/runner.ts";
import type { Provider } from "../provider-contract/contract.ts";
import { Change } from "../store/change.ts";
import { Documents, type Stored } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import type { Sealer } from "../store/sealer.ts";
import type { ReplicaSession } from "../store/session.ts";
import { awaitMs, maxAttempts, type Asking } from "./asking.ts";
import { checkMinimums } from "./machine-checks.ts";
import { MachineCreation } from "./machine-creation.ts";
import { MachineReader } from "./machine-reader.ts";
import { busy, goneSoon, nameTaken, throwIfFailed, unsupported } from "./machine-refusals.ts";
import { checkRetriable, desiredAfter, retryChange } from "./machine-retry.ts";
import { resizeTarget, revised } from "./machine-revision.ts";
import { present } from "./machine-shape.ts";
import { QuotaGuard } from "./quota-guard.ts";
import type { Quota } from "./quotas.ts";
import { Turns } from "./turns.ts";
import { withdraw } from "./withdrawal.ts";

/** What the service is made from. */
export interface MachineServiceOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly session: ReplicaSession;
  readonly runner: OperationRunner;
  readonly provider: Provider;
  readonly catalog: Catalog;
  readonly sealer: Sealer;
  /** Adds availability to a catalog entry. */
  available(entry: CatalogImage): Promise<Image>;
  quota(project: string): Quota | undefined;
}

/** See the module comment. */
export class MachineService {
  readonly #options: MachineServiceOptions;
  readonly #documents: Documents;
  readonly #acceptance: Acceptance;
  readonly #turns = new Turns();
  readonly #reader: MachineReader;
  readonly #quotas: QuotaGuard;
  readonly #creation: MachineCreation;

  constructor(options: MachineServiceOptions) {
    this.#options = options;
    this.#documents = new Documents(options.store, options.edges.log);
    this.#acceptance = new Acceptance(options);
    this.#reader = new MachineReader(this.#documents);
    this.#quotas = new QuotaGuard({ ...options, machines: this.#reader });
    this.#creation = new MachineCreation({
      ...options,
      acceptance: this.#acceptance,
      reader: this.#reader,
      quotas: this.#quotas,
    });
  }

  /** Records a new machine and has it made. */
  create(project: string, body: CreateMachine, asking: Asking): Promise<Machine> {
    return this.#creation.create(project, body, asking);
  }

  /** A new machine with the disk of another. */
  clone(project: string, id: string, body: CloneMachine, asking: Asking): Promise<Machine> {
    return this.#creation.clone(project, id, body, asking);
  }

  /** The stored machine; `NOT_FOUND` when the project has none of that id. */
  find(project: string, id: string): Promise<Stored<MachineRecord>> {
    return this.#reader.find(project, id);
  }

  get(project: string, id: string): Promise<Machine> {
    return this.#reader.get(project, id);
  }

  /** See {@link MachineReader.list}. */
  list(...args: Parameters<MachineReader["list"]>): ReturnType<MachineReader["list"]> {
    return this.#reader.list(...args);
  }

  /** See {@link MachineReader.each}. */
  each(project: string): AsyncIterable<Machine> {
    return this.#reader.each(project);
  }

  start(project: string, id: string, asking: Asking): Promise<Machine> {
    return this.#power(project, id, { kind: "start", parameters: {} }, "running", asking);
  }

  /** Stops a machine: politely; by force; or politely for `forceAfterSeconds`, then by force. */
  stop(
    project: string,
    id: string,
    how: Pick<Operation["parameters"], "force" | "forceAfterSeconds">,
    asking: Asking,
  ): Promise<Machine> {
    const forcing = how.force === true || how.forceAfterSeconds !== undefined;
    if (forcing && !this.#options.provider.capabilities.forceStop)
      throw unsupported("force machines to stop");
    return this.#power(project, id, { kind: "stop", parameters: how }, "stopped", asking);
  }

  pause(project: string, id: string, asking: Asking): Promise<Machine> {
    if (!this.#options.provider.capabilities.pause) throw unsupported("pause machines");
    return this.#power(project, id, { kind: "pause", parameters: {} }, "running", asking);
  }

  resume(project: string, id: string, asking: Asking): Promise<Machine> {
    if (!this.#options.provider.capabilities.pause) throw unsupported("resume machines");
    return this.#power(project, id, { kind: "resume", parameters: {} }, "running", asking);
  }

  /** Does the work of an operation that failed or was cancelled once more, as a new operation. */
  async retry(operation: Operation, requestedBy: string): Promise<Operation> {
    checkRetriable(operation);
    const { project, machineId, kind, parameters } = operation;
    const accepted = await this.#attempt(project, machineId, async (found) => {
      if (found.value.desired === "deleted") throw goneSoon(found.value.machine);
      const change = await retryChange(operation, found, this.#documents, this.#quotas);
      if (kind === "delete") change.include(await withdraw(this.#documents, machineId, this.#now()));
      const record = { ...found.value, desired: desiredAfter(operation, found.value) };
      const base = { record, modRevision: found.modRevision };
      return this.#acceptance.accept(base, { kind, parameters, requestedBy }, change);
    });
    return accepted.operation;
  }

  restart(project: string, id: string, asking: Asking): Promise<Machine> {
    if (!this.#options.provider.capabilities.restart) throw unsupported("restart machines");
    return this.#power(project, id, { kind: "restart", parameters: {} }, "running", asking);
  }

  /**
   * Removes a machine; what waits for it is withdrawn, what runs is cancelled. Resolves once accepted, with
   * whether it was this call that asked for it first.
   */
  async delete(
    project: string,
    id: string,
    asking: Asking,
    reason: "request" | "expired" = "request",
  ): Promise<boolean> {
    const accepted = await this.#attempt(project, id, async (found) => {
      if (found.value.desired === "deleted") return "already";
      const change = await withdraw(this.#documents, id, this.#now());
      asking.record?.(change, { machineId: id });
      const base = {
        record: { ...found.value, desired: "deleted" as const },
        modRevision: found.modRevision,
      };
      return this.#acceptance.accept(
        base,
        { kind: "delete", parameters: { reason }, requestedBy: asking.requestedBy },
        change,
      );
    });
    if (accepted === "already") return false;
    throwIfFailed(await accepted.ended(awaitMs));
    return true;
  }

  /** Renames, labels, resizes, or sets a new expiry. */
  async update(project: string, id: string, body: UpdateMachine, asking: Asking): Promise<Machine> {
    const { provider, catalog } = this.#options;
    const resizing = body.compute !== undefined || body.disk?.sizeGiB !== undefined;
    if (resizing && !provider.capabilities.resize) throw unsupported("resize machines");
    const accepted = await this.#attempt(project, id, async (found) => {
      const { record, change } = revised(found, body, this.#options.edges.clock.now());
      asking.record?.(change, { machineId: id });
      const base = { record, modRevision: found.modRevision };
      if (!resizing) return this.#write(base, change, body.name !== undefined);
      const target = resizeTarget(record.machine, body);
      const entry = catalog.get(record.machine.spec.image);
      if (entry) checkMinimums({ compute: target }, entry);
      if (target.diskGiB < record.machine.spec.disk.sizeGiB) {
        throw invalidRequest(`disk.sizeGiB cannot shrink below ${record.machine.spec.disk.sizeGiB}`);
      }
      await this.#quotas.guard(project, record.machine, target, change);
      return this.#acceptance.accept(
        base,
        { kind: "resize", parameters: target, requestedBy: asking.requestedBy },
        change,
      );
    });
    if (accepted instanceof Object && "ended" in accepted) return this.#settled(project, id, accepted);
    return this.get(project, id);
  }

  /** Accepts an operation on an existing machine, with `more` in the same transaction. */
  async operate(
    project: string,
    id: string,
    wanted: Wanted,
    more: (found: Stored<MachineRecord>) => Change | Promise<Change>,
  ): Promise<Accepted> {
    return this.#attempt(project, id, async (found) => {
      if (found.value.desired === "deleted") throw goneSoon(found.value.machine);
      return this.#acceptance.accept(
        { record: found.value, modRevision: found.modRevision },
        wanted,
        await more(found),
      );
    });
  }

  async #power(
    project: string,
    id: string,
    wanted: { readonly kind: OperationKind; readonly parameters: Operation["parameters"] },
    desired: "running" | "stopped",
    asking: Asking,
  ): Promise<Machine> {
    const accepted = await this.#attempt(project, id, (found) => {
      if (found.value.desired === "deleted") throw goneSoon(found.value.machine);
      const change = new Change();
      asking.record?.(change, { machineId: id });
      const base = { record: { ...found.value, desired }, modRevision: found.modRevision };
      return this.#acceptance.accept(base, { ...wanted, requestedBy: asking.requestedBy }, change);
    });
    return this.#settled(project, id, accepted);
  }

  #now(): string {
    return formatTime(this.#options.edges.clock.now());
  }

  async #write(base: Base, change: Change, renamed: boolean): Promise<"written" | undefined> {
    const { machine } = base.record;
    const key = keys.machine(machine.project, machine.id);
    const { store, edges } = this.#options;
    const done = await change.unchanged(key, base.modRevision).put(key, base.record).commit(store, edges);
    if (done.succeeded) return "written";
    if (renamed && (await this.#named(machine))) {
      throw nameTaken(machine.project, machine.spec.name);
    }
    return undefined;
  }

  async #named(machine: Machine): Promise<boolean> {
    const key = keys.name(machine.project, machine.spec.name);
    return (await this.#options.store.range({ key, countOnly: true })).count > 0;
  }

  async #settled(project: string, id: string, accepted: Accepted): Promise<Machine> {
    const end = await accepted.ended(awaitMs);
    throwIfFailed(end);
    return end?.record ? present(end.record) : this.get(project, id);
  }

  /** Reads, tries, and repeats while `step` answers `undefined` because somebody else was faster. */
  async #attempt<T>(
    project: string,
    id: string,
    step: (found: Stored<MachineRecord>) => Promise<T | undefined>,
  ): Promise<T> {
    const result = await this.#turns.take(id, async () => {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const done = await step(await this.find(project, id));
        if (done !== undefined) return done;
      }
      return undefined;
    });
    if (result === undefined) throw busy(`machine ${id}`);
    return result;
  }
}
