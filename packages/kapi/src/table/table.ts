/**
 * Tables: the rows `kubectl get` prints (meta.k8s.io/v1 Table).
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { ResourceDefinition, TableColumn } from "../resource.ts";
import type { IncludeObject, MetaVersion } from "../wire/media-type.ts";

/** List metadata of a table. */
export interface TableMeta {
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** How to make a table. */
export interface TableOptions {
  readonly include: IncludeObject;
  /** Milliseconds since the epoch: ages are relative to it. */
  readonly now: number;
  readonly meta: TableMeta;
  /** False for later events of a watch. */
  readonly columns: boolean;
  /** Default `v1`. */
  readonly version?: MetaVersion;
}

/** Makes a table of objects. */
export function tableOf(
  resource: Pick<ResourceDefinition, "columns" | "rowConditions">,
  objects: readonly JsonObject[],
  options: TableOptions,
): JsonObject {
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${options.version ?? "v1"}`,
    metadata: options.meta,
    columnDefinitions: options.columns ? resource.columns.map(definition) : null,
    rows: objects.map((object) => rowOf(resource, object, options)),
  };
}

function definition({ name, type, format, description, priority }: TableColumn): JsonObject {
  return { name, type, format, description, priority };
}

/** One object's row. */
export function rowOf(
  resource: Pick<ResourceDefinition, "columns" | "rowConditions">,
  object: JsonObject,
  { include, now, version }: Pick<TableOptions, "include" | "now" | "version">,
): JsonObject {
  const cells = resource.columns.map((column) => column.cell(object, now) ?? null);
  const conditions = resource.rowConditions?.(object) ?? [];
  return {
    cells,
    ...(conditions.length > 0 ? { conditions } : {}),
    ...(include === "None"
      ? {}
      : { object: include === "Object" ? object : partialMetadata(object, version) }),
  };
}

/** The metadata of an object alone (meta.k8s.io/v1 PartialObjectMetadata). */
export function partialMetadata(object: JsonObject, version: MetaVersion = "v1"): JsonObject {
  return {
    kind: "PartialObjectMetadata",
    apiVersion: `meta.k8s.io/${version}`,
    metadata: isObject(object["metadata"]) ? object["metadata"] : {},
  };
}
