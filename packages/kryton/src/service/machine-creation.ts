/**
 * Making machines: from an image, or as a clone of another machine.
 *
 * Everything that can be refused is refused before anything is recorded; then the record, its name, its
 * expiry, its sealed secrets and its operation are one transaction.
 */
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import type { Catalog } from "../catalog/catalog.ts";
import { formatTime } from "../model/bytes.ts";
import { splitSecrets } from "../model/dockur-options.ts";
import { invalidRequest } from "../model/errors.ts";
import type { CatalogImage, Image } from "../model/image.ts";
import type { CloneMachine, CreateMachine, Machine, MachineSpec } from "../model/machine.ts";
import type { Acceptance, Wanted } from "../operations/acceptance.ts";
import { creationEvents } from "../operations/effects.ts";
import { classify } from "../operations/failure.ts";
import { refOf, type MachineRecord } from "../operations/record.ts";
import type { CreateRequest, Provider, ProviderCall } from "../provider-contract/contract.ts";
import { Change } from "../store/change.ts";
import { keys, timeKey } from "../store/keyspace.ts";
import type { Sealer } from "../store/sealer.ts";
import { awaitMs, maxAttempts, type Asking } from "./asking.ts";
import { checkImage, checkReady, specProblems } from "./machine-checks.ts";
import type { MachineReader } from "./machine-reader.ts";
import { busy, goneSoon, nameTaken, unsupported } from "./machine-refusals.ts";
import { present, withoutEmpty } from "./machine-shape.ts";
import type { QuotaGuard } from "./quota-guard.ts";

/** What creation needs. */
export interface MachineCreationOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly provider: Provider;
  readonly catalog: Catalog;
  readonly sealer: Sealer;
  readonly acceptance: Acceptance;
  readonly reader: MachineReader;
  readonly quotas: QuotaGuard;
  /** Adds availability to a catalog entry. */
  available(entry: CatalogImage): Promise<Image>;
}

/** See the module comment. */
export class MachineCreation {
  readonly #options: MachineCreationOptions;

  constructor(options: MachineCreationOptions) {
    this.#options = options;
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
    const { value: source } = await this.#options.reader.find(project, id);
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
      await this.#options.quotas.guard(
        project,
        undefined,
        { ...spec.compute, diskGiB: spec.disk.sizeGiB },
        change,
      );
      asking.record?.(change, { machineId: id });
      const record: MachineRecord = { machine, desired: "running", ...(expiryKey ? { expiryKey } : {}) };
      const accepted = await this.#options.acceptance.accept({ record, modRevision: 0 }, wanted, change);
      if (accepted) {
        const end = await accepted.ended(awaitMs);
        // A creation that failed is still a machine: its record says what happened and can be deleted.
        return end?.record ? present(end.record) : this.#options.reader.get(project, id);
      }
      if (await this.#nameTaken(nameKey)) {
        throw nameTaken(project, spec.name);
      }
    }
    throw busy(`project ${project}`);
  }

  async #nameTaken(nameKey: string): Promise<boolean> {
    const { count } = await this.#options.store.range({ key: nameKey, countOnly: true });
    return count > 0;
  }
}

function quietCall(): ProviderCall {
  return { signal: new AbortController().signal, progress: () => {} };
}
