/**
 * Sets of field paths: the currency of server-side apply (structured-merge-diff "fieldpath").
 *
 * A set is a tree. A step is the text that FieldsV1 uses for it: `f:name` a field, `k:{"name":"x"}` an item of
 * a keyed list, `v:1` an item of a set, `i:0` an index. A node is a *member* when its own path is in the set;
 * that says nothing about its descendants. Empty nodes do not exist, except the root.
 *
 * Sets are immutable once built: the operations return new trees and may share branches.
 */

/** A node of a set; the root is never a member itself. */
export interface FieldSet {
  readonly isMember: boolean;
  readonly children: ReadonlyMap<string, FieldSet>;
}

const noChildren: ReadonlyMap<string, FieldSet> = new Map();

/** The set of nothing. */
export const emptySet: FieldSet = { isMember: false, children: noChildren };

/** A node that is a member and has no descendants. */
export const leaf: FieldSet = { isMember: true, children: noChildren };

/** True when the set holds no path. */
export function isEmptySet(set: FieldSet): boolean {
  return !set.isMember && set.children.size === 0;
}

/** Collects paths into a set. */
export class FieldSetBuilder {
  isMember = false;
  readonly #children = new Map<string, FieldSetBuilder>();

  /** The node one step below, made when needed. Steps that stay empty vanish in {@link FieldSetBuilder.build}. */
  at(step: string): FieldSetBuilder {
    let child = this.#children.get(step);
    if (!child) {
      child = new FieldSetBuilder();
      this.#children.set(step, child);
    }
    return child;
  }

  build(): FieldSet {
    if (this.#children.size === 0) return this.isMember ? leaf : emptySet;
    const children = new Map<string, FieldSet>();
    for (const [step, child] of this.#children) {
      const set = child.build();
      if (!isEmptySet(set)) children.set(step, set);
    }
    return { isMember: this.isMember, children };
  }
}

/** Paths in either set. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmptySet(b)) return a;
  if (isEmptySet(a)) return b;
  const children = new Map(a.children);
  for (const [step, child] of b.children) {
    const mine = children.get(step);
    children.set(step, mine ? union(mine, child) : child);
  }
  return { isMember: a.isMember || b.isMember, children };
}

function combine(a: FieldSet, isMember: boolean, child: (set: FieldSet, step: string) => FieldSet): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [step, set] of a.children) {
    const kept = child(set, step);
    if (!isEmptySet(kept)) children.set(step, kept);
  }
  return { isMember, children };
}

/** Paths of `a` that are not in `b`; descendants of a path in `b` stay. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(b)) return a;
  return combine(a, a.isMember && !b.isMember, (set, step) => {
    const other = b.children.get(step);
    return other ? difference(set, other) : set;
  });
}

/** Paths in both sets. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return combine(a, a.isMember && b.isMember, (set, step) => {
    const other = b.children.get(step);
    return other ? intersection(set, other) : emptySet;
  });
}

/** Paths of `a` that are neither in `b` nor below a path in `b`. */
export function withoutSubtrees(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(b)) return a;
  if (b.isMember) return emptySet;
  return combine(a, a.isMember, (set, step) => {
    const other = b.children.get(step);
    return other ? withoutSubtrees(set, other) : set;
  });
}

/** Paths of `a` that are in `b` or below a path in `b`. */
export function onlySubtrees(a: FieldSet, b: FieldSet): FieldSet {
  if (b.isMember) return a;
  return combine(a, false, (set, step) => {
    const other = b.children.get(step);
    return other ? onlySubtrees(set, other) : emptySet;
  });
}

/** True when both sets hold the same paths. */
export function equalSets(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  if (a.isMember !== b.isMember || a.children.size !== b.children.size) return false;
  for (const [step, child] of a.children) {
    const other = b.children.get(step);
    if (!other || !equalSets(child, other)) return false;
  }
  return true;
}

/** The set of one dotted path of field names, e.g. `spec.replicas`. */
export function setOfPath(path: string): FieldSet {
  return path
    .split(".")
    .reduceRight<FieldSet>(
      (set, name) => ({ isMember: false, children: new Map([[`f:${name}`, set]]) }),
      leaf,
    );
}

const stepOrder = "fkvi";

/** Order of steps in encoded sets and in conflict lists: fields, keyed items, values, indexes; then by text. */
export function compareSteps(a: string, b: string): number {
  const kind = stepOrder.indexOf(a.charAt(0)) - stepOrder.indexOf(b.charAt(0));
  if (kind !== 0) return kind;
  if (a.startsWith("i:")) return Number(a.slice(2)) - Number(b.slice(2));
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Every member path, as lists of steps, in order. */
export function* pathsOf(set: FieldSet, prefix: readonly string[] = []): Generator<readonly string[]> {
  if (set.isMember) yield prefix;
  for (const step of [...set.children.keys()].sort(compareSteps)) {
    const child = set.children.get(step);
    if (child) yield* pathsOf(child, [...prefix, step]);
  }
}
