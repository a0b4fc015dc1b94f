/**
 * What the server counts, in the Prometheus text form, under the names dashboards for Kubernetes API servers know.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { RequestContext } from "./context.ts";

/** Counts requests and watches. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<"verb" | "group" | "version" | "resource" | "subresource" | "code">;
  readonly #durations: Histogram<"verb">;

  /** `gauges` are read when the metrics are asked for. */
  constructor(gauges: {
    readonly watches: () => number;
    readonly objects: () => ReadonlyMap<string, number>;
  }) {
    const registers = [this.#registry];
    this.#requests = new Counter({
      name: "apiserver_request_total",
      help: "Answered requests.",
      labelNames: ["verb", "group", "version", "resource", "subresource", "code"],
      registers,
    });
    this.#durations = new Histogram({
      name: "apiserver_request_duration_seconds",
      help: "Time to answer, watches left out.",
      labelNames: ["verb"],
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers,
    });
    const watches: Gauge = new Gauge({
      name: "apiserver_longrunning_requests",
      help: "Open watches.",
      registers,
      collect: () => watches.set(gauges.watches()),
    });
    const objects: Gauge<"resource"> = new Gauge({
      name: "apiserver_storage_objects",
      help: "Objects held by the watch caches.",
      labelNames: ["resource"],
      registers,
      collect() {
        objects.reset();
        for (const [resource, count] of gauges.objects()) objects.set({ resource }, count);
      },
    });
  }

  /** Counts an answered request; unknown resources are counted together, so that clients can't make labels. */
  observe(context: RequestContext, known: boolean, seconds: number): void {
    const { info, response } = context;
    const named = info.isResource && known;
    this.#requests.inc({
      verb: verbLabel(info.verb),
      group: named ? info.group : "",
      version: named ? info.version : "",
      resource: named ? info.resource : "",
      subresource: named ? info.subresource : "",
      code: String(response.statusCode),
    });
    if (!context.longRunning) this.#durations.observe({ verb: verbLabel(info.verb) }, seconds);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The text of `/metrics`. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

const verbs = new Set([
  "get",
  "list",
  "watch",
  "create",
  "update",
  "patch",
  "delete",
  "deletecollection",
  "head",
  "options",
]);

function verbLabel(verb: string): string {
  return verbs.has(verb) ? verb : "other";
}
