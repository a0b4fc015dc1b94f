/**
 * What every controller of this package is made with.
 */
import type { Config } from "../config/config.ts";
import type { Timings } from "./timings.ts";
import type { ZoneLeases } from "./zone-lease/zone-leases.ts";

/** Settings and shared services of the controllers of one process. */
export interface DomainContext {
  readonly config: Config;
  readonly timings: Timings;
  readonly leases: ZoneLeases;
}
