/**
 * A scan as a statement, and its rows as an answer.
 */
import type { KeyValue, Revision } from "../../contract.ts";
import type { Position, Scan, Scanned } from "../../engine/backend.ts";
import type { Row } from "./connections.ts";
import { integer, pairAt } from "./rows.ts";
import * as sql from "./sql.ts";

/** A statement to prepare and run. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** The statement that answers a scan. */
export function scanStatement({
  span,
  revision,
  limit,
  descending = false,
  keysOnly = false,
  countOnly = false,
  uncounted = false,
}: Scan): Statement {
  const bounded = span.end !== undefined;
  const bounds = [span.start, span.end ?? null];
  if (countOnly)
    return revision > 0
      ? { name: `ca${bounded ? "b" : ""}`, text: sql.countAt(bounded), values: [...bounds, revision] }
      : { name: `cn${bounded ? "b" : ""}`, text: sql.countNow(bounded), values: bounds };
  if (span.single && revision === 0) return { name: "point", text: sql.point, values: [span.start] };
  const shape: sql.Shape = { bounded, descending, counted: limit > 0 && !uncounted, keysOnly };
  const most = limit > 0 ? limit : null;
  return revision > 0
    ? { name: sql.shapeName("at", shape), text: sql.pairsAt(shape), values: [...bounds, revision, most] }
    : { name: sql.shapeName("now", shape), text: sql.pairsNow(shape), values: [...bounds, most] };
}

/** Where the store stood in the snapshot that a row is of. */
export function positionFrom(row: Row | undefined): Position {
  return { revision: integer(row?.[0]), compactRevision: integer(row?.[1]) };
}

/** The rows of {@link scanStatement} as an answer. */
export function scannedFrom(scan: Scan, rows: readonly Row[]): Scanned & { readonly at: Revision } {
  const at = positionFrom(rows[0]).revision;
  const count = rows[0]?.[2] ?? null;
  if (scan.countOnly === true) return { kvs: [], count: integer(count), at };
  const kvs = rows.map((row) => pairAt(row, 3)).filter((kv): kv is KeyValue => kv !== undefined);
  return { kvs, count: count === null ? kvs.length : integer(count), at };
}
