/**
 * Finding one chart in the index of a Helm repository, and the newest of many versions. Pure.
 *
 * An index may have megabytes, for one entry of a few lines; reading all of it as YAML would hold up everything else.
 * helm writes indexes in one layout, so the entry is cut out by lines first, and only that is read as YAML.
 *
 * Source: Helm documentation, "The Chart Repository Guide" (the index file).
 */
import { isObject, stringAt } from "@kontinuum/std";
import { parse } from "yaml";

/** An entry of an index. */
export interface IndexEntry {
  readonly version: string;
  /** Absolute, or relative to the repository. */
  readonly url: string;
  /** SHA-256 of the archive in hexadecimal, when the index names it. */
  readonly digest: string | undefined;
}

/** Longest entry that is read, characters. */
const maxEntryLength = 1024 * 1024;
/** Entries that are looked at for the newest version. */
const maxEntries = 10_000;

/** The entry of `name` at `version`; without one, at the newest that is no prerelease. */
export function chartInIndex(
  index: string,
  name: string,
  version: string | undefined,
): IndexEntry | undefined {
  const entries = entriesOf(index, name);
  const wanted = version ?? newestVersion(entries.map(({ version: one }) => one));
  if (wanted === undefined) return undefined;
  const plain = (text: string): string => text.replace(/^v/, "");
  const found =
    entries.find(({ version: one }) => one === wanted) ??
    entries.find(({ version: one }) => plain(one) === plain(wanted));
  if (!found || found.text.length > maxEntryLength) return undefined;
  // Every scalar is a text: a version or digest of digits only must not become a number.
  const [entry]: unknown[] = [
    parse(found.text, { schema: "failsafe", maxAliasCount: 0, logLevel: "silent" }),
  ];
  const item: unknown = Array.isArray(entry) ? entry[0] : undefined;
  const urls = isObject(item) ? item["urls"] : undefined;
  const url: unknown = Array.isArray(urls) ? urls[0] : undefined;
  if (typeof url !== "string") return undefined;
  return {
    version: stringAt(item, "version") ?? found.version,
    url,
    digest: stringAt(item, "digest")?.replace(/^sha256:/, ""),
  };
}

/** The texts of a chart's entries, each a list of one, with their versions. */
function entriesOf(
  index: string,
  name: string,
): readonly { readonly version: string; readonly text: string }[] {
  const start = new RegExp(`^ {2}(["']?)${name.replaceAll(/[^A-Za-z0-9_]/g, "\\$&")}\\1:[ \\t]*$`, "m").exec(
    index,
  );
  if (!start) return [];
  const rest = index.slice(start.index + start[0].length + 1);
  const end = /^(?: {2}[^\s-]|[^\s-])/m.exec(rest);
  const block = end ? rest.slice(0, end.index) : rest;
  const indent = /^( *)- /.exec(block)?.[1];
  if (indent === undefined) return [];
  const items = block.split(new RegExp(`^(?=${indent}- )`, "m")).slice(0, maxEntries);
  const field = new RegExp(`^${indent}(?:- | {2})version:[ \\t]*(["']?)([^"'\\s]+)\\1[ \\t]*$`, "m");
  return items.flatMap((text) => {
    const version = field.exec(text)?.[2];
    return version === undefined ? [] : [{ version, text }];
  });
}

/** The greatest semantic version (Semantic Versioning 2.0.0) without prerelease; others are not looked at. */
export function newestVersion(versions: readonly string[]): string | undefined {
  const parsed = versions.flatMap((text) => {
    const match = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[+_][0-9A-Za-z.+_-]+)?$/.exec(text);
    return match ? [{ text, numbers: [Number(match[1]), Number(match[2]), Number(match[3])] }] : [];
  });
  const compare = (a: readonly number[], b: readonly number[]): number =>
    a.map((number, place) => number - (b[place] ?? 0)).find((difference) => difference !== 0) ?? 0;
  return parsed.sort((a, b) => compare(b.numbers, a.numbers))[0]?.text;
}
