/**
 * Machines: the verbs of the API, in terms of records and operations.
 *
 * Nothing here talks to a provider except to ask whether a request is possible at all; everything
 * else is accepted as a durable operation. A verb waits a moment for its operation and answers with
 * the final state when that sufficed, otherwise with the state in between.
 */
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import type { Catalog } from "../catalog/catalog.ts";
import { formatTime } from "../model/bytes.ts";
import { splitSecrets } from "../model/dockur-options.ts";
import { invalidRequest, KrytonError, krytonErrors, type KrytonCode } from "../model/errors.ts";
import type { CatalogImage, Image } from "../model/image.ts";
import type { CloneMachine, CreateMachine, Machine, MachineSpec, UpdateMachine } from "../model/machine.ts";
import type { Operation, OperationKind } from "../model/operation.ts";
import { Acceptance, type Accepted, type Base, type Wanted } from "../operations/acceptance.ts";
import { creationEvents, machineEvent } from "../operations/effects.ts";
import { classify } from "../operations/failure.ts";
import { machineRecordSchema, refOf, type MachineRecord } from "../operations/record.ts";
import type { End, OperationRunner } from "../operations/runner.ts";
import type { CreateRequest, Provider, ProviderCall } from "../provider/contract.ts";
import { Change } from "../store/change.ts";
import { Documents, type Stored } from "../store/documents.ts";
import { keys, timeKey } from "../store/keyspace.ts";
import type { Sealer } from "../store/sealer.ts";
import type { ReplicaSession } from "../store/session.ts";
import { checkImage, checkMinimums, checkReady, specProblems } from "./machine-checks.ts";
import { Turns } from "./turns.ts";
import { withdraw } from "./withdrawal.ts";
import { addUsage, checkQuota, noUsage, usageOf, type Quota, type Usage } from "./quotas.ts";

/** How long a verb waits for its operation, milliseconds. */
export const awaitMs = 250;
/** How often a change that others keep overtaking is tried. */
const maxAttempts = 16;
const scanPage = 500;
/** Records one filtered page looks at before it answers with what it found so far. */
const maxScanned = 5_000;

/** Who asks, and what has to be written together with the change. */
export interface Asking {
  readonly requestedBy: string;
  /** Adds to the accepting transaction, so that a repeat of the request can be recognised. */
  record?(change: Change, accepted: { readonly machineId: string }): void;
}

/** Filters of a list. */
export interface MachineFilter {
  readonly labels: readonly { readonly key: string; readonly value: string | undefined }[];
  readonly state: string | undefined;
}

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

  constructor(options: MachineServiceOptions) {
    this.#options = options;
    this.#documents = new Documents(options.store, options.edges.log);
    this.#acceptance = new Acceptance(options);
  }

  /** Records a new machine and has it made. */
  async create(project: string, body: CreateMachine, asking: Asking): Promise<Machine> {
    const { project: _, dockur, ...rest } = body;
    const { open, secrets } = splitSecrets(dockur ?? {});
    const spec: MachineSpec = withoutEmpty({ ...rest, ...(dockur ? { dockur: open } : {}) });
    const problems = specProblems(spec);
    if (problems.length > 0) throw invalidRequest(problems);
    return this.#make({ project, spec, secrets, kind: "create", cloneOf: undefined, asking });
  }

  /** A new machine with the disk of another. */
  async clone(project: string, id: string, body: CloneMachine, asking: Asking): Promise<Machine> {
    const { provider } = this.#options;
    if (!provider.capabilities.clone) throw unsupported("clone machines");
    const { value: source } = await this.find(project, id);
    if (source.desired === "deleted") throw goneSoon(source.machine);
    const { ttlMinutes: _, ...spec } = source.machine.spec;
    return this.#make({
      project,
      spec: withoutEmpty({ ...spec, ...body }),
      secrets: {},
      kind: "clone",
      cloneOf: source.machine,
      asking,
    });
  }

  /** The stored machine; `NOT_FOUND` when the project has none of that id. */
  async find(project: string, id: string): Promise<Stored<MachineRecord>> {
    const found = await this.#documents.get(keys.machine(project, id), machineRecordSchema);
    if (!found) throw notFound(project, id);
    return found;
  }

  async get(project: string, id: string): Promise<Machine> {
    return present((await this.find(project, id)).value);
  }

  /** Machines by id, after `cursor`; `next` is the id to go on after. */
  async list(
    project: string,
    page: { readonly limit: number; readonly after: string | undefined },
    filter: MachineFilter,
  ): Promise<{ items: Machine[]; next: string | undefined }> {
    const items: Machine[] = [];
    const prefix = keys.machine(project);
    const filtered = filter.labels.length > 0 || filter.state !== undefined;
    let from = page.after === undefined ? prefix : `${prefix}${page.after}\0`;
    for (let scanned = 0; scanned < maxScanned;) {
      const limit = filtered ? scanPage : page.limit - items.length;
      const batch = await this.#documents.range(
        { key: from, end: endOf(prefix), limit },
        machineRecordSchema,
      );
      for (const { value, key } of batch.items) {
        scanned++;
        if (matches(value.machine, filter)) items.push(present(value));
        if (items.length === page.limit) {
          const more = batch.more || key !== batch.items.at(-1)?.key;
          return { items, next: more ? value.machine.id : undefined };
        }
      }
      if (!batch.more || batch.last === undefined) return { items, next: undefined };
      from = `${batch.last}\0`;
      if (scanned >= maxScanned) return { items, next: batch.last.slice(prefix.length) };
    }
    return { items, next: undefined };
  }

  /** Every machine of a project, in steps; for sums and sweeps. */
  async *each(project: string): AsyncIterable<Machine> {
    const prefix = keys.machine(project);
    let from = prefix;
    for (;;) {
      const page = await this.#documents.range(
        { key: from, end: endOf(prefix), limit: scanPage },
        machineRecordSchema,
      );
      for (const { value } of page.items) yield value.machine;
      if (!page.more || page.last === undefined) return;
      from = `${page.last}\0`;
    }
  }

  start(project: string, id: string, asking: Asking): Promise<Machine> {
    return this.#power(project, id, { kind: "start", parameters: {} }, "running", asking);
  }

  stop(project: string, id: string, force: boolean, asking: Asking): Promise<Machine> {
    if (force && !this.#options.provider.capabilities.forceStop) throw unsupported("force machines to stop");
    return this.#power(project, id, { kind: "stop", parameters: force ? { force } : {} }, "stopped", asking);
  }

  restart(project: string, id: string, asking: Asking): Promise<Machine> {
    if (!this.#options.provider.capabilities.restart) throw unsupported("restart machines");
    return this.#power(project, id, { kind: "restart", parameters: {} }, "running", asking);
  }

  /** Removes a machine; what waits for it is withdrawn, what runs is cancelled. Resolves once accepted. */
  async delete(
    project: string,
    id: string,
    asking: Asking,
    reason: "request" | "expired" = "request",
  ): Promise<void> {
    const accepted = await this.#attempt(project, id, async (found) => {
      if (found.value.desired === "deleted") return "already";
      const change = await withdraw(this.#documents, id, formatTime(this.#options.edges.clock.now()));
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
    if (accepted !== "already") throwIfFailed(await accepted.ended(awaitMs));
  }

  /** Renames, labels, resizes, or sets a new expiry. */
  async update(project: string, id: string, body: UpdateMachine, asking: Asking): Promise<Machine> {
    const { provider, catalog } = this.#options;
    const resizing = body.compute !== undefined || body.disk?.sizeGiB !== undefined;
    if (resizing && !provider.capabilities.resize) throw unsupported("resize machines");
    const accepted = await this.#attempt(project, id, async (found) => {
      const { record, change } = await this.#revised(found, body);
      asking.record?.(change, { machineId: id });
      const base = { record, modRevision: found.modRevision };
      if (!resizing) return this.#write(base, change, body.name !== undefined);
      const target = resizeTarget(record.machine, body);
      const entry = catalog.get(record.machine.spec.image);
      if (entry) checkMinimums({ compute: target }, entry);
      if (target.diskGiB < record.machine.spec.disk.sizeGiB) {
        throw invalidRequest(`disk.sizeGiB cannot shrink below ${record.machine.spec.disk.sizeGiB}`);
      }
      await this.#guardQuota(project, record.machine, target, change);
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

  async #make(making: {
    readonly project: string;
    readonly spec: MachineSpec;
    readonly secrets: CreateRequest["secrets"];
    readonly kind: "create" | "clone";
    readonly cloneOf: Machine | undefined;
    readonly asking: Asking;
  }): Promise<Machine> {
    const { project, spec, secrets, kind, cloneOf, asking } = making;
    const { edges, provider, catalog, sealer, available } = this.#options;
    const entry = checkImage(spec, catalog.get(spec.image), provider.name);
    const image = await available(entry);
    checkReady(image);
    const now = edges.clock.now();
    const id = edges.random.uuid();
    const expiresMs = spec.ttlMinutes ? now + spec.ttlMinutes * 60_000 : undefined;
    const machine: Machine = {
      id,
      project,
      provider: provider.name,
      state: "provisioning",
      spec,
      providerRef: provider.reference({ id, project, spec }),
      createdAt: formatTime(now),
      updatedAt: formatTime(now),
      ...(expiresMs === undefined ? {} : { expiresAt: formatTime(expiresMs) }),
    };
    const request: CreateRequest = {
      ...refOf(machine),
      image,
      secrets,
      createdAt: machine.createdAt,
      expiresAt: machine.expiresAt,
      cloneOf: cloneOf && refOf(cloneOf),
    };
    await provider.check(request, quietCall()).catch((error: unknown) => {
      throw classify(error);
    });
    const wanted: Wanted = {
      kind,
      parameters: cloneOf ? { sourceMachineId: cloneOf.id } : {},
      requestedBy: asking.requestedBy,
    };
    const nameKey = keys.name(project, spec.name);
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const change = new Change().absent(nameKey).put(nameKey, id);
      const expiryKey = expiresMs === undefined ? undefined : keys.expiry(timeKey(expiresMs), project, id);
      if (expiryKey) change.put(expiryKey, null);
      if (Object.keys(secrets).length > 0) {
        const place = keys.secret(id);
        change.put(place, { sealed: sealer.seal(JSON.stringify(secrets), place) });
      }
      if (!provider.settlesAtOnce) for (const event of creationEvents(machine)) change.event(event);
      await this.#guardQuota(project, undefined, { ...spec.compute, diskGiB: spec.disk.sizeGiB }, change);
      asking.record?.(change, { machineId: id });
      const record: MachineRecord = { machine, desired: "running", ...(expiryKey ? { expiryKey } : {}) };
      const accepted = await this.#acceptance.accept({ record, modRevision: 0 }, wanted, change);
      if (accepted) {
        const end = await accepted.ended(awaitMs);
        // A creation that failed is still a machine: its record says what happened and can be deleted.
        return end?.record ? present(end.record) : this.get(project, id);
      }
      if (await this.#nameTaken(nameKey)) {
        throw new KrytonError("CONFLICT", `a machine called ${spec.name} is already in project ${project}`, {
          hint: "Pick another name.",
        });
      }
    }
    throw busy(`project ${project}`);
  }

  async #nameTaken(nameKey: string): Promise<boolean> {
    const { count } = await this.#options.store.range({ key: nameKey, countOnly: true });
    return count > 0;
  }

  /** Adds to `change` what makes a second creation at the same time impossible when a quota is set. */
  async #guardQuota(
    project: string,
    before: Machine | undefined,
    target: { readonly cpu: number; readonly memoryMiB: number; readonly diskGiB: number },
    change: Change,
  ): Promise<void> {
    const quota = this.#options.quota(project);
    if (!quota) return;
    const guard = await this.#options.store.range({ key: keys.usage(project) });
    let used: Usage = noUsage;
    for await (const machine of this.each(project)) used = addUsage(used, usageOf(machine.spec));
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

  async #revised(
    found: Stored<MachineRecord>,
    body: UpdateMachine,
  ): Promise<{ record: MachineRecord; change: Change }> {
    const { machine, desired, expiryKey: oldKey } = found.value;
    if (desired === "deleted") throw goneSoon(machine);
    const now = this.#options.edges.clock.now();
    const change = new Change();
    let { spec, expiresAt } = machine;
    let expiryKey = oldKey;
    if (body.labels) spec = withoutEmpty({ ...spec, labels: body.labels });
    if (body.name !== undefined && body.name !== spec.name) {
      const nameKey = keys.name(machine.project, body.name);
      change.absent(nameKey).put(nameKey, machine.id).delete(keys.name(machine.project, spec.name));
      spec = { ...spec, name: body.name };
    }
    if (body.ttlMinutes !== undefined) {
      const at = body.ttlMinutes === 0 ? undefined : now + body.ttlMinutes * 60_000;
      const nextKey = at === undefined ? undefined : keys.expiry(timeKey(at), machine.project, machine.id);
      if (oldKey && oldKey !== nextKey) change.delete(oldKey);
      if (nextKey) change.put(nextKey, null);
      expiryKey = nextKey;
      expiresAt = at === undefined ? undefined : formatTime(at);
      spec = withoutEmpty({ ...spec, ttlMinutes: body.ttlMinutes });
    }
    const { expiresAt: _, ...rest } = machine;
    const next: Machine = { ...rest, spec, updatedAt: formatTime(now), ...(expiresAt ? { expiresAt } : {}) };
    change.event(machineEvent("io.kryton.machine.updated", next, { state: next.state }));
    const { expiryKey: __, ...record } = found.value;
    return { record: { ...record, machine: next, ...(expiryKey ? { expiryKey } : {}) }, change };
  }

  async #write(base: Base, change: Change, renamed: boolean): Promise<"written" | undefined> {
    const { machine } = base.record;
    const key = keys.machine(machine.project, machine.id);
    const { store, edges } = this.#options;
    const done = await change.unchanged(key, base.modRevision).put(key, base.record).commit(store, edges);
    if (done.succeeded) return "written";
    if (renamed && (await this.#nameTaken(keys.name(machine.project, machine.spec.name)))) {
      throw new KrytonError(
        "CONFLICT",
        `a machine called ${machine.spec.name} is already in project ${machine.project}`,
        {
          hint: "Pick another name.",
        },
      );
    }
    return undefined;
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

/** A machine as callers see it. */
export function present(record: MachineRecord): Machine {
  return record.operation ? { ...record.machine, operation: record.operation } : record.machine;
}

/** Throws what an operation failed with, when it did so in time. */
export function throwIfFailed(end: End | undefined): void {
  const operation = end?.operation;
  if (operation?.state === "cancelled") {
    throw new KrytonError("CONFLICT", `${operation.kind} of machine ${operation.machineId} was cancelled`);
  }
  if (operation?.state !== "failed" || !operation.error) return;
  const { code, message } = operation.error;
  throw new KrytonError(isCode(code) ? code : "INTERNAL", message);
}

function isCode(code: string): code is KrytonCode {
  return Object.hasOwn(krytonErrors, code);
}

function notFound(project: string, id: string): KrytonError {
  return new KrytonError("NOT_FOUND", `no machine ${id} in project ${project}`, {
    hint: "Check the id and the project.",
  });
}

function goneSoon(machine: Machine): KrytonError {
  return new KrytonError("CONFLICT", `machine ${machine.id} is being deleted`);
}

function unsupported(what: string): KrytonError {
  return new KrytonError("UNSUPPORTED", `this provider cannot ${what}`, {
    hint: "GET /api/v1/capabilities lists what it can do.",
  });
}

function busy(what: string): KrytonError {
  return new KrytonError("CONFLICT", `${what} is changed by too many callers at once`, {
    hint: "Try again.",
    retryAfterMs: 1_000,
  });
}

function quietCall(): ProviderCall {
  return { signal: new AbortController().signal, progress: () => {} };
}

function resizeTarget(
  machine: Machine,
  body: UpdateMachine,
): { cpu: number; memoryMiB: number; diskGiB: number } {
  return {
    cpu: body.compute?.cpu ?? machine.spec.compute.cpu,
    memoryMiB: body.compute?.memoryMiB ?? machine.spec.compute.memoryMiB,
    diskGiB: body.disk?.sizeGiB ?? machine.spec.disk.sizeGiB,
  };
}

function matches(machine: Machine, filter: MachineFilter): boolean {
  if (filter.state !== undefined && machine.state !== filter.state) return false;
  const labels = machine.spec.labels ?? {};
  return filter.labels.every(({ key, value }) =>
    value === undefined ? Object.hasOwn(labels, key) : Object.hasOwn(labels, key) && labels[key] === value,
  );
}

/** Drops optional fields that are empty, as the original's serializer did. `network` always stays. */
function withoutEmpty(spec: MachineSpec): MachineSpec {
  const { ttlMinutes, labels, dockur, initialization, ...rest } = spec;
  const { storageClass, volumeMode, sizeGiB } = rest.disk;
  return {
    name: rest.name,
    image: rest.image,
    ...(initialization
      ? {
          initialization: {
            ...(initialization.username ? { username: initialization.username } : {}),
            ...(initialization.sshAuthorizedKeys?.length
              ? { sshAuthorizedKeys: initialization.sshAuthorizedKeys }
              : {}),
          },
        }
      : {}),
    compute: rest.compute,
    disk: { sizeGiB, ...(storageClass ? { storageClass } : {}), ...(volumeMode ? { volumeMode } : {}) },
    network: rest.network.networkId ? { networkId: rest.network.networkId } : {},
    ...(ttlMinutes ? { ttlMinutes } : {}),
    ...(labels && Object.keys(labels).length > 0 ? { labels } : {}),
    ...(dockur
      ? { dockur: Object.fromEntries(Object.entries(dockur).filter(([, value]) => !isEmpty(value))) }
      : {}),
  };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
}

function endOf(prefix: string): string {
  // "/" is followed by "0", and ids hold only what sorts below it or after it under the same prefix.
  return `${prefix.slice(0, -1)}0`;
}
