/**
 * Operations as callers see them: the queue and the history, cancelling, trying again.
 */
import type { Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { z } from "zod";
import { formatTime } from "../model/bytes.ts";
import { KrytonError } from "../model/errors.ts";
import { hasProject, type Principal } from "../model/principal.ts";
import { isFinal, operationSchema, type Operation, type OperationKind } from "../model/operation.ts";
import { machineRecordSchema, type MachineRecord } from "../operations/record.ts";
import { Change } from "../store/change.ts";
import { Documents, type Stored } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { cancelWaiting } from "./withdrawal.ts";

/** Operations of one machine that are listed. */
const maxListed = 200;
/** Records a page of all operations looks at. */
const maxScanned = 5_000;
const scanPage = 500;
const maxAttempts = 16;
/** Kinds that leave nothing to tidy up when they never began. */
const harmless: ReadonlySet<OperationKind> = new Set([
  "start",
  "stop",
  "restart",
  "pause",
  "resume",
  "resize",
]);

/** What the service is made from. */
export interface OperationServiceOptions {
  readonly store: Store;
  readonly edges: Edges;
}

/** See the module comment. */
export class OperationService {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #documents: Documents;

  constructor({ store, edges }: OperationServiceOptions) {
    this.#store = store;
    this.#edges = edges;
    this.#documents = new Documents(store, edges.log);
  }

  /** An operation the caller may see; `NOT_FOUND` otherwise. */
  async find(principal: Principal, id: string): Promise<Stored<Operation>> {
    const found = await this.#documents.get(keys.operation(id), operationSchema);
    if (!found || !hasProject(principal, found.value.project)) {
      throw new KrytonError("NOT_FOUND", `no operation ${id}`);
    }
    return found;
  }

  /** Operations of a machine, newest first: those that wait or run, and the last that ended. */
  async ofMachine(machineId: string): Promise<Operation[]> {
    const index = await this.#documents.list(keys.operationOf(machineId), z.null(), {
      limit: maxListed,
      sort: { by: "key", descending: true },
    });
    const ids = index.map(({ key }) => key.slice(keys.operationOf(machineId).length));
    const found = await Promise.all(
      ids.map((id) => this.#documents.get(keys.operation(id), operationSchema)),
    );
    return found.flatMap((stored) => (stored ? [stored.value] : []));
  }

  /** Operations of a project, newest first, after `cursor`. */
  async list(
    project: string,
    limit: number,
    after: string | undefined,
    state: string | undefined,
  ): Promise<{ items: Operation[]; next: string | undefined }> {
    const items: Operation[] = [];
    const prefix = keys.operation();
    let end = after === undefined ? `${prefix.slice(0, -1)}0` : keys.operation(after);
    for (let scanned = 0; scanned < maxScanned; scanned += scanPage) {
      const page = await this.#documents.range(
        { key: prefix, end, limit: scanPage, sort: { by: "key", descending: true } },
        operationSchema,
      );
      for (const { value } of page.items) {
        if (value.project !== project || (state !== undefined && value.state !== state)) continue;
        items.push(value);
        if (items.length === limit) return { items, next: value.id };
      }
      if (!page.more || page.last === undefined) return { items, next: undefined };
      end = page.last;
    }
    return { items, next: end.slice(prefix.length) };
  }

  /** Cancels an operation: at once while it waits, as soon as its provider stops when it runs. */
  async cancel(id: string): Promise<Operation> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const found = await this.#documents.get(keys.operation(id), operationSchema);
      if (!found) throw new KrytonError("NOT_FOUND", `no operation ${id}`);
      const operation = found.value;
      if (isFinal(operation)) {
        throw new KrytonError("CONFLICT", `operation ${id} is ${operation.state} already`);
      }
      if (operation.kind === "delete") {
        throw new KrytonError("CONFLICT", "a deletion cannot be cancelled");
      }
      const time = formatTime(this.#edges.clock.now());
      const change = new Change();
      let next: Operation;
      if (operation.state === "running" || operation.attempt > 0 || !harmless.has(operation.kind)) {
        next = { ...operation, cancelRequested: true, updatedAt: time };
        change.unchanged(found.key, found.modRevision).put(found.key, next).put(keys.cancel(id), {});
        // One that waits for its next attempt need not wait any longer to be given up.
        change.put(keys.queue(operation.machineId, id), { notBefore: 0 });
      } else {
        // Beginning it changes its document, so the end written here and the beginning exclude each other.
        next = cancelWaiting(operation, found.modRevision, time, change);
        await this.#unshow(operation, change);
      }
      if ((await change.commit(this.#store, this.#edges)).succeeded) return next;
    }
    throw new KrytonError("CONFLICT", `operation ${id} changes too often to be cancelled`, {
      retryAfterMs: 1_000,
    });
  }

  /** The machine shows the newest operation that waits or runs: when that is withdrawn, the one before it. */
  async #unshow({ id, machineId, project }: Operation, change: Change): Promise<void> {
    const machine = await this.#documents.get(keys.machine(project, machineId), machineRecordSchema);
    if (machine?.value.operation?.id !== id) return;
    const others = (await this.#documents.list(keys.queue(machineId), z.unknown()))
      .sort((a, b) => b.createRevision - a.createRevision)
      .map(({ key }) => key.slice(keys.queue(machineId).length))
      .filter((other) => other !== id);
    const { operation: _, ...rest } = machine.value;
    const before = others[0] && (await this.#documents.get(keys.operation(others[0]), operationSchema));
    const shown = before && { id: before.value.id, kind: before.value.kind };
    change.unchanged(machine.key, machine.modRevision).put(machine.key, {
      ...rest,
      ...(shown ? { operation: shown } : {}),
    } satisfies MachineRecord);
  }
}
