/**
 * Aggregated cluster roles: their rules are the union of the roles their selectors name.
 */
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import { isObject, type Edges, type JsonObject } from "@kontinuum/std";
import { equalJson } from "../json/json.ts";
import { labelSelectorOf } from "../registry/label-selector.ts";
import { metaText } from "../registry/metadata.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import type { ResourceDefinition } from "../resource.ts";
import { entryObject } from "../watch-cache/entry.ts";
import { CacheWorker } from "./cache-worker.ts";
import { call } from "./call.ts";
import { objectPath } from "./object-path.ts";

/** Rules of one aggregated role at most. */
const maxRules = 10_000;

/** Keeps aggregated roles up to date. */
export class RoleAggregation implements Controller {
  readonly name = "role-aggregation";
  readonly #edges: Edges;
  readonly #resource: ResourceDefinition;
  readonly #store: ResourceStore;
  readonly #transport: Transport;

  constructor(edges: Edges, resource: ResourceDefinition, store: ResourceStore, transport: Transport) {
    this.#edges = edges;
    this.#resource = resource;
    this.#store = store;
    this.#transport = transport;
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const { clock, log } = this.#edges;
    const worker = new CacheWorker({
      name: this.name,
      clock,
      log,
      reconcile: (name) => this.#reconcile(name),
    });
    await this.#store.cache.load();
    // Any role may be a part of any aggregated one: there are few of them, so all are looked at.
    const unfollow = worker.follow(this.#store.cache, () =>
      this.#store.cache
        .list()
        .filter((entry) => entry.rest.includes('"aggregationRule":'))
        .map((entry) => entry.name),
    );
    try {
      await worker.run(signal);
    } finally {
      unfollow();
    }
  }

  async #reconcile(name: string): Promise<undefined> {
    const entry = this.#store.cache.get(this.#store.key("", name));
    if (!entry || entry.error !== undefined) return undefined;
    const role = entryObject(entry);
    const aggregation = role["aggregationRule"];
    const selectors =
      isObject(aggregation) && Array.isArray(aggregation["clusterRoleSelectors"])
        ? aggregation["clusterRoleSelectors"]
        : [];
    if (selectors.length === 0) return undefined;
    const matchers = selectors.map(labelSelectorOf);
    const rules: JsonObject[] = [];
    for (const other of this.#store.cache.list()) {
      if (other.name === name || other.error !== undefined) continue;
      if (!matchers.some((matcher) => matcher.matches(other.labels))) continue;
      const found = entryObject(other)["rules"];
      for (const rule of Array.isArray(found) ? found.filter(isObject) : []) {
        if (rules.length < maxRules && !rules.some((present) => equalJson(present, rule))) rules.push(rule);
      }
    }
    if (equalJson(rules, role["rules"] ?? [])) return undefined;
    await call(this.#transport, "PATCH", objectPath(this.#resource, "", name), {
      metadata: { resourceVersion: metaText(role, "resourceVersion") },
      rules,
    });
    return undefined;
  }
}
