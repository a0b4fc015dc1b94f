/**
 * The printer columns of the built-in kinds: names and descriptions from the published table, cells from the
 * functions beside this file.
 */
import { stringAt } from "@kontinuum/std";
import { readTable } from "../../codec/messages.ts";
import type { TableColumn } from "../../resource.ts";
import { toAutoscalerV2 } from "../autoscaler-versions.ts";
import { toCoreEvent } from "../event-versions.ts";
import { autoscalerCells } from "./autoscaler.ts";
import type { Cell, CellTable } from "./cell.ts";
import { clusterCells, eventCells } from "./cluster.ts";
import { age } from "./format.ts";
import { networkCells } from "./network.ts";
import { podCells } from "./pod.ts";
import { storageCells } from "./storage.ts";
import { workloadCells } from "./workload.ts";

type ColumnRow = readonly [string, TableColumn["type"], string, number, number];
interface ColumnTable {
  readonly default: readonly ColumnRow[];
  readonly columns: Readonly<Record<string, Readonly<Record<string, readonly ColumnRow[]>>>>;
  readonly texts: readonly string[];
}

let loaded: ColumnTable | undefined;
const table = (): ColumnTable => (loaded ??= readTable<ColumnTable>("columns.json"));

/** Cells of a version that is another one's object in other words. */
const through = (
  cells: Readonly<Record<string, Cell>>,
  convert: (object: Parameters<Cell>[0]) => Parameters<Cell>[0],
): Readonly<Record<string, Cell>> =>
  Object.fromEntries(
    Object.entries(cells).map(([name, cell]): [string, Cell] => [
      name,
      (object, now) => cell(convert(object), now),
    ]),
  );

const cells: CellTable = {
  ...podCells,
  ...workloadCells,
  ...networkCells,
  ...storageCells,
  ...clusterCells,
  "autoscaling/v2/HorizontalPodAutoscaler": autoscalerCells,
  "autoscaling/v1/HorizontalPodAutoscaler": through(autoscalerCells, toAutoscalerV2),
  "events.k8s.io/v1/Event": through(eventCells, toCoreEvent),
};

const shared: Readonly<Record<string, Cell>> = {
  Name: (object) => stringAt(object, "metadata", "name") ?? "",
  Age: (object, now) => age(stringAt(object, "metadata", "creationTimestamp"), now),
  "Created At": (object) => stringAt(object, "metadata", "creationTimestamp") ?? null,
};

/** The columns of a kind; kinds without own columns show name and creation time. */
export function columnsOf(apiVersion: string, kind: string): readonly TableColumn[] {
  const { columns, texts, default: fallback } = table();
  const home = apiVersion === "events.k8s.io/v1" ? "v1" : apiVersion;
  const own = cells[`${apiVersion}/${kind}`] ?? {};
  const made = (columns[home]?.[kind] ?? fallback).map(
    ([name, type, format, priority, text]): TableColumn => ({
      name,
      type,
      format,
      priority,
      description: texts[text] ?? "",
      cell: own[name] ?? shared[name] ?? (() => null),
    }),
  );
  return kind === "APIService" ? apiServiceColumns(made) : made;
}

/** The aggregator prints its own columns, which the published table of the core server does not hold. */
function apiServiceColumns(fallback: readonly TableColumn[]): readonly TableColumn[] {
  const own = cells["apiregistration.k8s.io/v1/APIService"] ?? {};
  const column = (name: string, description: string, cell: Cell | undefined): TableColumn => ({
    name,
    type: "string",
    format: "",
    priority: 0,
    description,
    cell: cell ?? (() => null),
  });
  const [name, created] = fallback;
  return [
    ...(name === undefined ? [] : [name]),
    column("Service", "The reference to the service that hosts this API endpoint.", own["Service"]),
    column("Available", "Whether this service is available.", own["Available"]),
    column("Age", created?.description ?? "", shared["Age"]),
  ];
}
