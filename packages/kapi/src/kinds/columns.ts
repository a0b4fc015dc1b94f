/**
 * The printer columns of the built-in kinds: names and descriptions from the published table, cells from
 * the functions under `columns/`.
 */
import { stringAt, type JsonObject } from "@kontinuum/std";
import { humanDuration } from "../crd/human-duration.ts";
import { readTable } from "../codec/messages.ts";
import type { TableColumn } from "../resource.ts";

/** Computes a cell. */
export type Cell = (object: JsonObject, now: number) => unknown;

type ColumnRow = readonly [string, TableColumn["type"], string, number, number];
interface ColumnTable {
  readonly default: readonly ColumnRow[];
  readonly columns: Readonly<Record<string, Readonly<Record<string, readonly ColumnRow[]>>>>;
  readonly texts: readonly string[];
}

let loaded: ColumnTable | undefined;
const table = (): ColumnTable => (loaded ??= readTable<ColumnTable>("columns.json"));

/** Time since a timestamp as kubectl shows it, `<unknown>` without one. */
export function age(timestamp: unknown, now: number): string {
  const time = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
  return Number.isNaN(time) ? "<unknown>" : humanDuration(now - time);
}

const shared: Readonly<Record<string, Cell>> = {
  Name: (object) => stringAt(object, "metadata", "name") ?? "",
  Age: (object, now) => age(stringAt(object, "metadata", "creationTimestamp"), now),
  "Created At": (object) => stringAt(object, "metadata", "creationTimestamp") ?? null,
};

/** The columns of a kind; kinds without own columns show name and creation time. */
export function columnsOf(apiVersion: string, kind: string): readonly TableColumn[] {
  const { columns, texts, default: fallback } = table();
  const rows = columns[apiVersion]?.[kind] ?? fallback;
  return rows.map(([name, type, format, priority, text]) => ({
    name,
    type,
    format,
    priority,
    description: texts[text] ?? "",
    cell: shared[name] ?? (() => null),
  }));
}
