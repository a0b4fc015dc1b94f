/**
 * The manager runs controllers: one client and one informer per resource for all of them.
 *
 * It starts the informers that its controllers watch, lets the controllers work once their informers have
 * synced, and on stop waits, up to a deadline, for the work under way, so that the last writes land. It
 * starts no second informer for a resource, whatever the number of controllers.
 */
import { CodedError, type Edges } from "@kontinuum/std";
import { CachedClient } from "./cached-client.ts";
import { Client, type ClientOptions } from "./client.ts";
import type { Controller, ControllerContext } from "./contract.ts";
import { RunningController, type ControllerHost } from "./controller.ts";
import type { ControllerDefinition, DefinedController } from "./controller-definition.ts";
import { Informer, type AnyInformer } from "./informer.ts";
import type { KubeObject, Resource } from "./object.ts";
import { collectionPath, resourceName } from "./resource.ts";
import type { Transport } from "./transport.ts";

/** Options of a {@link Manager}. */
export interface ManagerOptions {
  /** Names it in the log and in `User-Agent`. */
  readonly name: string;
  readonly transport: Transport;
  readonly edges: Edges;
  readonly controllers?: readonly ControllerDefinition[];
  /** How long a stop waits for the work under way, milliseconds. Default 30,000. */
  readonly stopDeadlineMs?: number;
}

/** See the module's comment. */
export class Manager implements ControllerHost {
  readonly name: string;
  readonly edges: Edges;
  /** Reads from this manager's informers. */
  readonly client: CachedClient;
  readonly #direct: Client;
  readonly #stopDeadlineMs: number;
  readonly #informers = new Map<string, AnyInformer>();
  readonly #controllers: RunningController[] = [];
  readonly #informerRuns: Promise<void>[] = [];
  readonly #controllerRuns: Promise<void>[] = [];
  readonly #stopInformers = new AbortController();
  /** Set while running. */
  #signal: AbortSignal | undefined;

  constructor(options: ManagerOptions) {
    this.name = options.name;
    this.edges = options.edges;
    this.#stopDeadlineMs = options.stopDeadlineMs ?? 30_000;
    const clientOptions: ClientOptions = { edges: options.edges, userAgent: `${options.name}/controller` };
    this.#direct = new Client(options.transport, clientOptions);
    this.client = new CachedClient(options.transport, clientOptions, {
      find: (resource) => this.#find(resource),
    });
    for (const definition of options.controllers ?? []) this.add(definition);
  }

  /** Adds a controller; when running, it starts at once. */
  add(definition: ControllerDefinition): void {
    if (this.#controllers.some(({ name }) => name === definition.name)) {
      throw new TypeError(`there are two controllers named ${JSON.stringify(definition.name)}`);
    }
    const controller = new RunningController(definition, this);
    this.#controllers.push(controller);
    if (this.#signal) this.#controllerRuns.push(controller.run(this.#signal));
  }

  /** The informer of a resource, made (and, when running, started) on first use. */
  informer<T extends KubeObject>(resource: Resource<T>): Informer<T> {
    const present = this.#find(resource);
    if (present) return present;
    const informer = new Informer(this.#direct, resource, { edges: this.edges });
    this.#informers.set(collectionPath(resource), informer);
    if (this.#signal) this.#start(informer);
    return informer;
  }

  /** Works until `signal` aborts; resolves when the last work has ended or the stop deadline has passed. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const informer of this.#informers.values()) this.#start(informer);
    for (const controller of this.#controllers) this.#controllerRuns.push(controller.run(signal));
    try {
      await aborted(signal);
      await Promise.race([Promise.all(this.#controllerRuns), this.#stopDeadline()]);
    } finally {
      this.#stopInformers.abort();
      await Promise.all(this.#informerRuns);
    }
  }

  /** Queue facts by controller name. */
  stats(): Readonly<Record<string, ReturnType<RunningController["stats"]>>> {
    return Object.fromEntries(this.#controllers.map((controller) => [controller.name, controller.stats()]));
  }

  #start(informer: AnyInformer): void {
    this.#informerRuns.push(informer.run(this.#stopInformers.signal));
  }

  #find<T extends KubeObject>(resource: Resource<T>): Informer<T> | undefined {
    const informer = this.#informers.get(collectionPath(resource));
    if (informer === undefined) return undefined;
    if (isOf(informer, resource)) return informer;
    throw new TypeError(
      `${resourceName(resource)} is declared twice: share one Resource, or the cache would hold two types`,
    );
  }

  async #stopDeadline(): Promise<void> {
    await this.edges.clock.sleep(this.#stopDeadlineMs, this.#stopInformers.signal).catch(() => {});
    if (this.#stopInformers.signal.aborted) return;
    const busy = this.#controllers
      .filter((controller) => controller.stats().active > 0)
      .map(({ name }) => name);
    this.edges.log.warn("stopped without waiting for work under way", {
      manager: this.name,
      controllers: busy,
    });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Informers are made for their resource, so the resource tells the type. */
function isOf<T extends KubeObject>(informer: unknown, resource: Resource<T>): informer is Informer<T> {
  return informer instanceof Informer && Object.is(informer.resource, resource);
}

/** Defines a controller. Run alone it gets a manager of its own; see also {@link combineControllers}. */
export function defineController(definition: ControllerDefinition): DefinedController {
  return {
    name: definition.name,
    definition,
    run(context) {
      const manager = new Manager({ ...context, name: definition.name, controllers: [definition] });
      return manager.run(context.signal);
    },
  };
}

/**
 * Several controllers as one, with one client and shared informers. A plain {@link Controller} among them
 * runs beside the others with the same context.
 */
export function combineControllers(
  name: string,
  controllers: readonly (Controller | DefinedController)[],
  options: Pick<ManagerOptions, "stopDeadlineMs"> = {},
): Controller {
  return {
    name,
    async run(context: ControllerContext) {
      const defined = controllers.filter((controller) => "definition" in controller);
      const plain = controllers.filter((controller) => !("definition" in controller));
      const manager = new Manager({
        ...context,
        ...options,
        name,
        controllers: defined.map(({ definition }) => definition),
      });
      await Promise.all([
        manager.run(context.signal),
        ...plain.map((controller) => runAlways(controller, context)),
      ]);
    },
  };
}

/** A plain controller that ends early or fails is started again: one broken part must not end the others. */
async function runAlways(controller: Controller, context: ControllerContext): Promise<void> {
  while (!context.signal.aborted) {
    try {
      await controller.run(context);
      if (context.signal.aborted) return;
      throw new CodedError("internal", "it ended without being asked to");
    } catch (error) {
      if (context.signal.aborted) return;
      context.edges.log.error("a controller ended and is started again", {
        controller: controller.name,
        reason: error instanceof Error ? error.message : String(error),
      });
      await context.edges.clock.sleep(1000, context.signal).catch(() => {});
    }
  }
}
