/**
 * What every verb has in common: who asks, how long it waits, how often it tries.
 */
import type { Change } from "../store/change.ts";

/** How long a verb waits for its operation, milliseconds. */
export const awaitMs = 250;
/** How often a change that others keep overtaking is tried. */
export const maxAttempts = 16;

/** What a change was about, for a repeat that finds it made. */
export interface AcceptedChange {
  readonly machineId: string;
  readonly snapshotId?: string;
}

/** Who asks, and what has to be written together with the change. */
export interface Asking {
  readonly requestedBy: string;
  /** Adds to the accepting transaction, so that a repeat of the request can be recognised. */
  record?(change: Change, accepted: AcceptedChange): void;
}
