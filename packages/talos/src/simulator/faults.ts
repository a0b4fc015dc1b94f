/**
 * Faults that a test or a demonstration asks of a node. All are off by default and can be changed while
 * the node runs.
 */

/** Steps of a node's life at which it can be made to crash. */
export type CrashPoint = "apply" | "install" | "boot" | "bootstrap" | "reset" | "upgrade";

/** What is wrong with a node. */
export interface NodeFaults {
  /** New connections: refused, taken and never answered, or cut during the handshake. */
  readonly connections?: "refuse" | "blackhole" | "cut";
  /** Every new connection waits so long, milliseconds. */
  readonly handshakeDelayMs?: number;
  /** Every call waits so long, milliseconds. */
  readonly callDelayMs?: number;
  /** Serves a certificate of another CA when configured. */
  readonly wrongCertificate?: boolean;
  /** Loses power at this step, once, and boots again. */
  readonly crashAt?: CrashPoint;
  /** Does all that a call asks and loses the reply: names of methods, such as `ApplyConfiguration`. */
  readonly loseReply?: readonly string[];
  /** Fails these calls with `INTERNAL` before doing anything. */
  readonly failCalls?: readonly string[];
  /** The installation fails and the node reboots to try again, for ever. */
  readonly diskFailure?: boolean;
  /** The node's clock is off by so much, milliseconds: times it reports and certificates it makes. */
  readonly clockSkewMs?: number;
  /** The clock never gets in sync: bootstrap is refused. */
  readonly timeNotSynced?: boolean;
}
