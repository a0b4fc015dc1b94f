/**
 * What must hold between the tables, as queries that find what does not.
 */
import { isObject } from "@kontinuum/std";

/** Findings of one kind. Rows name the place; values are never read. */
export const checks: readonly { readonly what: string; readonly sql: string }[] = [
  {
    what: "a live key without its log entry",
    sql: "SELECT h.key FROM head h LEFT JOIN log l ON l.id = h.id AND l.key = h.key WHERE l.id IS NULL OR l.version = 0 LIMIT 100",
  },
  {
    what: "a live key that has a newer log entry",
    sql: "SELECT h.key FROM head h JOIN log l ON l.id = h.id WHERE EXISTS (SELECT 1 FROM log n WHERE n.key = h.key AND n.rev > l.rev) LIMIT 100",
  },
  {
    what: "a key whose newest log entry is a value but that is not live",
    sql: `SELECT l.key FROM log l WHERE l.version > 0 AND NOT EXISTS (SELECT 1 FROM log n WHERE n.key = l.key AND n.rev > l.rev)
      AND NOT EXISTS (SELECT 1 FROM head h WHERE h.key = l.key) LIMIT 100`,
  },
  {
    what: "a lease that differs between a live key and its log entry",
    sql: "SELECT h.key FROM head h JOIN log l ON l.id = h.id WHERE h.lease <> l.lease LIMIT 100",
  },
  {
    what: "a log entry with impossible revisions",
    sql: `SELECT key, rev FROM log WHERE rev > (SELECT value FROM meta WHERE name = 'revision')
      OR (version > 0 AND created > rev) OR version < 0 LIMIT 100`,
  },
  {
    what: "a key bound to a lease that does not exist",
    sql: "SELECT key FROM head WHERE lease <> 0 AND lease NOT IN (SELECT id FROM lease) LIMIT 100",
  },
];

/** A finding's place as text. */
export function describeRow(row: unknown): string {
  if (!isObject(row)) return String(row);
  return Object.entries(row)
    .map(
      ([name, value]) =>
        `${name} ${value instanceof Uint8Array ? JSON.stringify(Buffer.from(value).toString()) : String(value)}`,
    )
    .join(", ");
}
