/**
 * The order of merged lists in a strategic merge patch: items the patch names come in its order; items only
 * the server has keep their place relative to the live list.
 *
 * An item is identified by its merge key, a scalar by itself.
 */
import { isObject } from "@kontinuum/std";
import { own, printJson } from "../schema/json-value.ts";

function identity(item: unknown, key: string): string | undefined {
  if (key === "") return isObject(item) ? undefined : printJson(item);
  // An order list may name items by `{key: value}` only.
  const value = isObject(item) ? own(item, key) : undefined;
  return value === undefined ? undefined : printJson(value);
}

function positions(order: readonly unknown[], key: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  order.forEach((item, i) => {
    const id = identity(item, key);
    if (id !== undefined && !found.has(id)) found.set(id, i);
  });
  return found;
}

/** True when every item of `patched` occurs in `order`, in the same relative order. */
export function orderMatches(patched: readonly unknown[], order: readonly unknown[], key: string): boolean {
  let next = 0;
  for (const item of order) {
    const wanted = patched[next];
    if (next < patched.length && identity(item, key) === identity(wanted, key)) next++;
  }
  return next >= patched.length;
}

/** `merged` in the order of `patchOrder`, with the other items interleaved by their place in `liveOrder`. */
export function orderItems(
  merged: readonly unknown[],
  patchOrder: readonly unknown[],
  liveOrder: readonly unknown[],
  key: string,
): readonly unknown[] {
  const inPatch = positions(patchOrder, key);
  const inLive = positions(liveOrder, key);
  const place = (map: ReadonlyMap<string, number>, item: unknown): number | undefined => {
    const id = identity(item, key);
    return id === undefined ? undefined : map.get(id);
  };
  const named = merged
    .filter((item) => place(inPatch, item) !== undefined)
    .sort((a, b) => (place(inPatch, a) ?? 0) - (place(inPatch, b) ?? 0));
  const others = merged.filter((item) => place(inPatch, item) === undefined);
  const out: unknown[] = [];
  let i = 0;
  let j = 0;
  while (i < others.length || j < named.length) {
    const left = i < others.length ? place(inLive, others[i]) : undefined;
    const right = j < named.length ? place(inLive, named[j]) : undefined;
    const takesOther =
      j >= named.length || (i < others.length && left !== undefined && right !== undefined && left < right);
    if (takesOther) out.push(others[i++]);
    else out.push(named[j++]);
  }
  return out;
}
