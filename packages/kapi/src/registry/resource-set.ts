/**
 * Which resources are served right now: the built-in ones and whatever definitions have added since.
 */
import type { ResourceDefinition } from "../resource.ts";

/** The served resources; changes are announced. */
export class ResourceSet {
  readonly #byPath = new Map<string, ResourceDefinition>();
  readonly #listeners = new Set<() => void>();
  #generation = 0;

  /** Rises with every change: caches of derived documents compare it. */
  get generation(): number {
    return this.#generation;
  }

  /** Finds a resource by the pieces of its path. */
  get(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** All resources, in the order they were added. */
  all(): readonly ResourceDefinition[] {
    return [...this.#byPath.values()];
  }

  /** Every served version of a resource. */
  versions(group: string, plural: string): readonly ResourceDefinition[] {
    return this.all().filter((resource) => resource.group === group && resource.plural === plural);
  }

  /** The resource that serves a kind. */
  byKind(group: string, version: string, kind: string): ResourceDefinition | undefined {
    for (const resource of this.#byPath.values()) {
      if (resource.kind === kind && resource.version === version && resource.group === group) return resource;
    }
    return undefined;
  }

  /** Whether any resource of a group version is served. */
  hasGroupVersion(group: string, version: string): boolean {
    for (const resource of this.#byPath.values())
      if (resource.group === group && resource.version === version) return true;
    return false;
  }

  /** Replaces all versions of one resource (`[]` removes it), in one step. */
  replace(group: string, plural: string, resources: readonly ResourceDefinition[]): void {
    for (const [path, old] of this.#byPath)
      if (old.group === group && old.plural === plural) this.#byPath.delete(path);
    this.add(resources);
  }

  /** Adds resources. */
  add(resources: readonly ResourceDefinition[]): void {
    for (const resource of resources)
      this.#byPath.set(`${resource.group}/${resource.version}/${resource.plural}`, resource);
    this.#generation++;
    for (const listener of Array.from(this.#listeners)) listener();
  }

  /** Calls back after every change; returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
