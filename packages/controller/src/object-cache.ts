/**
 * The cache behind an informer: objects by key, indexes, and the rules that make own writes visible.
 *
 * Two sources feed it. The watch is the truth and arrives in version order; `progress` is how far it
 * came. An answer to an own write arrives early: it is taken only when its version is beyond
 * `progress`, because up to there the watch has said everything, perhaps even that the object is gone
 * again. Such entries survive a list that is older than they are. An own delete leaves a tombstone for
 * the uid, which keeps late events from bringing the object back; a uid is never used twice.
 *
 * So per key, what a caller reads is never older than what that caller wrote. Objects in the cache are
 * shared and must not be changed; `ObjectCache` never hands one out except to its owner, the informer.
 */
import { limits } from "./limits.ts";
import type { KubeObject } from "./object.ts";
import { compareVersions, keyOf } from "./resource.ts";

/** Computes the values under which an object is found in one index. */
export type IndexFunction<T extends KubeObject> = (object: T) => readonly string[];

/** What a change did to one key. `before` is absent for a new object, `after` for one that is gone. */
export interface CacheChange<T extends KubeObject> {
  readonly key: string;
  readonly before?: T;
  readonly after?: T;
}

/** See the module's comment. */
export class ObjectCache<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, { of: IndexFunction<T>; keys: Map<string, Set<string>> }>();
  readonly #tombstones = new Map<string, string>();
  #progress: string | undefined;

  /** Version up to which the watch has delivered everything; `undefined` before the first list. */
  get progress(): string | undefined {
    return this.#progress;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  /** Objects under `value` in an index; throws when there is no such index. */
  byIndex(index: string, value: string): T[] {
    const found = this.#indexes.get(index);
    if (!found) throw new TypeError(`no index ${JSON.stringify(index)}`);
    return [...(found.keys.get(value) ?? [])].flatMap((key) => this.#objects.get(key) ?? []);
  }

  /** Adds an index over present and future objects. */
  addIndex(name: string, of: IndexFunction<T>): void {
    if (this.#indexes.has(name)) throw new TypeError(`there is an index ${JSON.stringify(name)} already`);
    const index = { of, keys: new Map<string, Set<string>>() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) insert(index, key, object);
  }

  /** Takes a complete list read at `version`. */
  replace(objects: readonly T[], version: string): CacheChange<T>[] {
    // A list older than what the watch already delivered: the server's history was rolled back (a restored
    // backup). Then nothing here is worth keeping.
    const rolledBack = compareVersions(version, this.#progress) < 0;
    this.#progress = version;
    const changes: CacheChange<T>[] = [];
    const listed = new Set<string>();
    const uids = new Set<string | undefined>();
    for (const object of objects) {
      uids.add(object.metadata.uid);
      if (this.#isTombstoned(object)) continue;
      listed.add(keyOf(object));
      const own = rolledBack ? undefined : this.#objects.get(keyOf(object));
      if (own && isNewer(own, version)) continue;
      changes.push(...this.#put(object));
    }
    for (const [key, object] of this.#objects) {
      if (listed.has(key) || (!rolledBack && isNewer(object, version))) continue;
      changes.push(...this.#remove(key));
    }
    for (const uid of this.#tombstones.keys()) if (!uids.has(uid)) this.#tombstones.delete(uid);
    return changes;
  }

  /** Takes an `ADDED` or `MODIFIED` event. */
  changed(object: T): CacheChange<T>[] {
    this.#advance(object.metadata.resourceVersion);
    if (this.#isTombstoned(object)) return [];
    const present = this.#objects.get(keyOf(object));
    if (present && isNewer(present, object.metadata.resourceVersion)) return [];
    return this.#put(object);
  }

  /** Takes a `DELETED` event, whose object carries the version of the deletion. */
  deleted(object: T): CacheChange<T>[] {
    this.#advance(object.metadata.resourceVersion);
    if (object.metadata.uid !== undefined) this.#tombstones.delete(object.metadata.uid);
    const present = this.#objects.get(keyOf(object));
    // An own write may already have created the next object of this name.
    if (!present || isNewer(present, object.metadata.resourceVersion)) return [];
    return this.#remove(keyOf(object));
  }

  /** Takes a bookmark. */
  bookmark(version: string): void {
    this.#advance(version);
  }

  /** Takes the answer to an own write. */
  written(object: T): CacheChange<T>[] {
    if (this.#progress === undefined || !isNewer(object, this.#progress) || this.#isTombstoned(object))
      return [];
    const present = this.#objects.get(keyOf(object));
    if (present && !isNewer(object, present.metadata.resourceVersion)) return [];
    return this.#put(object);
  }

  /** Takes the answer to an own delete that removed the object at once. */
  removed(key: string, uid: string | undefined): CacheChange<T>[] {
    const present = this.#objects.get(key);
    const gone = uid ?? present?.metadata.uid;
    if (gone === undefined) return [];
    this.#tombstones.set(gone, key);
    if (this.#tombstones.size > limits.tombstones) {
      const oldest = this.#tombstones.keys().next();
      if (oldest.done !== true) this.#tombstones.delete(oldest.value);
    }
    return present?.metadata.uid === gone ? this.#remove(key) : [];
  }

  #advance(version: string | undefined): void {
    if (version !== undefined && compareVersions(version, this.#progress) > 0) this.#progress = version;
  }

  #isTombstoned(object: T): boolean {
    return object.metadata.uid !== undefined && this.#tombstones.has(object.metadata.uid);
  }

  #put(after: T): CacheChange<T>[] {
    const key = keyOf(after);
    const before = this.#objects.get(key);
    if (before?.metadata.resourceVersion === after.metadata.resourceVersion && before !== undefined)
      return [];
    this.#objects.set(key, after);
    for (const index of this.#indexes.values()) {
      if (before) withdraw(index, key, before);
      insert(index, key, after);
    }
    return [before === undefined ? { key, after } : { key, before, after }];
  }

  #remove(key: string): CacheChange<T>[] {
    const before = this.#objects.get(key);
    if (!before) return [];
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) withdraw(index, key, before);
    return [{ key, before }];
  }
}

function isNewer(object: KubeObject, version: string | undefined): boolean {
  return compareVersions(object.metadata.resourceVersion, version) > 0;
}

interface Index<T extends KubeObject> {
  readonly of: IndexFunction<T>;
  readonly keys: Map<string, Set<string>>;
}

function insert<T extends KubeObject>(index: Index<T>, key: string, object: T): void {
  for (const value of index.of(object)) {
    const keys = index.keys.get(value);
    if (keys) keys.add(key);
    else index.keys.set(value, new Set([key]));
  }
}

function withdraw<T extends KubeObject>(index: Index<T>, key: string, object: T): void {
  for (const value of index.of(object)) {
    const keys = index.keys.get(value);
    keys?.delete(key);
    if (keys?.size === 0) index.keys.delete(value);
  }
}
