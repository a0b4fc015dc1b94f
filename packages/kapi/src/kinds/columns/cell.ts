/**
 * The type of a cell function and of the tables of them.
 */
import type { JsonObject } from "@kontinuum/std";

/** Computes a cell; `now` in milliseconds since the epoch. */
export type Cell = (object: JsonObject, now: number) => unknown;

/** Cells by `apiVersion/kind` and column name. */
export type CellTable = Readonly<Record<string, Readonly<Record<string, Cell>>>>;
