/**
 * Objects and merge structures in the versions that owners recorded their fields in.
 *
 * Ownership recorded in one version is compared after conversion to that version; owners in a version that
 * is no longer served are dropped.
 */
import type { JsonObject } from "@kontinuum/std";
import type { ResourceDefinition, TypeNode } from "../resource.ts";
import { own } from "../schema/json-value.ts";

/** The other versions of a resource, for kinds that have several. */
export interface OtherVersions {
  /** The merge structure in `apiVersion`, or `undefined` when it is not served. */
  typeOf(apiVersion: string): TypeNode | undefined;
  /** `object` as `apiVersion` shows it; may be the same object with another apiVersion. */
  convert(object: JsonObject, apiVersion: string): JsonObject | Promise<JsonObject>;
}

/** The apiVersion a resource is served under. */
export function apiVersionOf(resource: ResourceDefinition): string {
  return resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
}

/** One request's view of an object in several versions; each conversion is made once. */
export class ObjectVersions {
  readonly apiVersion: string;
  readonly #resource: ResourceDefinition;
  readonly #others: OtherVersions | undefined;
  readonly #converted = new WeakMap<JsonObject, Map<string, JsonObject>>();

  constructor(resource: ResourceDefinition, others: OtherVersions | undefined) {
    this.#resource = resource;
    this.#others = others;
    this.apiVersion = apiVersionOf(resource);
  }

  /** The merge structure in `apiVersion`, or `undefined` when that version is not served. */
  typeOf(apiVersion: string): TypeNode | undefined {
    if (apiVersion === this.apiVersion) return this.#resource.type;
    if (this.#others) return this.#others.typeOf(apiVersion);
    // Without other versions at hand, versions of the group are taken to have the same shape.
    const slash = apiVersion.lastIndexOf("/");
    return (slash < 0 ? "" : apiVersion.slice(0, slash)) === this.#resource.group
      ? this.#resource.type
      : undefined;
  }

  /** `object` in `apiVersion`. */
  async convert(object: JsonObject, apiVersion: string): Promise<JsonObject> {
    if (!this.#others || own(object, "apiVersion") === apiVersion) return object;
    let known = this.#converted.get(object);
    if (!known) {
      known = new Map();
      this.#converted.set(object, known);
    }
    let converted = known.get(apiVersion);
    if (!converted) {
      converted = await this.#others.convert(object, apiVersion);
      known.set(apiVersion, converted);
    }
    return converted;
  }
}
