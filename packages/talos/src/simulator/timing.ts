/**
 * How long a simulated node takes for what a real one takes minutes for. All of it runs on the
 * injected clock.
 */

/** Durations of a node's life, milliseconds. */
export interface NodeTiming {
  /** From the reply to `ApplyConfiguration` to the switch of the API to mutual TLS. */
  readonly apidSwitchMs: number;
  /** Writing the system to disk. */
  readonly installMs: number;
  /** Being off the network while rebooting. */
  readonly rebootMs: number;
  /** From power to the container runtime being up. */
  readonly bootMs: number;
  /** From bootstrap, or from a join, to a healthy etcd. */
  readonly etcdMs: number;
  /** Between two tries of a worker to get its certificate from trustd. */
  readonly trustdRetryMs: number;
  /** Wiping and shutting down on a reset. */
  readonly resetMs: number;
  /** Pulling and writing the new system on an upgrade. */
  readonly upgradeMs: number;
  /** Between two looks of a health check at the same thing. */
  readonly healthIntervalMs: number;
}

/** Fast enough to watch: the whole way from apply to a running API server in about three seconds. */
export const demoTiming: NodeTiming = {
  apidSwitchMs: 200,
  installMs: 800,
  rebootMs: 500,
  bootMs: 400,
  etcdMs: 400,
  trustdRetryMs: 500,
  resetMs: 500,
  upgradeMs: 800,
  healthIntervalMs: 500,
};

/** What real hardware takes, roughly. */
export const realisticTiming: NodeTiming = {
  apidSwitchMs: 2_000,
  installMs: 60_000,
  rebootMs: 45_000,
  bootMs: 20_000,
  etcdMs: 20_000,
  trustdRetryMs: 5_000,
  resetMs: 30_000,
  upgradeMs: 90_000,
  healthIntervalMs: 5_000,
};
