/**
 * The injected edges in one record: what a controller, a driver or a simulator needs of the world.
 */
import { systemClock, type Clock } from "./clock.ts";
import { silentLog, type Log } from "./log.ts";
import { systemNetwork, type Network } from "./net.ts";
import { systemRandom, type Random } from "./random.ts";

/** Time, randomness, network and log. */
export interface Edges {
  readonly clock: Clock;
  readonly random: Random;
  readonly network: Network;
  readonly log: Log;
}

/** The real world, with a silent log unless one is given. Single edges can be replaced. */
export function systemEdges(overrides: Partial<Edges> = {}): Edges {
  return { clock: systemClock, random: systemRandom, network: systemNetwork, log: silentLog, ...overrides };
}
