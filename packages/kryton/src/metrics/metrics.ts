/**
 * Metrics in the Prometheus text format (version 0.0.4): the three counters clients know, and latency,
 * queue and stream figures on top. No label ever holds a name or an id.
 */

/** Upper bounds of the latency histogram, seconds. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

interface Histogram {
  readonly counts: number[];
  sum: number;
  total: number;
}

/** A figure read at scrape time. */
export interface Gauge {
  readonly name: string;
  readonly help: string;
  read(): number;
}

/** Turns a request path into the route's template, so that ids do not become labels. */
export type RouteNamer = (method: string, path: string) => string;

/** Counters of one server. */
export class Metrics {
  readonly #latency = new Map<string, Histogram>();
  readonly #operations = new Map<string, number>();
  readonly #outcomes = new Map<string, number>();
  readonly #gauges: Gauge[] = [];
  readonly #counters = new Map<string, { readonly help: string; value: number }>();
  #requests = 0;
  #errors = 0;
  /** Set once the routes are known. */
  routeName: RouteNamer = () => "other";

  /** A request ended. */
  finished(method: string, path: string, status: number, durationMs: number): void {
    this.#requests++;
    if (status >= 400) this.#errors++;
    const labels = `method="${escape(method)}",route="${escape(this.routeName(method, path))}",status="${status}"`;
    let histogram = this.#latency.get(labels);
    if (!histogram)
      this.#latency.set(labels, (histogram = { counts: buckets.map(() => 0), sum: 0, total: 0 }));
    const seconds = durationMs / 1000;
    histogram.sum += seconds;
    histogram.total++;
    const index = buckets.findIndex((bound) => seconds <= bound);
    if (index >= 0) histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
  }

  /** An operation of the API succeeded: `create`, `start`, `settings-config`, … */
  operation(name: string): void {
    this.#operations.set(name, (this.#operations.get(name) ?? 0) + 1);
  }

  /** Provider work ended, however it did. */
  outcome(kind: string, state: string): void {
    const labels = `kind="${escape(kind)}",state="${escape(state)}"`;
    this.#outcomes.set(labels, (this.#outcomes.get(labels) ?? 0) + 1);
  }

  /** Adds to a counter without labels. */
  count(name: string, help: string, by = 1): void {
    const counter = this.#counters.get(name);
    if (counter) counter.value += by;
    else this.#counters.set(name, { help, value: by });
  }

  gauge(gauge: Gauge): void {
    this.#gauges.push(gauge);
  }

  /** The text of a scrape. */
  text(): string {
    const lines: string[] = [];
    const head = (name: string, type: string, help: string): void => {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    };
    head("kryton_http_requests_total", "counter", "Finished HTTP requests.");
    lines.push(`kryton_http_requests_total ${this.#requests}`);
    head("kryton_http_errors_total", "counter", "Finished HTTP requests with status 400 or above.");
    lines.push(`kryton_http_errors_total ${this.#errors}`);
    head("kryton_operations_total", "counter", "Successful operations.");
    for (const [name, value] of sorted(this.#operations)) {
      lines.push(`kryton_operations_total{operation="${escape(name)}"} ${value}`);
    }
    head("kryton_provider_operations_total", "counter", "Provider work by how it ended.");
    for (const [labels, value] of sorted(this.#outcomes)) {
      lines.push(`kryton_provider_operations_total{${labels}} ${value}`);
    }
    for (const [name, { help, value }] of sorted(this.#counters)) {
      head(name, "counter", help);
      lines.push(`${name} ${value}`);
    }
    head("kryton_http_request_duration_seconds", "histogram", "Duration of HTTP requests.");
    for (const [labels, histogram] of sorted(this.#latency)) {
      let below = 0;
      buckets.forEach((bound, index) => {
        below += histogram.counts[index] ?? 0;
        lines.push(`kryton_http_request_duration_seconds_bucket{${labels},le="${bound}"} ${below}`);
      });
      lines.push(
        `kryton_http_request_duration_seconds_bucket{${labels},le="+Inf"} ${histogram.total}`,
        `kryton_http_request_duration_seconds_sum{${labels}} ${histogram.sum}`,
        `kryton_http_request_duration_seconds_count{${labels}} ${histogram.total}`,
      );
    }
    for (const { name, help, read } of this.#gauges) {
      head(name, "gauge", help);
      lines.push(`${name} ${read()}`);
    }
    return `${lines.join("\n")}\n`;
  }
}

function sorted<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}

function escape(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
