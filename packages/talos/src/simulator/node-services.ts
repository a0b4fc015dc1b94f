/**
 * The services of a node and their history, as `ServiceList` shows them.
 */
import type { Clock } from "@kontinuum/std";
import type { NodeService, ServiceEvent, ServiceState } from "./node-view.ts";

/** Events kept per service. */
const eventLimit = 64;

interface Entry {
  state: ServiceState;
  healthy: boolean | undefined;
  readonly events: ServiceEvent[];
}

/** Services every node runs from the start. */
export const baseServices = ["machined", "containerd", "udevd", "auditd", "syslogd", "dashboard"] as const;

/** See the module's comment. */
export class NodeServices {
  readonly #clock: Clock;
  readonly #services = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sets a service's state; the same state twice is one event. */
  set(id: string, state: ServiceState, message: string, healthy?: boolean): void {
    const entry = this.#services.get(id) ?? { state: "Initialized" as const, healthy: undefined, events: [] };
    this.#services.set(id, entry);
    const isNew = entry.state !== state || entry.events.length === 0;
    entry.state = state;
    entry.healthy = healthy;
    if (!isNew) return;
    entry.events.push({ message, state, at: this.#clock.now() });
    if (entry.events.length > eventLimit) entry.events.shift();
  }

  /** State of one service. */
  stateOf(id: string): ServiceState | undefined {
    return this.#services.get(id)?.state;
  }

  /** Forgets all: the node is off. */
  clear(): void {
    this.#services.clear();
  }

  /** All, sorted by id. */
  list(): NodeService[] {
    return [...this.#services]
      .map(([id, { state, healthy, events }]) => ({ id, state, healthy, events: [...events] }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }
}
