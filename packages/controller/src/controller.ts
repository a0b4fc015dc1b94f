/**
 * A controller at work: its queue, its workers, and what becomes of a result or a failure.
 */
import { CodedError, isCoded, messageOf, type Edges, type Log } from "@kontinuum/std";
import type { CachedClient } from "./cached-client.ts";
import { TerminalError, type ControllerDefinition, type InformerSource } from "./controller-definition.ts";
import type { AnyInformer } from "./informer.ts";
import { WorkQueue, type QueueStats } from "./work-queue.ts";

/** What a controller gets of its manager. */
export interface ControllerHost extends InformerSource {
  readonly client: CachedClient;
  readonly edges: Edges;
}

/** A controller at work; made and owned by a manager. */
export class RunningController {
  readonly #definition: ControllerDefinition;
  readonly #client: CachedClient;
  readonly #edges: Edges;
  readonly #log: Log;
  readonly #queue: WorkQueue;
  readonly #informers: AnyInformer[];

  constructor(definition: ControllerDefinition, host: ControllerHost) {
    this.#definition = definition;
    this.#client = host.client;
    this.#edges = host.edges;
    this.#log = host.edges.log.with({ controller: definition.name });
    this.#queue = new WorkQueue({ ...definition.queue, clock: host.edges.clock });
    const add = (key: string): void => {
      // The bound is far above what fits in memory as objects; should it be reached, say so and come back.
      if (this.#queue.isClosed || this.#queue.add(key) || this.#queue.addAfter(key, 1000)) return;
      this.#log.error("the work queue is full: a change is dropped", { object: key });
    };
    this.#informers = definition.watches.map((watch) => watch.connect(host, add));
    for (const key of definition.initialKeys ?? []) add(key);
  }

  get name(): string {
    return this.#definition.name;
  }

  stats(): QueueStats {
    return this.#queue.stats();
  }

  /** Works until `signal` aborts; resolves when the work under way has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const close = (): void => this.#queue.close();
    signal.addEventListener("abort", close, { once: true });
    const stopped = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    if (signal.aborted) return close();
    await Promise.race([Promise.all(this.#informers.map((informer) => informer.synced())), stopped]);
    await Promise.all(Array.from({ length: this.#definition.concurrency ?? 1 }, () => this.#work(signal)));
    signal.removeEventListener("abort", close);
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (let key = await this.#queue.take(); key !== undefined; key = await this.#queue.take()) {
      await this.#reconcile(key, signal);
      this.#queue.done(key);
    }
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<void> {
    const log = this.#log.with({ object: key });
    const failures = this.#queue.failures(key);
    try {
      const context = { client: this.#client, edges: this.#edges, log, signal, failures };
      const result = await this.#definition.reconcile(key, context);
      this.#queue.forget(key);
      if (result?.requeueAfterMs !== undefined) this.#queue.addAfter(key, result.requeueAfterMs);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof TerminalError) {
        log.error("reconcile failed for good", { reason: error.message });
        this.#queue.forget(key);
        return;
      }
      if (isCoded(error, "conflict"))
        log.debug("somebody else was faster; trying again", { reason: error.message });
      else
        log.warn("reconcile failed", { reason: messageOf(error), failures: failures + 1, ...stackOf(error) });
      this.#queue.addFailed(key);
    }
  }
}

/** A stack helps only where a failure was not expected: coded errors say all there is. */
function stackOf(error: unknown): { stack?: string } {
  return error instanceof Error && !(error instanceof CodedError) && error.stack !== undefined
    ? { stack: error.stack }
    : {};
}
