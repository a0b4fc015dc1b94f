/**
 * YAML bodies, read as Go clients' libraries read them: the YAML 1.1 core types, no timestamps or base-60 numbers,
 * everything JSON can hold and nothing else.
 *
 * Bounds: the caller limits bytes; aliases are limited here, so that a short text can't grow without end.
 */
import {
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  stringify,
  type Document,
  type Tags,
} from "yaml";
import { badRequest } from "../status/status.ts";
import { measure, setOwn } from "../json/json.ts";

/** Greatest number of alias expansions in one text. */
export const maxAliases = 100;

/** Largest YAML text, in bytes: the parser blocks the process for its length. */
export const maxYamlBytes = 1024 * 1024;

const dropped = new Set([
  "tag:yaml.org,2002:timestamp",
  "tag:yaml.org,2002:binary",
  "tag:yaml.org,2002:omap",
  "tag:yaml.org,2002:pairs",
  "tag:yaml.org,2002:set",
]);

function customTags(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag === "string") return true;
    return !dropped.has(tag.tag) && !("format" in tag && tag.format === "TIME");
  });
}

/** A parsed text with the keys that stood twice in a map. */
export interface YamlBody {
  readonly value: unknown;
  readonly duplicates: readonly string[];
  /** The same, as Go clients' libraries say it. */
  readonly repeated: readonly string[];
}

/** Reads one YAML document. Fails with 400. */
export function parseYaml(text: string): YamlBody {
  if (text.length > maxYamlBytes)
    throw badRequest(`YAML bodies are limited to ${maxYamlBytes} bytes: send JSON`);
  const lineCounter = new LineCounter();
  const documents = parseAllDocuments(text, {
    version: "1.1",
    customTags,
    intAsBigInt: true,
    uniqueKeys: false,
    merge: true,
    lineCounter,
    logLevel: "silent",
  });
  if (!Array.isArray(documents) || documents.length === 0)
    return { value: null, duplicates: [], repeated: [] };
  if (documents.length > 1) throw badRequest("a request body must hold exactly one YAML document");
  const document: Document = documents[0] as Document;
  const error = document.errors[0];
  if (error)
    throw badRequest(
      `error converting YAML to JSON: yaml: ${error.code} at line ${error.linePos?.[0].line ?? 1}`,
    );
  const found: Duplicate[] = [];
  findDuplicates(document.contents, "", found, 0);
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: maxAliases });
  } catch {
    throw badRequest("error converting YAML to JSON: too many or unresolved aliases");
  }
  const value = toJson(raw, 0);
  measure(value);
  return {
    value,
    duplicates: found.map(({ path }) => path),
    repeated: found.map(
      ({ key, offset }) =>
        `line ${lineCounter.linePos(offset).line}: key ${JSON.stringify(key)} already set in map`,
    ),
  };
}

/** A key that stood in its map before. */
interface Duplicate {
  readonly path: string;
  readonly key: string;
  /** Where it stands in the text. */
  readonly offset: number;
}

/** Writes a value as YAML. */
export function stringifyYaml(value: unknown): string {
  return stringify(value, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
}

function findDuplicates(node: unknown, path: string, found: Duplicate[], depth: number): void {
  if (found.length >= 100 || depth > 500) return;
  if (isMap(node)) {
    const seen = new Set<string>();
    for (const pair of node.items) {
      const key = isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
      const child = path === "" ? key : `${path}.${key}`;
      if (seen.has(key))
        found.push({ path: child, key, offset: isNode(pair.key) ? (pair.key.range?.[0] ?? 0) : 0 });
      seen.add(key);
      findDuplicates(pair.value, child, found, depth + 1);
    }
  } else if (isSeq(node)) {
    for (const [index, item] of node.items.entries())
      findDuplicates(item, `${path}[${index}]`, found, depth + 1);
  }
}

function toJson(value: unknown, depth: number): unknown {
  if (depth > 500) throw badRequest("error converting YAML to JSON: nested too deeply");
  switch (typeof value) {
    case "bigint":
      return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
        ? Number(value)
        : value;
    case "number":
      if (!Number.isFinite(value))
        throw badRequest("error converting YAML to JSON: a number is out of range");
      return value;
    case "string":
    case "boolean":
      return value;
    case "object": {
      if (value === null) return null;
      if (Array.isArray(value)) return value.map((item) => toJson(item, depth + 1));
      const out: Record<string, unknown> = {};
      const entries = value instanceof Map ? value.entries() : Object.entries(value);
      for (const [key, item] of entries) setOwn(out, String(key), toJson(item, depth + 1));
      return out;
    }
    default:
      return null;
  }
}
