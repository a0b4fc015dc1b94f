/**
 * Long reads in pages of one revision, sized so that a page stays about {@link pageBytes} whatever the size of
 * the values.
 */
import type { BytesLike, CallOptions, KeyValue, Revision, Store } from "../contract.ts";
import { toBytes } from "../contract.ts";

/** Bytes of keys and values that a page aims at. */
export const pageBytes = 4 * 1024 * 1024;
/** Pairs of the first page, before anything is known of their size. */
const firstPage = 100;
/** Pairs of a page at most. */
const largestPage = 2_000;

/** A page, and where it stands. */
export interface Page {
  readonly kvs: readonly KeyValue[];
  /** The revision that all pages are of. */
  readonly revision: Revision;
  /** The store's revision when the first page was read. */
  readonly newest: Revision;
}

/**
 * All pairs of `[key, end)` at one revision, in key order; at least one page, which may be empty. Fails with `gone`
 * when the revision is compacted meanwhile.
 */
export async function* pagesOf(
  store: Pick<Store, "range">,
  range: { readonly key: BytesLike; readonly end: BytesLike },
  revision: Revision = 0,
  options: CallOptions = {},
): AsyncGenerator<Page, void, undefined> {
  let at = revision;
  let newest = 0;
  let limit = firstPage;
  let key = toBytes(range.key);
  for (;;) {
    const page = await store.range({ key, end: range.end, revision: at, limit, uncounted: true }, options);
    newest ||= page.revision;
    at ||= page.revision;
    yield { kvs: page.kvs, revision: at, newest };
    const last = page.kvs.at(-1);
    if (!page.more || !last) return;
    const bytes = page.kvs.reduce((sum, kv) => sum + kv.key.length + kv.value.length, 1);
    limit = Math.max(1, Math.min(largestPage, Math.floor((pageBytes * page.kvs.length) / bytes)));
    key = Buffer.concat([last.key, Buffer.from([0])]);
  }
}
