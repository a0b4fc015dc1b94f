/**
 * Where a kind lives in a cluster's API, asked of the cluster itself: needed for objects whose kinds are
 * only known from a chart.
 */
import type { Client } from "@kontinuum/controller";
import { at, CodedError, isCoded, isObject, stringAt, type JsonObject } from "@kontinuum/std";

/** Resolves kinds of one cluster. Answers are kept as long as the object lives: make one per pass. */
export class RestPaths {
  readonly #client: Client;
  readonly #known = new Map<string, ReadonlyMap<string, { plural: string; namespaced: boolean }>>();

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Path of an object, in `namespace` unless it names its own. Fails with `not_found` when the cluster does not
   * serve its kind.
   */
  async pathOf(object: JsonObject, namespace: string, signal: AbortSignal): Promise<string> {
    const apiVersion = stringAt(object, "apiVersion") ?? "";
    const kind = stringAt(object, "kind") ?? "";
    const name = stringAt(object, "metadata", "name") ?? "";
    if (apiVersion === "" || kind === "" || name === "") {
      throw new CodedError("invalid_argument", "a document of the chart has no apiVersion, kind or name");
    }
    const found = (await this.#kinds(apiVersion, signal)).get(kind);
    if (!found) throw new CodedError("not_found", `the cluster does not serve ${apiVersion} ${kind}`);
    const scope = found.namespaced
      ? `/namespaces/${stringAt(object, "metadata", "namespace") ?? namespace}`
      : "";
    return `${groupPath(apiVersion)}${scope}/${found.plural}/${name}`;
  }

  /** Whether the cluster serves a kind. */
  async serves(apiVersion: string, kind: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#kinds(apiVersion, signal)).has(kind);
  }

  async #kinds(apiVersion: string, signal: AbortSignal) {
    const known = this.#known.get(apiVersion);
    if (known) return known;
    const kinds = new Map<string, { plural: string; namespaced: boolean }>();
    try {
      const answer = await this.#client.request("GET", groupPath(apiVersion), { signal });
      const list = at(answer, "resources");
      for (const entry of Array.isArray(list) ? list : []) {
        const plural = stringAt(entry, "name") ?? "";
        const kind = stringAt(entry, "kind");
        if (kind === undefined || plural.includes("/") || !isObject(entry)) continue;
        kinds.set(kind, { plural, namespaced: entry["namespaced"] === true });
      }
      // Only what is there is remembered: a group may appear while a chart is being applied.
      this.#known.set(apiVersion, kinds);
    } catch (error) {
      if (!isCoded(error, "not_found")) throw error;
    }
    return kinds;
  }
}

const groupPath = (apiVersion: string): string =>
  apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
