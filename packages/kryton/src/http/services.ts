/**
 * Everything a route may use.
 */
import type { Edges, OutboundClient } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import type { Authenticator } from "../auth/authenticator.ts";
import type { KeyUse } from "../auth/key-use.ts";
import type { Tickets } from "../auth/tickets.ts";
import type { ImageInventory } from "../catalog/inventory.ts";
import type { Config } from "../config/config.ts";
import type { Doctor } from "../doctor/doctor.ts";
import type { GoldenBuilds } from "../golden/builds.ts";
import type { EventLog } from "../events/event-log.ts";
import type { StreamHub } from "../events/stream-hub.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { OperationRunner } from "../operations/runner.ts";
import type { Provider } from "../provider-contract/contract.ts";
import type { MachineService } from "../service/machines.ts";
import type { OperationService } from "../service/operations.ts";
import type { SnapshotService } from "../service/snapshots.ts";
import type { RuntimeSettings } from "../settings/runtime-settings.ts";
import type { ClusterStorage } from "../storage-inventory/contract.ts";
import type { StorageSetup } from "../storage-setup/setup.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";

/** See the module comment. */
export interface Services {
  readonly store: Store;
  readonly edges: Edges;
  readonly config: Config;
  readonly provider: Provider;
  readonly authenticator: Authenticator;
  readonly keyUse: KeyUse;
  readonly tickets: Tickets;
  readonly inventory: ImageInventory;
  readonly machines: MachineService;
  readonly snapshots: SnapshotService;
  readonly operations: OperationService;
  readonly runner: OperationRunner;
  readonly events: EventLog;
  readonly streams: StreamHub;
  readonly doctor: Doctor;
  readonly settings: RuntimeSettings;
  readonly webhooks: Webhooks;
  readonly golden: GoldenBuilds;
  readonly outbound: OutboundClient;
  readonly metrics: Metrics;
  /** The storage of the cluster this server is connected to, when there is one. */
  readonly cluster: ClusterStorage | undefined;
  /** Sets storage up there; absent without a cluster of our own. */
  readonly setup: StorageSetup | undefined;
  /** Whether golden images can be built on this host. */
  goldenImages(): Promise<boolean>;
  projects(): readonly string[];
  defaultProject(): string;
}
