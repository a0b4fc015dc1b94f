/**
 * Which resource types a node knows, by what names, and who may read them (Talos resource definitions and policy).
 */
import { resourceTable } from "./resource-table.ts";

/** A resource definition. */
export interface ResourceType {
  readonly type: string;
  /** The namespace it is usually in. */
  readonly namespace: string;
  /** Its name in the singular. */
  readonly displayType: string;
  readonly aliases: readonly string[];
  /** Every name `talosctl get` takes. */
  readonly allAliases: readonly string[];
  readonly columns: readonly { readonly name: string; readonly jsonPath: string }[];
  /** Only an admin may read it. */
  readonly isSensitive: boolean;
  /** First Talos minor that has it, as far as the simulator tells releases apart. */
  readonly minor: number;
}

function parseRow(row: string): ResourceType {
  const [short = "", namespace = "", displayType = "", own = "", columns = "", flags = ""] = row
    .split("|")
    .map((cell) => cell.trim());
  const type = namespace === "meta" ? short : `${short}.talos.dev`;
  const [name = "", ...rest] = type.split(".");
  const capitals = name.replaceAll(/[^A-Z]/g, "").toLowerCase();
  const words = own === "" ? [] : own.split(",");
  const derived = [
    displayType.toLowerCase(),
    ...(capitals.length > 1 ? [capitals] : []),
    ...(capitals.length > 1 && !capitals.endsWith("s") ? [`${capitals}s`] : []),
  ];
  const aliases = flags.includes("x") ? words : [...words, ...derived];
  const longer = rest.map((_, index) => [name, ...rest.slice(0, index)].join(".").toLowerCase());
  return {
    type,
    namespace,
    displayType,
    aliases,
    allAliases: flags.includes("x") ? aliases : [...longer, ...aliases],
    columns: (columns === "" ? [] : columns.split("; ")).map((column) => {
      const [title = "", ...path] = column.split("=");
      return { name: title, jsonPath: `{${path.join("=")}}` };
    }),
    isSensitive: flags.includes("s"),
    minor: flags.includes("n") ? 14 : 11,
  };
}

/** Every known type, sorted by name. */
export const resourceTypes: readonly ResourceType[] = resourceTable.trim().split("\n").map(parseRow);

/** Namespaces there are. */
export const namespaceNames: readonly string[] = [
  ...new Set(resourceTypes.map(({ namespace }) => namespace)),
];

const byLowerName = new Map(resourceTypes.map((entry) => [entry.type.toLowerCase(), entry]));

/**
 * `open`, `sensitive`, or `undefined` for a type that Talos 1.`minor` does not know. The policy ignores case, the data
 * does not.
 */
export function sensitivityOf(type: string, minor: number): "open" | "sensitive" | undefined {
  const entry = byLowerName.get(type.toLowerCase());
  if (!entry || entry.minor > minor) return undefined;
  return entry.isSensitive ? "sensitive" : "open";
}
