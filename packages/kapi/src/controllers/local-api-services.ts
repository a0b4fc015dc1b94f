/**
 * An APIService for every group version this server answers itself, made and removed with it.
 */
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import { messageOf, type Edges } from "@kontinuum/std";
import { customGroupPriority, customVersionPriority, groupPriority } from "../discovery/priority.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import { call, failedWith } from "./call.ts";

const collection = "/apis/apiregistration.k8s.io/v1/apiservices";
const managed = "kube-aggregator.kubernetes.io/automanaged";
/** Changes that come together are handled together. */
const settleMs = 50;
const retryMs = 5_000;

/** Keeps local APIServices. */
export class LocalApiServices implements Controller {
  readonly name = "local-api-services";
  readonly #edges: Edges;
  readonly #resources: ResourceSet;
  readonly #store: ResourceStore;
  readonly #transport: Transport;

  constructor(edges: Edges, resources: ResourceSet, store: ResourceStore, transport: Transport) {
    this.#edges = edges;
    this.#resources = resources;
    this.#store = store;
    this.#transport = transport;
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const { clock, log } = this.#edges;
    let wake: (() => void) | undefined;
    let done = -1;
    const nudge = (): void => wake?.();
    const unwatch = this.#resources.onChange(nudge);
    signal.addEventListener("abort", nudge);
    await this.#store.cache.load();
    while (!signal.aborted) {
      const { generation } = this.#resources;
      if (generation === done) {
        await new Promise<void>((resolve) => (wake = resolve));
        wake = undefined;
        await clock.sleep(settleMs, signal).catch(() => {});
        continue;
      }
      try {
        await this.#reconcile();
        done = generation;
      } catch (error) {
        log.warn("local APIServices will be tried again", { reason: messageOf(error) });
        await clock.sleep(retryMs, signal).catch(() => {});
      }
    }
    unwatch();
    signal.removeEventListener("abort", nudge);
  }

  async #reconcile(): Promise<void> {
    const wanted = new Map<
      string,
      { readonly group: string; readonly version: string; readonly custom: boolean }
    >();
    for (const { group, version, origin } of this.#resources.all()) {
      wanted.set(`${version}.${group}`, { group, version, custom: origin === "custom" });
    }
    await this.#store.cache.fresh();
    for (const [name, { group, version, custom }] of wanted) {
      if (this.#store.cache.get(this.#store.key("", name))) continue;
      try {
        await call(this.#transport, "POST", collection, {
          apiVersion: "apiregistration.k8s.io/v1",
          kind: "APIService",
          metadata: { name, labels: { [managed]: custom ? "true" : "onstart" } },
          spec: {
            ...(group === "" ? {} : { group }),
            version,
            groupPriorityMinimum: custom ? customGroupPriority : Math.min(groupPriority(group), 20_000),
            versionPriority: custom ? customVersionPriority : 15,
          },
        });
      } catch (error) {
        if (!failedWith(error, 409)) throw error;
      }
    }
    for (const entry of this.#store.cache.list()) {
      if (!Object.hasOwn(entry.labels, managed) || wanted.has(entry.name)) continue;
      try {
        await call(this.#transport, "DELETE", `${collection}/${encodeURIComponent(entry.name)}`, {
          kind: "DeleteOptions",
          apiVersion: "v1",
          preconditions: { uid: entry.uid },
        });
      } catch (error) {
        if (!failedWith(error, 404, 409)) throw error;
      }
    }
  }
}
