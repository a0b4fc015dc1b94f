/**
 * Tables for people: plain columns, as wide as what is in them.
 */
import { isObject, stringAt, at } from "@kontinuum/std";

/** A column: its heading and how to read it from an item. */
export interface Column {
  readonly head: string;
  read(item: unknown): string;
}

const field = (head: string, ...path: (string | number)[]): Column => ({
  head,
  read: (item) => {
    const value = at(item, ...path);
    return typeof value === "string"
      ? value
      : typeof value === "number" || typeof value === "boolean"
        ? String(value)
        : "";
  },
});

/** Columns by what is listed. */
export const columns = {
  machines: [
    field("ID", "id"),
    field("NAME", "spec", "name"),
    field("STATE", "state"),
    field("IMAGE", "spec", "image"),
    field("CPU", "spec", "compute", "cpu"),
    field("MEMORY", "spec", "compute", "memoryMiB"),
    field("IP", "ipAddresses", 0),
    field("EXPIRES", "expiresAt"),
  ],
  snapshots: [
    field("ID", "id"),
    field("NAME", "name"),
    field("STATE", "state"),
    field("CREATED", "createdAt"),
  ],
  images: [
    field("ID", "id"),
    field("NAME", "name"),
    field("OS", "os"),
    field("READY", "ready"),
    field("AVAILABILITY", "availability"),
  ],
  events: [
    field("TIME", "time"),
    field("TYPE", "type"),
    field("SUBJECT", "subject"),
    { head: "NAME", read: (item: unknown) => stringAt(item, "data", "name") ?? "" },
  ],
  operations: [
    field("ID", "id"),
    field("KIND", "kind"),
    field("MACHINE", "machineName"),
    field("STATE", "state"),
    field("PROGRESS", "progressPercent"),
    field("MESSAGE", "message"),
  ],
  classes: [
    field("NAME", "name"),
    field("PROVISIONER", "provisioner"),
    field("BACKEND", "backend"),
    field("DEFAULT", "default"),
    field("SNAPSHOTS", "snapshotCapable"),
    field("RECOMMENDED", "recommended"),
  ],
  jobs: [
    field("ID", "id"),
    field("NAME", "name"),
    field("STATE", "state"),
    field("PROGRESS", "progressPercent"),
    field("MESSAGE", "message"),
  ],
  keys: [
    field("NAME", "name"),
    field("ROLE", "role"),
    { head: "PROJECTS", read: (item: unknown) => listOf(at(item, "projects")) },
    field("EXPIRES", "expiresAt"),
    field("LAST USED", "lastUsedAt"),
  ],
  findings: [
    field("CHECK", "check"),
    field("STATUS", "status"),
    field("MESSAGE", "message"),
    field("HINT", "hint"),
  ],
} as const satisfies Record<string, readonly Column[]>;

/** The items of an answer: of a list, of a diagnosis, or the one thing it is. */
export function itemsOf(json: unknown): readonly unknown[] {
  for (const name of ["items", "findings", "storageClasses"]) {
    const items = at(json, name);
    if (Array.isArray(items)) return items;
  }
  return isObject(json) ? [json] : [];
}

function listOf(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join(",") : "";
}

/** Lines of a table. */
export function table(layout: readonly Column[], items: readonly unknown[]): string {
  const rows = [
    layout.map(({ head }) => head),
    ...items.map((item) => layout.map(({ read }) => clean(read(item)))),
  ];
  const widths = layout.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("   ")
          .trimEnd()}\n`,
    )
    .join("");
}

/** What comes from the server must not drive the terminal. */
function clean(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, " ");
}
