/**
 * What a machine provider has to do, and what it may rely on.
 *
 * A provider is a thin translator between machines and one outside system. It keeps no list of
 * operations, emits no events and enforces no roles: the service around it does. What always holds:
 *
 * - The machine's id is chosen by the caller and is the *intent id*: `create` called again with the
 *   same id finds what an interrupted call left, finishes it and never makes a second machine.
 * - Every call is idempotent: starting what runs, stopping what stands, deleting what is gone succeed.
 * - Calls for one machine never overlap; calls for different machines do.
 * - `call.signal` aborts when the work is cancelled or this replica must not act any more; a
 *   provider stops as soon as that leaves nothing torn, and throws.
 * - Failures are {@link ProviderError}s; anything else counts as a bug and is not retried.
 */
import type { Duplex } from "node:stream";
import type { Image } from "../model/image.ts";
import type { GuestSecrets } from "../model/dockur-options.ts";
import type { Machine, MachineSpec, MachineState, ProviderName } from "../model/machine.ts";
import type { Fence } from "../store/change.ts";
import type { ClusterStorage } from "../storage-inventory/contract.ts";
import type { RetryClass } from "../model/operation.ts";

/** What a provider can do; shown to callers as it is. */
export interface Capabilities {
  readonly snapshots: boolean;
  readonly networks: boolean;
  readonly ttl: boolean;
  readonly liveMigration: boolean;
  readonly console: boolean;
  readonly restart: boolean;
  readonly pause: boolean;
  readonly forceStop: boolean;
  readonly resize: boolean;
  readonly clone: boolean;
}

/** Kinds of provider failures. */
export type ProviderErrorKind =
  | "not-found"
  | "conflict"
  | "unsupported"
  | "invalid"
  | "unavailable"
  | "failed";

const defaultRetry: Record<ProviderErrorKind, RetryClass> = {
  "not-found": "fatal",
  conflict: "fatal",
  unsupported: "fatal",
  invalid: "fatal",
  unavailable: "retry",
  failed: "needs-person",
};

/** An expected failure of a provider. The message is shown to callers: no secrets, no host paths beyond need. */
export class ProviderError extends Error {
  readonly kind: ProviderErrorKind;
  readonly retryClass: RetryClass;
  /** Status of the Kubernetes API behind the failure, when there was one. */
  readonly kubernetesStatus: number | undefined;

  constructor(
    kind: ProviderErrorKind,
    message: string,
    options: { cause?: unknown; retryClass?: RetryClass; kubernetesStatus?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ProviderError";
    this.kind = kind;
    this.retryClass = options.retryClass ?? defaultRetry[kind];
    this.kubernetesStatus = options.kubernetesStatus;
  }
}

/** Surroundings of one call. */
export interface ProviderCall {
  readonly signal: AbortSignal;
  /**
   * The claim this work is done under. A provider whose outside world can make a change conditional on it does, so
   * that a process that was away for longer than its lease changes nothing any more. Absent in tests and probes.
   */
  readonly fence?: Fence;
  /** Tells how far the work is; may be called often, is thinned out by the caller. */
  progress(update: { readonly percent?: number; readonly phase?: string; readonly message?: string }): void;
}

/** Which machine, and what is known of it. */
export interface MachineRef {
  readonly id: string;
  readonly project: string;
  readonly spec: MachineSpec;
  readonly providerRef: Machine["providerRef"];
}

/** A machine to make. */
export interface CreateRequest extends MachineRef {
  readonly image: Image;
  readonly secrets: GuestSecrets;
  readonly createdAt: string;
  readonly expiresAt: string | undefined;
  /** Copy the disk of this machine instead of the image's. */
  readonly cloneOf: MachineRef | undefined;
}

/** A machine as the provider sees it now. */
export interface Observation {
  readonly state: MachineState;
  readonly providerRef: Machine["providerRef"];
  readonly ipAddresses?: readonly string[];
  readonly consoleUrl?: string;
  readonly rdpHost?: string;
  readonly rdpPort?: number;
  readonly rdpUsername?: string;
  readonly progressPercent?: number;
  readonly message?: string;
  readonly conditions?: Machine["conditions"];
}

/** A machine found at the provider, for adoption and for state changes nobody asked for. */
export interface Found {
  readonly id: string;
  readonly project: string;
  /** The accepted request, when the provider keeps it. */
  readonly spec: MachineSpec | undefined;
  readonly createdAt: string | undefined;
  readonly expiresAt: string | undefined;
  readonly observation: Observation;
}

/** Sizes after a resize; absent means unchanged. */
export interface Resize {
  readonly cpu?: number;
  readonly memoryMiB?: number;
  /** Only ever larger than before. */
  readonly diskGiB?: number;
}

/** A snapshot as the provider sees it. */
export interface SnapshotObservation {
  readonly state: "creating" | "ready" | "failed" | "restoring" | "restored";
  readonly message?: string;
  /** The machine after a restore, when it changed. */
  readonly machine?: Observation;
}

/** Snapshots of a machine; absent when the provider has none. `id` is the intent id, as for machines. */
export interface SnapshotProvider {
  create(
    machine: MachineRef,
    snapshot: { id: string; name: string },
    call: ProviderCall,
  ): Promise<SnapshotObservation>;
  /** `undefined`: gone. */
  observe(
    machine: MachineRef,
    snapshot: { id: string; name: string },
    call: ProviderCall,
  ): Promise<SnapshotObservation | undefined>;
  restore(
    machine: MachineRef,
    snapshot: { id: string; name: string },
    call: ProviderCall,
  ): Promise<SnapshotObservation>;
  delete(machine: MachineRef, snapshot: { id: string; name: string }, call: ProviderCall): Promise<void>;
}

/** Where a console is. */
export type ConsoleTarget =
  | { readonly kind: "web"; readonly upstreamUrl: string }
  | {
      readonly kind: "vnc";
      readonly namespace: string;
      readonly name: string;
      connect(signal: AbortSignal): Promise<Duplex>;
    };

/** Consoles; absent when the provider has none. */
export interface ConsoleProvider {
  target(machine: MachineRef, call: ProviderCall): Promise<ConsoleTarget>;
}

/** One diagnosis. */
export interface Finding {
  readonly check: string;
  readonly status: "pass" | "warn" | "fail";
  readonly message: string;
  readonly hint?: string;
}

/** A machine provider. */
export interface Provider {
  readonly name: ProviderName;
  readonly capabilities: Capabilities;
  /**
   * True when `create` ends with the machine's final state within milliseconds: then the creation is
   * announced with that state instead of `provisioning`.
   */
  readonly settlesAtOnce: boolean;
  /** How often `inventory` is worth asking, milliseconds; 0 when nothing changes by itself. */
  readonly observeEveryMs: number;
  /** Throws when the outside system cannot be used. */
  health(call: ProviderCall): Promise<void>;
  /** Provider-specific diagnoses. */
  doctor(call: ProviderCall): Promise<readonly Finding[]>;
  /** Refuses a request before anything is recorded: `invalid`, `unsupported` or `conflict`. Fast, no side effects. */
  check(request: CreateRequest, call: ProviderCall): Promise<void>;
  /** The reference a machine of this id will have, before it exists. */
  reference(request: Pick<MachineRef, "id" | "project" | "spec">): Machine["providerRef"];
  create(request: CreateRequest, call: ProviderCall): Promise<Observation>;
  /** The machine now; `undefined` when it does not exist. */
  observe(machine: MachineRef, call: ProviderCall): Promise<Observation | undefined>;
  /** Every machine of this API that exists outside. One that cannot be read is skipped and reported. */
  inventory(call: ProviderCall): AsyncIterable<Found>;
  start(machine: MachineRef, call: ProviderCall): Promise<Observation>;
  stop(machine: MachineRef, options: { readonly force: boolean }, call: ProviderCall): Promise<Observation>;
  /** Freezes what runs, and thaws it; both or none. Pausing what does not run is a `conflict`. */
  pause?(machine: MachineRef, call: ProviderCall): Promise<Observation>;
  resume?(machine: MachineRef, call: ProviderCall): Promise<Observation>;
  restart?(machine: MachineRef, call: ProviderCall): Promise<Observation>;
  resize?(machine: MachineRef, size: Resize, call: ProviderCall): Promise<Observation>;
  delete(machine: MachineRef, call: ProviderCall): Promise<void>;
  readonly snapshots?: SnapshotProvider;
  readonly console?: ConsoleProvider;
  /** The storage of the cluster behind the provider, when there is one. */
  readonly cluster?: ClusterStorage;
  /** Called once after construction, before any other call; and at the end. */
  open?(): Promise<void>;
  close?(): Promise<void>;
}
