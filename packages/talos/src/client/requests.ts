/**
 * What is asked of a node and what it answers, in plain values, and the numbers they have on the wire.
 */
import {
  ApplyConfigurationRequest_Mode,
  RebootRequest_Mode,
  ResetRequest_WipeMode,
} from "../gen/machine/machine_pb.ts";
import type { CallOptions } from "./call.ts";

/** What a node runs. */
export interface VersionFact {
  /** Talos release, such as `v1.13.0`. */
  readonly tag: string;
  readonly platform: string;
  readonly arch: string;
  /** True once a machine configuration is active. */
  readonly configured: boolean;
}

/** How a configuration takes effect (Talos `ApplyConfiguration` modes). */
export type ApplyMode = "reboot" | "auto" | "no-reboot" | "staged" | "try";

/** A configuration to apply. */
export interface ApplyRequest {
  /** The YAML documents. */
  readonly config: string;
  /** Default `reboot`. */
  readonly mode?: ApplyMode;
  readonly dryRun?: boolean;
  /** With `try`: how long before the node reverts. */
  readonly tryTimeoutMs?: number;
  /** SMBIOS UUID the machine must have; otherwise nothing is sent (`identity_changed`). */
  readonly expectUuid?: string;
}

/** What came of it. */
export interface ApplyResult {
  readonly mode: ApplyMode;
  readonly details: string;
  readonly warnings: readonly string[];
}

/** Options of {@link TalosClient.healthCheck}. Lists hold IP addresses and are taken as complete. */
export interface HealthCheckRequest extends CallOptions {
  readonly controlPlane: readonly string[];
  /** Leave out only when there are none: the check fails when it meets an unlisted node. */
  readonly workers?: readonly string[];
  /** Each line of the node's progress. */
  readonly onProgress?: (message: string) => void;
}

/** Options of {@link TalosClient.reset}. */
export interface ResetRequest {
  /** Leave etcd first; must be false for the last control-plane member. */
  readonly graceful: boolean;
  /** Boot again afterwards. Default true. */
  readonly reboot?: boolean;
  /** Partitions to wipe, such as `STATE` and `EPHEMERAL`; all of the system disk when left out. */
  readonly partitions?: readonly string[];
  /** Further disks to wipe, by device path. */
  readonly userDisks?: readonly string[];
  /** Default `all`. */
  readonly wipe?: "all" | "system-disk" | "user-disks";
}

/** A service of a node. */
export interface ServiceFact {
  readonly id: string;
  /** `Running`, `Preparing`, `Failed`, … */
  readonly state: string;
  /** `undefined` while nobody has checked. */
  readonly healthy: boolean | undefined;
  readonly lastMessage: string;
  /** Newest last. */
  readonly events: readonly {
    readonly message: string;
    readonly state: string;
    readonly at: Date | undefined;
  }[];
}

/** A member of the cluster's etcd. */
export interface EtcdMemberFact {
  readonly id: bigint;
  readonly hostname: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly learner: boolean;
}

/** All of {@link ApplyMode}. */
export const applyModeNames = [
  "reboot",
  "auto",
  "no-reboot",
  "staged",
  "try",
] as const satisfies readonly ApplyMode[];

/** Their numbers. */
export const applyModes: Readonly<Record<ApplyMode, ApplyConfigurationRequest_Mode>> = {
  reboot: ApplyConfigurationRequest_Mode.REBOOT,
  auto: ApplyConfigurationRequest_Mode.AUTO,
  "no-reboot": ApplyConfigurationRequest_Mode.NO_REBOOT,
  staged: ApplyConfigurationRequest_Mode.STAGED,
  try: ApplyConfigurationRequest_Mode.TRY,
};

/** Numbers of what a reset wipes. */
export const wipeModes = {
  all: ResetRequest_WipeMode.ALL,
  "system-disk": ResetRequest_WipeMode.SYSTEM_DISK,
  "user-disks": ResetRequest_WipeMode.USER_DISKS,
} as const;

/** Numbers of the ways to reboot. */
export const rebootModes = {
  default: RebootRequest_Mode.DEFAULT,
  powercycle: RebootRequest_Mode.POWERCYCLE,
  force: RebootRequest_Mode.FORCE,
} as const;
