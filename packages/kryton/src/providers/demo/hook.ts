/**
 * What stands behind a demo guest, when something does.
 *
 * The demo provider knows nothing of it: an image the hook handles is handed over at each change of
 * power. Every call is idempotent, and `start` is called again for running guests when a process
 * comes up, because what a hook runs lives in the process.
 */
import type { MachineSpec } from "../../model/machine.ts";

/** A demo guest, as far as a hook may see it. */
export interface DemoGuest {
  readonly id: string;
  readonly project: string;
  readonly spec: MachineSpec;
}

/** Boots something behind demo guests. */
export interface DemoHook {
  /** Whether guests of this image are the hook's. */
  handles(image: string): boolean;
  /** Boots it for the first time; its addresses replace the simulated one. */
  create(
    guest: DemoGuest,
  ): Promise<{ readonly ipAddresses?: readonly string[]; readonly message?: string } | undefined>;
  start(guest: DemoGuest): Promise<void>;
  stop(guest: DemoGuest): Promise<void>;
  /** Stops it and removes all it left. */
  delete(guest: DemoGuest): Promise<void>;
  close?(): Promise<void>;
}
