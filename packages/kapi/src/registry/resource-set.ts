/**
 * Which resources are served right now: the built-in ones and whatever definitions have added since.
 */
import type { ResourceDefinition } from "../resource.ts";

/** The served resources; changes are announced. */
export class ResourceSet {
  /** By group, version and plural name: asked for several times in every request. */
  readonly #byPath = new Map<string, Map<string, Map<string, ResourceDefinition>>>();
  readonly #listeners = new Set<() => void>();
  #all: readonly ResourceDefinition[] = [];
  #versions = new Map<string, readonly ResourceDefinition[]>();
  #generation = 0;

  /** Rises with every change: caches of derived documents compare it. */
  get generation(): number {
    return this.#generation;
  }

  /** Finds a resource by the pieces of its path. */
  get(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#byPath.get(group)?.get(version)?.get(plural);
  }

  /** All resources, in the order they were added. */
  all(): readonly ResourceDefinition[] {
    return this.#all;
  }

  /** Every served version of a resource. */
  versions(group: string, plural: string): readonly ResourceDefinition[] {
    const id = `${group}/${plural}`;
    let found = this.#versions.get(id);
    if (!found) {
      found = this.#all.filter((resource) => resource.group === group && resource.plural === plural);
      // Only names that are served are kept: anybody may ask for others.
      if (found.length > 0) this.#versions.set(id, found);
    }
    return found;
  }

  /** The resource that serves a kind. */
  byKind(group: string, version: string, kind: string): ResourceDefinition | undefined {
    return this.#all.find(
      (resource) => resource.kind === kind && resource.version === version && resource.group === group,
    );
  }

  /** Whether any resource of a group version is served. */
  hasGroupVersion(group: string, version: string): boolean {
    return this.#byPath.get(group)?.has(version) === true;
  }

  /** Replaces all versions of one resource (`[]` removes it), in one step. */
  replace(group: string, plural: string, resources: readonly ResourceDefinition[]): void {
    const others = this.#all.filter((old) => old.group !== group || old.plural !== plural);
    this.#become([...others, ...resources]);
  }

  /** Adds resources; one of the same path takes the place of the old. */
  add(resources: readonly ResourceDefinition[]): void {
    this.#become([...this.#all, ...resources]);
  }

  #become(resources: readonly ResourceDefinition[]): void {
    const byPath = new Map<string, ResourceDefinition>();
    for (const resource of resources)
      byPath.set(`${resource.group}/${resource.version}/${resource.plural}`, resource);
    this.#all = [...byPath.values()];
    this.#versions = new Map();
    this.#byPath.clear();
    for (const resource of this.#all) {
      const versions = this.#byPath.get(resource.group) ?? new Map<string, Map<string, ResourceDefinition>>();
      const plurals = versions.get(resource.version) ?? new Map<string, ResourceDefinition>();
      this.#byPath.set(
        resource.group,
        versions.set(resource.version, plurals.set(resource.plural, resource)),
      );
    }
    this.#generation++;
    for (const listener of Array.from(this.#listeners)) listener();
  }

  /** Calls back after every change; returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
