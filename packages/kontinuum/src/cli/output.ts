/**
 * Printing what a command found: aligned columns for people, JSON for programs.
 */
import { Option } from "@commander-js/extra-typings";
import type { Terminal } from "./terminal.ts";

/** Forms of output. */
const outputFormats = ["table", "json", "name"] as const;
/** One of {@link outputFormats}. */
export type OutputFormat = (typeof outputFormats)[number];

/** The option `-o`. */
export const outputOption = (): Option<
  "-o, --output <format>",
  undefined,
  "table",
  undefined,
  false,
  OutputFormat
> => new Option("-o, --output <format>", "form of output").choices(outputFormats).default("table");

/** Prints a list: as a table of `columns`, as JSON, or as names. */
export function printList<T>(
  terminal: Terminal,
  format: OutputFormat,
  items: readonly T[],
  columns: Readonly<Record<string, (item: T) => string>>,
  nameOf: (item: T) => string,
): void {
  if (format === "json") terminal.stdout.write(`${JSON.stringify(items, null, 2)}\n`);
  else if (format === "name") terminal.stdout.write(items.map((item) => `${nameOf(item)}\n`).join(""));
  else terminal.stdout.write(table(items, columns));
}

function table<T>(items: readonly T[], columns: Readonly<Record<string, (item: T) => string>>): string {
  const rows = [
    Object.keys(columns),
    ...items.map((item) => Object.values(columns).map((cell) => cell(item) || "-")),
  ];
  const widths = Object.keys(columns).map((_, index) =>
    Math.max(...rows.map((row) => (row[index] ?? "").length)),
  );
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, index) => cell.padEnd(widths[index] ?? 0))
          .join("   ")
          .trimEnd()}\n`,
    )
    .join("");
}
