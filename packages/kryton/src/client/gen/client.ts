/**
 * A typed client of the machine API. Generated from its routes by `client/generate.ts`; do not edit.
 */
import { encodeQuery, encodeSegment, type CallOptions, type Exchange } from "../exchange.ts";
import type {
  ApiKeyList,
  AtlasConfig,
  AtlasResult,
  Capabilities,
  CloneMachine,
  ConsoleTarget,
  ConsoleTicket,
  CreateMachine,
  CreateWebhook,
  DeadLetterList,
  Diagnosis,
  Discovery,
  EventList,
  GoldenBuild,
  GoldenBuildList,
  Identity,
  ImageList,
  Job,
  JobList,
  LabBootstrap,
  Liveness,
  Machine,
  MachineList,
  MachineOperations,
  Operation,
  OperationList,
  ProjectList,
  PublishGoldenBuild,
  Readiness,
  Replay,
  ReplayRequest,
  Settings,
  SettingsTest,
  SettingsUpdate,
  Snapshot,
  SnapshotList,
  StartGoldenBuild,
  StorageConfig,
  StorageConfigUpdate,
  StorageInventory,
  StorageSetup,
  StorageSetupState,
  StorageSetupView,
  Summary,
  TakeSnapshot,
  UpdateMachine,
  Webhook,
  WebhookList,
} from "./schemas.ts";

/** The operations of the machine API. Failures are `KrytonClientError`s. */
export class KrytonClient {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  /** The process lives. */
  async getLiveness(options: CallOptions = {}): Promise<Liveness> {
    return this.#exchange.read({ method: "GET", path: `/healthz`, accepted: [200], options }, "Liveness");
  }

  /** Provider and store can be used. */
  async getReadiness(options: CallOptions = {}): Promise<Readiness> {
    return this.#exchange.read({ method: "GET", path: `/readyz`, accepted: [200,503], options }, "Readiness");
  }

  /** Who the caller is. */
  async whoAmI(options: CallOptions = {}): Promise<Identity> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/me`, accepted: [200], options }, "Identity");
  }

  /** Configured projects the caller can view. */
  async listProjects(options: CallOptions = {}): Promise<ProjectList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/projects`, accepted: [200], options }, "ProjectList");
  }

  /** What the provider can do. */
  async getCapabilities(options: CallOptions = {}): Promise<Capabilities> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/capabilities`, accepted: [200], options }, "Capabilities");
  }

  /** Whether this installation is fit for use. */
  async diagnose(options: CallOptions = {}): Promise<Diagnosis> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/doctor`, accepted: [200,503], options }, "Diagnosis");
  }

  /** Images by name, with their availability here. */
  async listImages(options: CallOptions = {}): Promise<ImageList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/images`, accepted: [200], options }, "ImageList");
  }

  /** The lab token, for a browser on the same machine, when lab auto-auth is on. */
  async labBootstrap(options: CallOptions = {}): Promise<LabBootstrap> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/lab/bootstrap`, accepted: [200], options }, "LabBootstrap");
  }

  /** Machines of a project, by id. */
  async listMachines(query: { project?: string | readonly (string)[]; limit?: number | readonly (number)[]; cursor?: string | readonly (string)[]; state?: "pending" | "provisioning" | "starting" | "running" | "stopping" | "stopped" | "paused" | "migrating" | "deleting" | "failed" | "unknown" | readonly ("pending" | "provisioning" | "starting" | "running" | "stopping" | "stopped" | "paused" | "migrating" | "deleting" | "failed" | "unknown")[]; label?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<MachineList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/machines${encodeQuery(query)}`, accepted: [200], options }, "MachineList");
  }

  /** Create a machine. */
  async createMachine(body: CreateMachine, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines`, accepted: [201], body, options }, "Machine");
  }

  /** A machine. */
  async getMachine(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/machines/${encodeSegment(id)}${encodeQuery(query)}`, accepted: [200], options }, "Machine");
  }

  /** Rename, label, resize, or set a new expiry. */
  async updateMachine(id: string, body: UpdateMachine, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "PATCH", path: `/api/v1/machines/${encodeSegment(id)}${encodeQuery(query)}`, accepted: [200], body, options }, "Machine");
  }

  /** Delete a machine. */
  async deleteMachine(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<void> {
    await this.#exchange.send({ method: "DELETE", path: `/api/v1/machines/${encodeSegment(id)}${encodeQuery(query)}`, accepted: [204], options });
  }

  /** Start a machine. */
  async startMachine(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/start${encodeQuery(query)}`, accepted: [200], options }, "Machine");
  }

  /** Stop a machine. */
  async stopMachine(id: string, query: { project?: string | readonly (string)[]; force?: boolean | readonly (boolean)[]; forceAfterSeconds?: number | readonly (number)[] } = {}, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/stop${encodeQuery(query)}`, accepted: [200], options }, "Machine");
  }

  /** Restart a machine. */
  async restartMachine(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/restart${encodeQuery(query)}`, accepted: [200], options }, "Machine");
  }

  /** Freeze a running machine. */
  async pauseMachine(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/pause${encodeQuery(query)}`, accepted: [200], options }, "Machine");
  }

  /** Let a paused machine go on. */
  async resumeMachine(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/resume${encodeQuery(query)}`, accepted: [200], options }, "Machine");
  }

  /** Create a machine with a copy of this one's disk. */
  async cloneMachine(id: string, body: CloneMachine, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Machine> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/clone${encodeQuery(query)}`, accepted: [201], body, options }, "Machine");
  }

  /** Counts and requested sizes of a project's machines. */
  async getSummary(query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Summary> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/summary${encodeQuery(query)}`, accepted: [200], options }, "Summary");
  }

  /** Take a snapshot. */
  async takeSnapshot(id: string, body: TakeSnapshot | undefined, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<Snapshot> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/snapshot${encodeQuery(query)}`, accepted: [201], body, options }, "Snapshot");
  }

  /** Snapshots of a machine, newest first. */
  async listSnapshots(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<SnapshotList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/machines/${encodeSegment(id)}/snapshots${encodeQuery(query)}`, accepted: [200], options }, "SnapshotList");
  }

  /** Put a machine back to a snapshot. */
  async restoreSnapshot(id: string, sid: string, query: { project?: string | readonly (string)[]; start?: boolean | readonly (boolean)[] } = {}, options: CallOptions = {}): Promise<Snapshot> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/snapshots/${encodeSegment(sid)}/restore${encodeQuery(query)}`, accepted: [202], options }, "Snapshot");
  }

  /** Delete a snapshot. */
  async deleteSnapshot(id: string, sid: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<void> {
    await this.#exchange.send({ method: "DELETE", path: `/api/v1/machines/${encodeSegment(id)}/snapshots/${encodeSegment(sid)}${encodeQuery(query)}`, accepted: [204], options });
  }

  /** Ten minutes of this machine's console for a browser. */
  async createConsoleTicket(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<ConsoleTicket> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/machines/${encodeSegment(id)}/console-ticket${encodeQuery(query)}`, accepted: [200], options }, "ConsoleTicket");
  }

  /** The console: a page, a proxied viewer, or where the VNC socket is. */
  async getConsole(id: string, query: { project?: string | readonly (string)[]; console_ticket?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<ConsoleTarget> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/machines/${encodeSegment(id)}/console${encodeQuery(query)}`, accepted: [200], options }, "ConsoleTarget");
  }

  /** Provider work of a project, newest first. */
  async listOperations(query: { project?: string | readonly (string)[]; limit?: number | readonly (number)[]; cursor?: string | readonly (string)[]; state?: "queued" | "running" | "succeeded" | "failed" | "cancelled" | readonly ("queued" | "running" | "succeeded" | "failed" | "cancelled")[] } = {}, options: CallOptions = {}): Promise<OperationList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/operations${encodeQuery(query)}`, accepted: [200], options }, "OperationList");
  }

  /** An operation, if the caller may see its project. */
  async getOperation(id: string, options: CallOptions = {}): Promise<Operation> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/operations/${encodeSegment(id)}`, accepted: [200], options }, "Operation");
  }

  /** Cancel an operation (operator of its project). */
  async cancelOperation(id: string, options: CallOptions = {}): Promise<Operation> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/operations/${encodeSegment(id)}/cancel`, accepted: [202], options }, "Operation");
  }

  /** Do what failed or was cancelled once more, as a new operation (operator of its project). */
  async retryOperation(id: string, options: CallOptions = {}): Promise<Operation> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/operations/${encodeSegment(id)}/retry`, accepted: [202], options }, "Operation");
  }

  /** The queue and the history of a machine's provider work, newest first. */
  async listMachineOperations(id: string, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<MachineOperations> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/machines/${encodeSegment(id)}/operations${encodeQuery(query)}`, accepted: [200], options }, "MachineOperations");
  }

  /** API keys of the keys file, without their digests, and when each was last used. */
  async listApiKeys(options: CallOptions = {}): Promise<ApiKeyList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/api-keys`, accepted: [200], options }, "ApiKeyList");
  }

  /** What happened, newest first. */
  async listEvents(query: { limit?: number | readonly (number)[]; project?: string | readonly (string)[]; type?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<EventList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/events${encodeQuery(query)}`, accepted: [200], options }, "EventList");
  }

  /** Webhooks and how their delivery goes. */
  async listWebhooks(options: CallOptions = {}): Promise<WebhookList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/webhooks`, accepted: [200], options }, "WebhookList");
  }

  /** Add a webhook; it gets what happens from now on. */
  async createWebhook(body: CreateWebhook, options: CallOptions = {}): Promise<Webhook> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/webhooks`, accepted: [201], body, options }, "Webhook");
  }

  /** Remove a webhook and its dead letters. */
  async deleteWebhook(id: string, options: CallOptions = {}): Promise<void> {
    await this.#exchange.send({ method: "DELETE", path: `/api/v1/webhooks/${encodeSegment(id)}`, accepted: [204], options });
  }

  /** Events that could not be delivered, oldest first. */
  async listDeadLetters(id: string, options: CallOptions = {}): Promise<DeadLetterList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/webhooks/${encodeSegment(id)}/dead-letters`, accepted: [200], options }, "DeadLetterList");
  }

  /** Deliver again what follows an event in the log; dead letters are dropped. */
  async replayWebhook(id: string, body: ReplayRequest, options: CallOptions = {}): Promise<Replay> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/webhooks/${encodeSegment(id)}/replay`, accepted: [202], body, options }, "Replay");
  }

  /** Settings, and facts about the installation. */
  async getSettings(options: CallOptions = {}): Promise<Settings> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/settings`, accepted: [200], options }, "Settings");
  }

  /** Change settings; all or nothing. */
  async updateSettings(body: SettingsUpdate, options: CallOptions = {}): Promise<Settings> {
    return this.#exchange.read({ method: "PUT", path: `/api/v1/settings`, accepted: [200], body, options }, "Settings");
  }

  /** Test the connections this installation lives on. */
  async testSettings(options: CallOptions = {}): Promise<SettingsTest> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/settings/test`, accepted: [200,503], options }, "SettingsTest");
  }

  /** Test Atlas, with the stored settings or those of the body. */
  async testAtlas(body: AtlasConfig | undefined, options: CallOptions = {}): Promise<AtlasResult> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/integrations/atlas/test`, accepted: [200,503], body, options }, "AtlasResult");
  }

  /** Storage classes and how fit they are for machines. */
  async getStorage(options: CallOptions = {}): Promise<StorageInventory> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/storage`, accepted: [200], options }, "StorageInventory");
  }

  /** The default storage class. */
  async getStorageConfig(options: CallOptions = {}): Promise<StorageConfig> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/storage/config`, accepted: [200], options }, "StorageConfig");
  }

  /** Choose the default storage class; empty clears it. */
  async setStorageConfig(body: StorageConfigUpdate, options: CallOptions = {}): Promise<StorageConfig> {
    return this.#exchange.read({ method: "PUT", path: `/api/v1/storage/config`, accepted: [200], body, options }, "StorageConfig");
  }

  /** How far a storage set-up is. */
  async getStorageSetup(options: CallOptions = {}): Promise<StorageSetupView> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/storage/setup`, accepted: [200], options }, "StorageSetupView");
  }

  /** Set a storage system up in the cluster; followed under GET. */
  async startStorageSetup(body: StorageSetup, options: CallOptions = {}): Promise<StorageSetupState> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/storage/setup`, accepted: [202], body, options }, "StorageSetupState");
  }

  /** Stop a running set-up; what it has installed stays. */
  async cancelStorageSetup(options: CallOptions = {}): Promise<StorageSetupState> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/storage/setup/cancel`, accepted: [202], options }, "StorageSetupState");
  }

  /** Golden builds, newest update first. */
  async listGoldenBuilds(options: CallOptions = {}): Promise<GoldenBuildList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/golden`, accepted: [200], options }, "GoldenBuildList");
  }

  /** Build a golden image. */
  async startGoldenBuild(body: StartGoldenBuild, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<GoldenBuild> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/golden${encodeQuery(query)}`, accepted: [202], body, options }, "GoldenBuild");
  }

  /** A golden build. */
  async getGoldenBuild(id: string, options: CallOptions = {}): Promise<GoldenBuild> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/golden/${encodeSegment(id)}`, accepted: [200], options }, "GoldenBuild");
  }

  /** The recorded evidence of a build. */
  async getGoldenPassport(id: string, options: CallOptions = {}): Promise<unknown> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/golden/${encodeSegment(id)}/passport`, accepted: [200], options }, undefined);
  }

  /** Publish a finished build to the cluster. */
  async publishGoldenBuild(id: string, body: PublishGoldenBuild | undefined, query: { project?: string | readonly (string)[] } = {}, options: CallOptions = {}): Promise<GoldenBuild> {
    return this.#exchange.read({ method: "POST", path: `/api/v1/golden/${encodeSegment(id)}/bootstrap${encodeQuery(query)}`, accepted: [202], body, options }, "GoldenBuild");
  }

  /** Long work under way, newest update first. */
  async listJobs(options: CallOptions = {}): Promise<JobList> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/jobs`, accepted: [200], options }, "JobList");
  }

  /** A job. */
  async getJob(id: string, options: CallOptions = {}): Promise<Job> {
    return this.#exchange.read({ method: "GET", path: `/api/v1/jobs/${encodeSegment(id)}`, accepted: [200], options }, "Job");
  }

  /** What this API offers and how to sign in. */
  async discover(options: CallOptions = {}): Promise<Discovery> {
    return this.#exchange.read({ method: "GET", path: `/api/v1`, accepted: [200], options }, "Discovery");
  }
}
