/**
 * Every interval and limit of the controllers, in milliseconds, with the published defaults.
 *
 * A demo or a test passes shorter ones; nothing else changes between them and production.
 */

/** Intervals and limits, in milliseconds. */
export interface Timings {
  /** Between two heartbeats of a process. */
  readonly heartbeatMs: number;
  /** A process not heard of for so long is removed. */
  readonly staleMs: number;
  /** Time allowed to deregister on shutdown. */
  readonly deregisterMs: number;
  /** Time one zone lease lasts without renewal. */
  readonly zoneLeaseMs: number;
  /** Probe of one candidate address. */
  readonly probeMs: number;
  /** Until a machine that did not answer is probed again. */
  readonly probeRetryMs: number;
  /** Until a machine that did answer is probed again. */
  readonly probeRecheckMs: number;
  /** Until a pool that is short of machines, or is being emptied, looks again. */
  readonly poolRetryMs: number;
  /** Until a cluster, addon, zone or reset that waits for something looks again. */
  readonly retryMs: number;
  /** Talos health check of a whole cluster. */
  readonly healthMs: number;
  /** Between two health checks of a ready cluster. */
  readonly healthRecheckMs: number;
  /** After so long, a deletion no longer waits for machines that do not answer. */
  readonly teardownMs: number;
  /** One installation of a chart. */
  readonly installMs: number;
  /** Between two checks of an installed chart. */
  readonly addonResyncMs: number;
  /** Between two looks at a zone's identity. */
  readonly identityCheckMs: number;
  /** Age at which a zone's key is replaced. */
  readonly identityRotationMs: number;
  /** Time a replaced key is still accepted. */
  readonly identityOverlapMs: number;
  /** Between two passes over the administrators' bindings. */
  readonly adminRbacMs: number;
}

const second = 1000;
const minute = 60 * second;

/** The published defaults. */
export const defaultTimings: Timings = {
  heartbeatMs: minute,
  staleMs: 5 * minute,
  deregisterMs: 5 * second,
  zoneLeaseMs: 45 * second,
  probeMs: 10 * second,
  probeRetryMs: 30 * second,
  probeRecheckMs: 5 * minute,
  poolRetryMs: 30 * second,
  retryMs: 15 * second,
  healthMs: minute,
  healthRecheckMs: 5 * minute,
  teardownMs: 15 * minute,
  installMs: 90 * second,
  addonResyncMs: 5 * minute,
  identityCheckMs: 30 * minute,
  identityRotationMs: 6 * 60 * minute,
  identityOverlapMs: 5 * minute,
  adminRbacMs: 30 * second,
};
