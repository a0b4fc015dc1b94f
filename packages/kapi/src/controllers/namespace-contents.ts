/**
 * What every living namespace holds: the `default` service account and the authority's certificates.
 */
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import type { Edges } from "@kontinuum/std";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceDefinition } from "../resource.ts";
import { isDeleting } from "../watch-cache/entry.ts";
import { CacheWorker } from "./cache-worker.ts";
import { call, failedWith } from "./call.ts";
import { ensure } from "./bootstrap.ts";

/** Name of the ConfigMap with the authority's certificates. */
const rootCertificates = "kube-root-ca.crt";
/**
 * Shortest time between two corrections of one namespace's certificates, milliseconds: two servers that were given different
 * authorities would otherwise write them at each other without end.
 */
const correctionPauseMs = 60_000;

/** Keeps namespaces furnished. */
export class NamespaceContents implements Controller {
  readonly name = "namespace-contents";
  readonly #edges: Edges;
  readonly #resources: ResourceSet;
  readonly #storage: ObjectStorage;
  readonly #transport: Transport;
  readonly #authority: string;
  /** When the certificates of a namespace were last corrected, monotonic milliseconds. */
  readonly #corrected = new Map<string, number>();

  /** `authority` is the PEM text that clients in the cluster trust; may be empty. */
  constructor(
    edges: Edges,
    resources: ResourceSet,
    storage: ObjectStorage,
    transport: Transport,
    authority: string,
  ) {
    this.#edges = edges;
    this.#resources = resources;
    this.#storage = storage;
    this.#transport = transport;
    this.#authority = authority;
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const { clock, log } = this.#edges;
    const worker = new CacheWorker({
      name: this.name,
      clock,
      log,
      reconcile: (name) => this.#reconcile(name),
    });
    const stops: (() => void)[] = [];
    const follow = async (
      resource: ResourceDefinition | undefined,
      names: readonly string[],
    ): Promise<void> => {
      if (!resource) return;
      const { cache } = this.#storage.of(resource);
      await cache.load();
      stops.push(
        worker.follow(cache, ({ entry, previous }) => {
          const seen = entry ?? previous;
          if (!seen) return [];
          if (!resource.namespaced) return entry ? [entry.name] : [];
          return names.includes(seen.name) ? [seen.namespace] : [];
        }),
      );
    };
    await follow(this.#resources.get("", "v1", "namespaces"), []);
    await follow(this.#resources.get("", "v1", "serviceaccounts"), ["default"]);
    await follow(this.#resources.get("", "v1", "configmaps"), [rootCertificates]);
    try {
      await worker.run(signal);
    } finally {
      for (const stop of stops) stop();
    }
  }

  async #reconcile(namespace: string): Promise<number | undefined> {
    const namespaces = this.#resources.get("", "v1", "namespaces");
    if (!namespaces) return undefined;
    const store = this.#storage.of(namespaces);
    const entry = store.cache.get(store.key("", namespace));
    if (!entry || isDeleting(entry)) {
      this.#corrected.delete(namespace);
      return undefined;
    }
    const place = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
    try {
      if (this.#lacks("serviceaccounts", namespace, "default")) {
        await ensure(this.#transport, `${place}/serviceaccounts`, {
          apiVersion: "v1",
          kind: "ServiceAccount",
          metadata: { name: "default", namespace },
        });
      }
      if (this.#lacks("configmaps", namespace, rootCertificates)) {
        await ensure(this.#transport, `${place}/configmaps`, {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: {
            name: rootCertificates,
            namespace,
            annotations: {
              "kubernetes.io/description":
                "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
            },
          },
          data: { "ca.crt": this.#authority },
        });
      } else return await this.#correct(place, namespace);
    } catch (error) {
      // The namespace may have begun to go meanwhile.
      if (!failedWith(error, 403, 404)) throw error;
    }
    return undefined;
  }

  /** Answers when to look again, if the certificates were corrected just now. */
  async #correct(place: string, namespace: string): Promise<number | undefined> {
    const resource = this.#resources.get("", "v1", "configmaps");
    if (!resource) return undefined;
    const store = this.#storage.of(resource);
    const entry = store.cache.get(store.key(namespace, rootCertificates));
    const wanted = JSON.stringify(this.#authority);
    if (!entry || entry.rest.includes(`"ca.crt":${wanted}`)) return undefined;
    const { clock, log } = this.#edges;
    const since = clock.monotonic() - (this.#corrected.get(namespace) ?? -correctionPauseMs);
    if (since < correctionPauseMs) {
      log.warn("somebody else writes other certificates: give all servers of a store one authority", {
        configMap: `${namespace}/${rootCertificates}`,
      });
      return correctionPauseMs - since;
    }
    this.#corrected.set(namespace, clock.monotonic());
    await call(this.#transport, "PATCH", `${place}/configmaps/${rootCertificates}`, {
      data: { "ca.crt": this.#authority },
    });
    return undefined;
  }

  /** Whether a served kind has no such object in its cache. */
  #lacks(plural: string, namespace: string, name: string): boolean {
    const resource = this.#resources.get("", "v1", plural);
    if (!resource) return false;
    const store = this.#storage.of(resource);
    return store.cache.get(store.key(namespace, name)) === undefined;
  }
}
