/**
 * Reading machines: one, a page, all of a project. Pages are made at the source: a page reads a page.
 */
import type { Machine } from "../model/machine.ts";
import { machineRecordSchema, type MachineRecord } from "../operations/record.ts";
import type { Documents, Stored } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { notFound } from "./machine-refusals.ts";
import { present } from "./machine-shape.ts";

const scanPage = 500;
/** Records one filtered page looks at before it answers with what it found so far. */
const maxScanned = 5_000;

/** Filters of a list. */
export interface MachineFilter {
  readonly labels: readonly { readonly key: string; readonly value: string | undefined }[];
  readonly state: string | undefined;
}

/** See the module comment. */
export class MachineReader {
  readonly #documents: Documents;

  constructor(documents: Documents) {
    this.#documents = documents;
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
}

function matches(machine: Machine, filter: MachineFilter): boolean {
  if (filter.state !== undefined && machine.state !== filter.state) return false;
  const labels = machine.spec.labels ?? {};
  return filter.labels.every(({ key, value }) =>
    value === undefined ? Object.hasOwn(labels, key) : Object.hasOwn(labels, key) && labels[key] === value,
  );
}

function endOf(prefix: string): string {
  // "/" is followed by "0", and ids hold only what sorts below it or after it under the same prefix.
  return `${prefix.slice(0, -1)}0`;
}
