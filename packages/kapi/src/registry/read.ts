/**
 * Reads: get, and list with its versions, pages and selectors.
 *
 * Everything current comes out of the watch cache after it caught up with the store; a list pinned to an older
 * revision comes from the store's history.
 */
import { isCoded, type JsonObject } from "@kontinuum/std";
import { prefixRange } from "@kontinuum/storage";
import type { ResourceDefinition } from "../resource.ts";
import { expired, notFound, tooLargeResourceVersion } from "../status/status.ts";
import { entryField, entryObject, fieldText, type CacheEntry } from "../watch-cache/entry.ts";
import { decodeContinue, encodeContinue } from "./continue-token.ts";
import type { RegistryDeps } from "./deps.ts";
import type { ListOptions } from "./options.ts";
import type { ResourceStore } from "./resource-store.ts";
import { undecodable } from "./update.ts";

/** How long a read waits for a version from the future. */
const futureTimeoutMs = 3000;
/** Pairs read from the store's history at once. */
const historyPage = 1000;

const expiredText =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/** Waits until a store's cache can answer for a client's resourceVersion. */
export async function ready(store: ResourceStore, resourceVersion: number | undefined): Promise<void> {
  if (resourceVersion === 0) return store.cache.load();
  await store.cache.fresh();
  if (resourceVersion !== undefined && resourceVersion > store.cache.revision) {
    try {
      await store.cache.waitFor(resourceVersion, futureTimeoutMs);
    } catch (error) {
      if (isCoded(error, "deadline_exceeded"))
        throw tooLargeResourceVersion(resourceVersion, store.cache.revision);
      throw error;
    }
  }
}

/** Reads one object. Fails with 404. */
export async function getEntry(
  deps: RegistryDeps,
  resource: ResourceDefinition,
  namespace: string,
  name: string,
  resourceVersion?: number,
): Promise<{ readonly store: ResourceStore; readonly entry: CacheEntry }> {
  const store = deps.storage.of(resource);
  await ready(store, resourceVersion);
  const entry = store.cache.get(store.key(namespace, name));
  if (!entry) throw notFound(resource, name);
  if (entry.error !== undefined) throw undecodable(entry);
  return { store, entry };
}

/** A page of a list. */
export interface ListPage {
  readonly store: ResourceStore;
  readonly entries: readonly CacheEntry[];
  readonly revision: number;
  readonly continueToken: string | undefined;
  readonly remaining: number | undefined;
  /** Stored objects that don't decode and were left out. */
  readonly broken: readonly CacheEntry[];
}

/** Whether an entry is selected. */
export function selects(options: Pick<ListOptions, "labels" | "fields">): (entry: CacheEntry) => boolean {
  const { labels, fields } = options;
  return (entry) =>
    (labels.empty || labels.matches(entry.labels)) &&
    (fields.empty || fields.matches((path) => entryField(entry, path)));
}

/** Selection for one resource: field values are those of the version asked for. */
export function selectsIn(
  resource: ResourceDefinition,
  options: Pick<ListOptions, "labels" | "fields">,
): (entry: CacheEntry) => boolean {
  const { labels, fields } = options;
  const { stored } = resource;
  if (fields.empty) return selects(options);
  const read = (object: JsonObject, path: string): string =>
    resource.selectableValue?.(object, path) ?? fieldText(object, path);
  if (!stored) {
    return (entry) => labels.matches(entry.labels) && fields.matches((path) => entryField(entry, path, read));
  }
  return (entry) => {
    if (!labels.matches(entry.labels)) return false;
    const object = stored.fromStored(entryObject(entry));
    return fields.matches((path) => read(object, path));
  };
}

/** Lists objects of one namespace or (empty) of all. Fails with 400, 410 and 504. */
export async function listEntries(
  deps: RegistryDeps,
  resource: ResourceDefinition,
  namespace: string,
  options: ListOptions,
): Promise<ListPage> {
  const store = deps.storage.of(resource);
  const scope = store.scope(namespace);
  const token = options.continueToken === undefined ? undefined : decodeContinue(options.continueToken);
  await ready(store, token ? undefined : options.resourceVersion);
  const { cache } = store;
  let revision = cache.revision;
  if (token && token.revision > 0) revision = token.revision;
  else if (options.match === "Exact" && options.resourceVersion !== undefined)
    revision = options.resourceVersion;
  const query: PageQuery = {
    scope,
    from: token ? `${scope}${token.start}\u0000` : scope,
    limit: options.limit,
    selective: !options.labels.empty || !options.fields.empty,
    matches: selectsIn(resource, options),
  };
  const unchanged =
    revision <= cache.revision && revision >= cache.loadedRevision && cache.lastChange <= revision;
  if (revision === cache.revision || unchanged) return pageOfCache(store, query, revision);
  return pageOfHistory(deps, store, query, revision);
}

interface PageQuery {
  readonly scope: string;
  readonly from: string;
  readonly limit: number;
  readonly selective: boolean;
  readonly matches: (entry: CacheEntry) => boolean;
}

function pageOfCache(store: ResourceStore, query: PageQuery, revision: number): ListPage {
  const { cache } = store;
  const { scope, limit, selective, matches } = query;
  const entries: CacheEntry[] = [];
  const broken: CacheEntry[] = [];
  /** Key of the first entry that is not on this page. */
  let next: string | undefined;
  for (const entry of cache.range(scope, query.from)) {
    const isSelected = entry.error === undefined && matches(entry);
    if (limit > 0 && entries.length === limit) {
      // With a selector the rest may hold no match at all: look before promising another page.
      if (selective && !isSelected) continue;
      next = entry.key;
      break;
    }
    if (isSelected) entries.push(entry);
    else if (entry.error !== undefined) broken.push(entry);
  }
  const last = entries.at(-1);
  return {
    store,
    entries,
    broken,
    revision,
    continueToken:
      next !== undefined && last
        ? encodeContinue({ revision, start: last.key.slice(scope.length) })
        : undefined,
    remaining: next !== undefined && !selective ? cache.count(scope, next) : undefined,
  };
}

async function pageOfHistory(
  deps: RegistryDeps,
  store: ResourceStore,
  query: PageQuery,
  revision: number,
): Promise<ListPage> {
  const entries: CacheEntry[] = [];
  const broken: CacheEntry[] = [];
  const { end } = prefixRange(query.scope);
  let from = Buffer.from(query.from);
  let more = true;
  let remaining = 0;
  try {
    while (more && (query.limit === 0 || entries.length < query.limit)) {
      const limit = query.limit > 0 && !query.selective ? query.limit - entries.length : historyPage;
      const page = await deps.storage.store.range({ key: from, end, revision, limit });
      more = page.more;
      remaining = page.count - page.kvs.length;
      for (const [index, kv] of page.kvs.entries()) {
        const entry = store.decode(kv);
        if (entry.error !== undefined) broken.push(entry);
        else if (query.matches(entry)) entries.push(entry);
        from = Buffer.concat([kv.key, Buffer.from([0])]);
        if (query.limit > 0 && entries.length === query.limit && index < page.kvs.length - 1) {
          more = true;
          break;
        }
      }
      if (page.kvs.length === 0) break;
    }
  } catch (error) {
    if (!isCoded(error, "gone")) throw error;
    const start = query.from.slice(query.scope.length).replace(/\0$/, "");
    if (start === "") throw expired("The resourceVersion for the provided list is too old.");
    throw expired(expiredText, encodeContinue({ revision: -1, start }));
  }
  const last = entries.at(-1);
  return {
    store,
    entries,
    broken,
    revision,
    continueToken:
      more && last ? encodeContinue({ revision, start: last.key.slice(query.scope.length) }) : undefined,
    remaining: more && !query.selective ? remaining : undefined,
  };
}
