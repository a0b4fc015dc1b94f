/**
 * The schemas of the machine API. Generated from its routes by `client/generate.ts`; do not edit.
 */

/** Schema `ApiKey` of the machine API. */
export type ApiKey = { readonly name: string; readonly role: "viewer" | "operator" | "admin"; readonly projects: readonly (string)[]; readonly expiresAt?: string | undefined; readonly lastUsedAt?: string | undefined };

/** Schema `ApiKeyList` of the machine API. */
export type ApiKeyList = { readonly items: readonly (ApiKey)[] };

/** Schema `AtlasConfig` of the machine API. */
export type AtlasConfig = { readonly enabled?: boolean | undefined; readonly baseUrl?: string | undefined; readonly token?: string | undefined; readonly product?: string | undefined; readonly preferAtlas?: boolean | undefined };

/** Schema `AtlasResult` of the machine API. */
export type AtlasResult = { readonly healthy: boolean; readonly configured: boolean; readonly baseUrl: string; readonly product: string; readonly probes: readonly (Probe)[]; readonly storageClasses?: readonly (string)[] | undefined; readonly testedAt: string };

/** Schema `BlockDevice` of the machine API. */
export type BlockDevice = { readonly name: string; readonly path: string; readonly size?: string | undefined; readonly model?: string | undefined; readonly mountpoint?: string | undefined; readonly recommended?: boolean | undefined; readonly blocked?: boolean | undefined; readonly blockReason?: string | undefined };

/** Schema `Capabilities` of the machine API. */
export type Capabilities = { readonly provider: string; readonly snapshots: boolean; readonly networks: boolean; readonly ttl: boolean; readonly liveMigration: boolean; readonly console: boolean; readonly goldenImages: boolean; readonly restart: boolean; readonly pause: boolean; readonly forceStop: boolean; readonly resize: boolean; readonly clone: boolean };

/** Schema `CloneMachine` of the machine API. */
export type CloneMachine = { readonly name: string; readonly ttlMinutes?: number | undefined; readonly labels?: { readonly [key: string]: string } | undefined };

/** Schema `ConsoleTarget` of the machine API. */
export type ConsoleTarget = { readonly kind: "vnc"; readonly websocketUrl: string; readonly namespace: string; readonly name: string };

/** Schema `ConsoleTicket` of the machine API. */
export type ConsoleTicket = { readonly ticket: string; readonly expiresAt: string };

/** Schema `CreateMachine` of the machine API. */
export type CreateMachine = { readonly project?: string | undefined; readonly name: string; readonly image: string; readonly initialization?: { readonly username?: string | undefined; readonly sshAuthorizedKeys?: readonly (string)[] | undefined } | undefined; readonly compute: { readonly cpu: number; readonly memoryMiB: number }; readonly disk: { readonly sizeGiB: number; readonly storageClass?: string | undefined; readonly volumeMode?: string | undefined }; readonly network?: { readonly networkId?: string | undefined } | undefined; readonly ttlMinutes?: number | undefined; readonly labels?: { readonly [key: string]: string } | undefined; readonly dockur?: DockurOptions | undefined };

/** Schema `CreateWebhook` of the machine API. */
export type CreateWebhook = { readonly url: string; readonly secret?: string | undefined; readonly types?: readonly (string)[] | undefined; readonly projects?: readonly (string)[] | undefined };

/** Schema `DeadLetter` of the machine API. */
export type DeadLetter = { readonly eventId: string; readonly type: string; readonly subject?: string | undefined; readonly attempts: number; readonly lastError: string; readonly at: string; readonly event?: unknown | undefined };

/** Schema `DeadLetterList` of the machine API. */
export type DeadLetterList = { readonly items: readonly (DeadLetter)[] };

/** Schema `Diagnosis` of the machine API. */
export type Diagnosis = { readonly provider: string; readonly healthy: boolean; readonly findings: readonly (Finding)[] };

/** Schema `Discovery` of the machine API. */
export type Discovery = { readonly name: string; readonly version: string; readonly product: string; readonly description: string; readonly provider: string; readonly openapi: string; readonly basePath: string; readonly auth: { readonly mode: string; readonly schemes: readonly (string)[]; readonly header: string }; readonly health: { readonly live: string; readonly ready: string; readonly metrics: string }; readonly endpoints: readonly ({ readonly method: string; readonly path: string; readonly group: string; readonly description: string })[] };

/** Schema `DockurOptions` of the machine API. */
export type DockurOptions = { readonly username?: string | undefined; readonly password?: string | undefined; readonly hostname?: string | undefined; readonly language?: string | undefined; readonly region?: string | undefined; readonly keyboard?: string | undefined; readonly productKey?: string | undefined; readonly domain?: string | undefined; readonly domainOu?: string | undefined; readonly edition?: string | undefined; readonly command?: string | undefined; readonly autologin?: boolean | undefined; readonly audio?: boolean | undefined; readonly secureBoot?: boolean | undefined; readonly sharedDir?: string | undefined; readonly oemDir?: string | undefined; readonly customIso?: string | undefined; readonly extraDisksGiB?: readonly (number)[] | undefined };

/** Schema `Error` of the machine API. */
export type Error = { readonly error: { readonly code: string; readonly message: string; readonly hint?: string | undefined; readonly requestId?: string | undefined } };

/** Schema `Event` of the machine API. */
export type Event = { readonly specversion: "1.0"; readonly id: string; readonly source: string; readonly type: string; readonly subject?: string | undefined; readonly time: string; readonly datacontenttype: "application/json"; readonly data?: { readonly [key: string]: unknown } | undefined };

/** Schema `EventList` of the machine API. */
export type EventList = { readonly items: readonly (Event)[]; readonly window: { readonly oldestId?: string | undefined; readonly newestId?: string | undefined; readonly retention: number } };

/** Schema `Finding` of the machine API. */
export type Finding = { readonly check: string; readonly status: "pass" | "warn" | "fail"; readonly message: string; readonly hint?: string | undefined };

/** Schema `GoldenBuild` of the machine API. */
export type GoldenBuild = { readonly id: string; readonly version: string; readonly imageId: string; readonly state: "idle" | "starting" | "installing" | "sysprep" | "capturing" | "ready" | "failed"; readonly phase?: string | undefined; readonly progressPercent: number; readonly message: string; readonly consoleUrl?: string | undefined; readonly outputPath?: string | undefined; readonly sha256?: string | undefined; readonly startedAt: string; readonly updatedAt: string; readonly error?: string | undefined; readonly bootstrapState?: "running" | "ready" | "failed" | undefined; readonly bootstrapMessage?: string | undefined; readonly dataSource?: string | undefined; readonly certified?: boolean | undefined; readonly validationScore?: number | undefined; readonly passportPath?: string | undefined };

/** Schema `GoldenBuildList` of the machine API. */
export type GoldenBuildList = { readonly items: readonly (GoldenBuild)[] };

/** Schema `Identity` of the machine API. */
export type Identity = { readonly name: string; readonly role: "viewer" | "operator" | "admin"; readonly projects: readonly (string)[] };

/** Schema `Image` of the machine API. */
export type Image = { readonly id: string; readonly name: string; readonly version: string; readonly family: string; readonly description: string; readonly os?: "windows" | "linux" | undefined; readonly architecture?: string | undefined; readonly firmware?: "efi" | "bios" | undefined; readonly defaultUser?: string | undefined; readonly sourceUrl?: string | undefined; readonly providers?: readonly (string)[] | undefined; readonly minCpu: number; readonly minMemoryMiB: number; readonly defaultDiskGiB: number; readonly dockurVersion?: string | undefined; readonly tags?: readonly (string)[] | undefined; readonly availability?: "stored" | "on-demand" | "catalog" | undefined; readonly storageSource?: "cdi" | "dockur" | "golden" | "demo" | "verified" | undefined; readonly storageNamespace?: string | undefined; readonly storagePath?: string | undefined; readonly ready: boolean; readonly certified?: boolean | undefined; readonly validationScore?: number | undefined; readonly passportBuildId?: string | undefined };

/** Schema `ImageList` of the machine API. */
export type ImageList = { readonly items: readonly (Image)[] };

/** Schema `Job` of the machine API. */
export type Job = { readonly id: string; readonly kind: "machine" | "golden" | "storage"; readonly name: string; readonly state: "running" | "succeeded" | "failed"; readonly progressPercent: number; readonly message?: string | undefined; readonly consoleUrl?: string | undefined; readonly project?: string | undefined; readonly steps: readonly ({ readonly id: string; readonly label: string; readonly state: "pending" | "active" | "done" | "failed"; readonly detail?: string | undefined })[]; readonly logs: readonly ({ readonly time: string; readonly level: "info" | "ok" | "warn" | "err"; readonly message: string })[]; readonly startedAt: string; readonly updatedAt: string };

/** Schema `JobList` of the machine API. */
export type JobList = { readonly items: readonly (Job)[] };

/** Schema `LabBootstrap` of the machine API. */
export type LabBootstrap = { readonly autoAuth: boolean; readonly token?: string | undefined };

/** Schema `Liveness` of the machine API. */
export type Liveness = { readonly status: "ok" };

/** Schema `Machine` of the machine API. */
export type Machine = { readonly id: string; readonly project: string; readonly provider: "demo" | "dockur" | "libvirt" | "kubevirt"; readonly state: "pending" | "provisioning" | "starting" | "running" | "stopping" | "stopped" | "paused" | "migrating" | "deleting" | "failed" | "unknown"; readonly spec: MachineSpec; readonly providerRef: { readonly provider: string; readonly namespace?: string | undefined; readonly name: string }; readonly ipAddresses?: readonly (string)[] | undefined; readonly consoleUrl?: string | undefined; readonly rdpHost?: string | undefined; readonly rdpPort?: number | undefined; readonly rdpUsername?: string | undefined; readonly progressPercent?: number | undefined; readonly message?: string | undefined; readonly conditions?: readonly ({ readonly type: string; readonly status: string; readonly reason?: string | undefined; readonly message?: string | undefined })[] | undefined; readonly createdAt: string; readonly updatedAt: string; readonly expiresAt?: string | undefined; readonly operation?: { readonly id: string; readonly kind: string } | undefined };

/** Schema `MachineList` of the machine API. */
export type MachineList = { readonly items: readonly (Machine)[]; readonly nextCursor?: string | undefined };

/** Schema `MachineOperations` of the machine API. */
export type MachineOperations = { readonly items: readonly (Operation)[] };

/** Schema `MachineSpec` of the machine API. */
export type MachineSpec = { readonly name: string; readonly image: string; readonly initialization?: { readonly username?: string | undefined; readonly sshAuthorizedKeys?: readonly (string)[] | undefined } | undefined; readonly compute: { readonly cpu: number; readonly memoryMiB: number }; readonly disk: { readonly sizeGiB: number; readonly storageClass?: string | undefined; readonly volumeMode?: string | undefined }; readonly network?: { readonly networkId?: string | undefined } | undefined; readonly ttlMinutes?: number | undefined; readonly labels?: { readonly [key: string]: string } | undefined; readonly dockur?: DockurOptions | undefined };

/** Schema `Operation` of the machine API. */
export type Operation = { readonly id: string; readonly kind: "create" | "clone" | "start" | "stop" | "restart" | "pause" | "resume" | "resize" | "delete" | "snapshot" | "snapshot-restore" | "snapshot-delete"; readonly machineId: string; readonly machineName: string; readonly project: string; readonly state: "queued" | "running" | "succeeded" | "failed" | "cancelled"; readonly requestedBy: string; readonly attempt: number; readonly progressPercent: number; readonly phase?: string | undefined; readonly message?: string | undefined; readonly error?: { readonly code: string; readonly message: string; readonly retryClass: "retry" | "retry-elsewhere" | "needs-person" | "fatal" } | undefined; readonly cancelRequested?: boolean | undefined; readonly notBefore?: string | undefined; readonly createdAt: string; readonly startedAt?: string | undefined; readonly updatedAt: string; readonly finishedAt?: string | undefined; readonly parameters: { readonly force?: boolean | undefined; readonly forceAfterSeconds?: number | undefined; readonly start?: boolean | undefined; readonly snapshotId?: string | undefined; readonly snapshotName?: string | undefined; readonly sourceMachineId?: string | undefined; readonly reason?: "request" | "expired" | undefined; readonly cpu?: number | undefined; readonly memoryMiB?: number | undefined; readonly diskGiB?: number | undefined }; readonly avoidReplica?: string | undefined };

/** Schema `OperationList` of the machine API. */
export type OperationList = { readonly items: readonly (Operation)[]; readonly nextCursor?: string | undefined };

/** Schema `Probe` of the machine API. */
export type Probe = { readonly name: string; readonly status: "pass" | "warn" | "fail"; readonly message: string; readonly hint?: string | undefined; readonly latencyMs?: number | undefined };

/** Schema `ProjectList` of the machine API. */
export type ProjectList = { readonly items: readonly (string)[]; readonly defaultProject?: string | undefined };

/** Schema `PublishGoldenBuild` of the machine API. */
export type PublishGoldenBuild = { readonly [key: string]: unknown };

/** Schema `Readiness` of the machine API. */
export type Readiness = { readonly provider: string; readonly status: "ready" | "not-ready" };

/** Schema `Replay` of the machine API. */
export type Replay = { readonly after: string };

/** Schema `ReplayRequest` of the machine API. */
export type ReplayRequest = { readonly after: string };

/** Schema `Settings` of the machine API. */
export type Settings = { readonly runtime: { readonly defaultProject: string; readonly imageNamespace: string; readonly eventWebhookUrl: string; readonly storageClass: string; readonly atlas: { readonly enabled: boolean; readonly baseUrl: string; readonly product: string; readonly preferAtlas?: boolean | undefined }; readonly atlasTokenSet: boolean }; readonly system: { readonly provider: string; readonly authMode: string; readonly projects: readonly (string)[]; readonly defaultProjectEnv: string; readonly imageNamespaceEnv: string; readonly namespacePrefix: string; readonly kubernetesEndpoint?: string | undefined; readonly kubernetesConnected: boolean; readonly scriptsAvailable: boolean; readonly allowInsecure: boolean; readonly storageConfigFile?: string | undefined; readonly settingsConfigFile?: string | undefined }; readonly doctor: Diagnosis; readonly editable: readonly (string)[] };

/** Schema `SettingsTest` of the machine API. */
export type SettingsTest = { readonly healthy: boolean; readonly doctor: Diagnosis; readonly connection: { readonly healthy: boolean; readonly probes: readonly (Probe)[]; readonly testedAt: string } };

/** Schema `SettingsUpdate` of the machine API. */
export type SettingsUpdate = { readonly storageClass?: string | undefined; readonly defaultProject?: string | undefined; readonly imageNamespace?: string | undefined; readonly eventWebhookUrl?: string | undefined; readonly atlas?: AtlasConfig | undefined };

/** Schema `Snapshot` of the machine API. */
export type Snapshot = { readonly id: string; readonly project: string; readonly machineId: string; readonly name: string; readonly state: "creating" | "ready" | "failed" | "restoring" | "restored"; readonly message?: string | undefined; readonly createdAt: string };

/** Schema `SnapshotClass` of the machine API. */
export type SnapshotClass = { readonly name: string; readonly driver: string; readonly default?: boolean | undefined };

/** Schema `SnapshotList` of the machine API. */
export type SnapshotList = { readonly items: readonly (Snapshot)[] };

/** Schema `StartGoldenBuild` of the machine API. */
export type StartGoldenBuild = { readonly imageId?: string | undefined; readonly version?: string | undefined; readonly auto?: boolean | undefined };

/** Schema `StorageClass` of the machine API. */
export type StorageClass = { readonly name: string; readonly provisioner: string; readonly default?: boolean | undefined; readonly allowVolumeExpansion?: boolean | undefined; readonly volumeBindingMode?: string | undefined; readonly backend: string; readonly snapshotCapable: boolean; readonly snapshotClass?: string | undefined; readonly recommended?: boolean | undefined };

/** Schema `StorageConfig` of the machine API. */
export type StorageConfig = { readonly storageClass: string };

/** Schema `StorageConfigUpdate` of the machine API. */
export type StorageConfigUpdate = { readonly storageClass: string };

/** Schema `StorageInventory` of the machine API. */
export type StorageInventory = { readonly storageClasses: readonly (StorageClass)[]; readonly snapshotClasses: readonly (SnapshotClass)[]; readonly config: StorageConfig; readonly provider: string; readonly setup?: StorageSetupState | undefined; readonly blockDevices?: readonly (BlockDevice)[] | undefined; readonly scriptsAvailable: boolean; readonly backendsInstalled?: { readonly [key: string]: boolean } | undefined; readonly atlas?: { readonly enabled: boolean; readonly baseUrl: string; readonly healthy: boolean; readonly product: string; readonly storageClasses: readonly (string)[] } | undefined };

/** Schema `StorageSetup` of the machine API. */
export type StorageSetup = { readonly backend: "longhorn" | "rook-ceph"; readonly rookMode?: "lab" | "devices" | "pool-only" | "device" | undefined; readonly device?: string | undefined; readonly wipeDevice?: boolean | undefined; readonly setDefault?: boolean | undefined };

/** Schema `StorageSetupState` of the machine API. */
export type StorageSetupState = { readonly id: string; readonly backend: string; readonly rookMode?: string | undefined; readonly device?: string | undefined; readonly state: "idle" | "running" | "succeeded" | "failed"; readonly message?: string | undefined; readonly error?: string | undefined; readonly storageClass?: string | undefined; readonly startedAt: string; readonly updatedAt: string };

/** Schema `StorageSetupView` of the machine API. */
export type StorageSetupView = { readonly state: string; readonly setup: StorageSetupState; readonly logs: readonly (string)[] };

/** Schema `Summary` of the machine API. */
export type Summary = { readonly project: string; readonly provider: string; readonly machines: number; readonly running: number; readonly stopped: number; readonly attention: number; readonly cpu: number; readonly memoryMiB: number; readonly diskGiB: number; readonly quota?: { readonly machines?: number | undefined; readonly cpu?: number | undefined; readonly memoryMiB?: number | undefined; readonly diskGiB?: number | undefined } | undefined };

/** Schema `TakeSnapshot` of the machine API. */
export type TakeSnapshot = { readonly name?: string | undefined };

/** Schema `UpdateMachine` of the machine API. */
export type UpdateMachine = { readonly name?: string | undefined; readonly compute?: { readonly cpu?: number | undefined; readonly memoryMiB?: number | undefined } | undefined; readonly disk?: { readonly sizeGiB?: number | undefined } | undefined; readonly ttlMinutes?: number | undefined; readonly labels?: { readonly [key: string]: string } | undefined };

/** Schema `Webhook` of the machine API. */
export type Webhook = { readonly id: string; readonly url: string; readonly types: readonly (string)[]; readonly projects: readonly (string)[]; readonly signed: boolean; readonly createdAt?: string | undefined; readonly delivery: { readonly eventId: string; readonly delivered: number; readonly failed: number; readonly deadLetters: number; readonly lastStatus?: number | undefined; readonly lastError?: string | undefined; readonly lastAttemptAt?: string | undefined; readonly lastDeliveredAt?: string | undefined; readonly missed?: boolean | undefined } };

/** Schema `WebhookList` of the machine API. */
export type WebhookList = { readonly items: readonly (Webhook)[] };

/** Every named schema, by name. */
export interface Schemas {
  readonly ApiKey: ApiKey;
  readonly ApiKeyList: ApiKeyList;
  readonly AtlasConfig: AtlasConfig;
  readonly AtlasResult: AtlasResult;
  readonly BlockDevice: BlockDevice;
  readonly Capabilities: Capabilities;
  readonly CloneMachine: CloneMachine;
  readonly ConsoleTarget: ConsoleTarget;
  readonly ConsoleTicket: ConsoleTicket;
  readonly CreateMachine: CreateMachine;
  readonly CreateWebhook: CreateWebhook;
  readonly DeadLetter: DeadLetter;
  readonly DeadLetterList: DeadLetterList;
  readonly Diagnosis: Diagnosis;
  readonly Discovery: Discovery;
  readonly DockurOptions: DockurOptions;
  readonly Error: Error;
  readonly Event: Event;
  readonly EventList: EventList;
  readonly Finding: Finding;
  readonly GoldenBuild: GoldenBuild;
  readonly GoldenBuildList: GoldenBuildList;
  readonly Identity: Identity;
  readonly Image: Image;
  readonly ImageList: ImageList;
  readonly Job: Job;
  readonly JobList: JobList;
  readonly LabBootstrap: LabBootstrap;
  readonly Liveness: Liveness;
  readonly Machine: Machine;
  readonly MachineList: MachineList;
  readonly MachineOperations: MachineOperations;
  readonly MachineSpec: MachineSpec;
  readonly Operation: Operation;
  readonly OperationList: OperationList;
  readonly Probe: Probe;
  readonly ProjectList: ProjectList;
  readonly PublishGoldenBuild: PublishGoldenBuild;
  readonly Readiness: Readiness;
  readonly Replay: Replay;
  readonly ReplayRequest: ReplayRequest;
  readonly Settings: Settings;
  readonly SettingsTest: SettingsTest;
  readonly SettingsUpdate: SettingsUpdate;
  readonly Snapshot: Snapshot;
  readonly SnapshotClass: SnapshotClass;
  readonly SnapshotList: SnapshotList;
  readonly StartGoldenBuild: StartGoldenBuild;
  readonly StorageClass: StorageClass;
  readonly StorageConfig: StorageConfig;
  readonly StorageConfigUpdate: StorageConfigUpdate;
  readonly StorageInventory: StorageInventory;
  readonly StorageSetup: StorageSetup;
  readonly StorageSetupState: StorageSetupState;
  readonly StorageSetupView: StorageSetupView;
  readonly Summary: Summary;
  readonly TakeSnapshot: TakeSnapshot;
  readonly UpdateMachine: UpdateMachine;
  readonly Webhook: Webhook;
  readonly WebhookList: WebhookList;
}

/** The schemas as the document has them. */
export const schemas: Readonly<Record<keyof Schemas, unknown>> = {
  "ApiKey": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "role": {
        "type": "string",
        "enum": [
          "viewer",
          "operator",
          "admin"
        ]
      },
      "projects": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "expiresAt": {
        "type": "string",
        "format": "date-time"
      },
      "lastUsedAt": {
        "type": "string",
        "format": "date-time",
        "description": "Exact to about a minute; absent: never."
      }
    },
    "required": [
      "name",
      "role",
      "projects"
    ]
  },
  "ApiKeyList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/ApiKey"
        }
      }
    },
    "required": [
      "items"
    ]
  },
  "AtlasConfig": {
    "type": "object",
    "properties": {
      "enabled": {
        "type": "boolean"
      },
      "baseUrl": {
        "type": "string",
        "maxLength": 2048
      },
      "token": {
        "type": "string",
        "maxLength": 4096,
        "writeOnly": true
      },
      "product": {
        "type": "string",
        "maxLength": 253
      },
      "preferAtlas": {
        "type": "boolean"
      }
    },
    "additionalProperties": false
  },
  "AtlasResult": {
    "type": "object",
    "properties": {
      "healthy": {
        "type": "boolean"
      },
      "configured": {
        "type": "boolean"
      },
      "baseUrl": {
        "type": "string"
      },
      "product": {
        "type": "string"
      },
      "probes": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Probe"
        }
      },
      "storageClasses": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "testedAt": {
        "type": "string"
      }
    },
    "required": [
      "healthy",
      "configured",
      "baseUrl",
      "product",
      "probes",
      "testedAt"
    ]
  },
  "BlockDevice": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "path": {
        "type": "string"
      },
      "size": {
        "type": "string"
      },
      "model": {
        "type": "string"
      },
      "mountpoint": {
        "type": "string"
      },
      "recommended": {
        "type": "boolean"
      },
      "blocked": {
        "type": "boolean"
      },
      "blockReason": {
        "type": "string"
      }
    },
    "required": [
      "name",
      "path"
    ]
  },
  "Capabilities": {
    "type": "object",
    "properties": {
      "provider": {
        "type": "string"
      },
      "snapshots": {
        "type": "boolean"
      },
      "networks": {
        "type": "boolean"
      },
      "ttl": {
        "type": "boolean"
      },
      "liveMigration": {
        "type": "boolean"
      },
      "console": {
        "type": "boolean"
      },
      "goldenImages": {
        "type": "boolean"
      },
      "restart": {
        "type": "boolean"
      },
      "pause": {
        "type": "boolean"
      },
      "forceStop": {
        "type": "boolean"
      },
      "resize": {
        "type": "boolean"
      },
      "clone": {
        "type": "boolean"
      }
    },
    "required": [
      "provider",
      "snapshots",
      "networks",
      "ttl",
      "liveMigration",
      "console",
      "goldenImages",
      "restart",
      "pause",
      "forceStop",
      "resize",
      "clone"
    ]
  },
  "CloneMachine": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
      },
      "ttlMinutes": {
        "type": "integer",
        "minimum": 0,
        "maximum": 43200
      },
      "labels": {
        "type": "object",
        "additionalProperties": {
          "type": "string",
          "pattern": "^[A-Za-z0-9_.:/ -]{0,256}$"
        },
        "maxProperties": 64
      }
    },
    "required": [
      "name"
    ],
    "additionalProperties": false
  },
  "ConsoleTarget": {
    "type": "object",
    "properties": {
      "kind": {
        "type": "string",
        "enum": [
          "vnc"
        ]
      },
      "websocketUrl": {
        "type": "string"
      },
      "namespace": {
        "type": "string"
      },
      "name": {
        "type": "string"
      }
    },
    "required": [
      "kind",
      "websocketUrl",
      "namespace",
      "name"
    ]
  },
  "ConsoleTicket": {
    "type": "object",
    "properties": {
      "ticket": {
        "type": "string"
      },
      "expiresAt": {
        "type": "string"
      }
    },
    "required": [
      "ticket",
      "expiresAt"
    ]
  },
  "CreateMachine": {
    "type": "object",
    "properties": {
      "project": {
        "type": "string",
        "description": "Default: the default project."
      },
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
      },
      "image": {
        "type": "string",
        "pattern": "^[A-Za-z0-9_.:/-]{1,128}$"
      },
      "initialization": {
        "type": "object",
        "properties": {
          "username": {
            "type": "string"
          },
          "sshAuthorizedKeys": {
            "type": "array",
            "items": {
              "type": "string",
              "maxLength": 16384
            },
            "maxItems": 32
          }
        },
        "additionalProperties": false
      },
      "compute": {
        "type": "object",
        "properties": {
          "cpu": {
            "type": "integer",
            "minimum": 1,
            "maximum": 256
          },
          "memoryMiB": {
            "type": "integer",
            "minimum": 512,
            "maximum": 2097152
          }
        },
        "required": [
          "cpu",
          "memoryMiB"
        ],
        "additionalProperties": false
      },
      "disk": {
        "type": "object",
        "properties": {
          "sizeGiB": {
            "type": "integer",
            "minimum": 16,
            "maximum": 65536
          },
          "storageClass": {
            "type": "string",
            "maxLength": 253
          },
          "volumeMode": {
            "type": "string",
            "maxLength": 32
          }
        },
        "required": [
          "sizeGiB"
        ],
        "additionalProperties": false
      },
      "network": {
        "type": "object",
        "properties": {
          "networkId": {
            "type": "string",
            "maxLength": 253
          }
        },
        "default": {},
        "additionalProperties": false
      },
      "ttlMinutes": {
        "type": "integer",
        "minimum": 0,
        "maximum": 43200
      },
      "labels": {
        "type": "object",
        "additionalProperties": {
          "type": "string",
          "pattern": "^[A-Za-z0-9_.:/ -]{0,256}$"
        },
        "maxProperties": 64
      },
      "dockur": {
        "$ref": "#/components/schemas/DockurOptions"
      }
    },
    "required": [
      "name",
      "image",
      "compute",
      "disk"
    ],
    "additionalProperties": false
  },
  "CreateWebhook": {
    "type": "object",
    "properties": {
      "url": {
        "type": "string",
        "minLength": 1,
        "maxLength": 2048
      },
      "secret": {
        "type": "string",
        "maxLength": 1024,
        "writeOnly": true
      },
      "types": {
        "type": "array",
        "items": {
          "type": "string",
          "maxLength": 128
        },
        "maxItems": 64
      },
      "projects": {
        "type": "array",
        "items": {
          "type": "string",
          "maxLength": 63
        },
        "maxItems": 256
      }
    },
    "required": [
      "url"
    ],
    "additionalProperties": false
  },
  "DeadLetter": {
    "type": "object",
    "properties": {
      "eventId": {
        "type": "string"
      },
      "type": {
        "type": "string"
      },
      "subject": {
        "type": "string"
      },
      "attempts": {
        "type": "integer"
      },
      "lastError": {
        "type": "string"
      },
      "at": {
        "type": "string",
        "format": "date-time"
      },
      "event": {}
    },
    "required": [
      "eventId",
      "type",
      "attempts",
      "lastError",
      "at"
    ]
  },
  "DeadLetterList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/DeadLetter"
        }
      }
    },
    "required": [
      "items"
    ]
  },
  "Diagnosis": {
    "type": "object",
    "properties": {
      "provider": {
        "type": "string"
      },
      "healthy": {
        "type": "boolean"
      },
      "findings": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Finding"
        }
      }
    },
    "required": [
      "provider",
      "healthy",
      "findings"
    ]
  },
  "Discovery": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "version": {
        "type": "string"
      },
      "product": {
        "type": "string"
      },
      "description": {
        "type": "string"
      },
      "provider": {
        "type": "string"
      },
      "openapi": {
        "type": "string"
      },
      "basePath": {
        "type": "string"
      },
      "auth": {
        "type": "object",
        "properties": {
          "mode": {
            "type": "string"
          },
          "schemes": {
            "type": "array",
            "items": {
              "type": "string"
            }
          },
          "header": {
            "type": "string"
          }
        },
        "required": [
          "mode",
          "schemes",
          "header"
        ]
      },
      "health": {
        "type": "object",
        "properties": {
          "live": {
            "type": "string"
          },
          "ready": {
            "type": "string"
          },
          "metrics": {
            "type": "string"
          }
        },
        "required": [
          "live",
          "ready",
          "metrics"
        ]
      },
      "endpoints": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "method": {
              "type": "string"
            },
            "path": {
              "type": "string"
            },
            "group": {
              "type": "string"
            },
            "description": {
              "type": "string"
            }
          },
          "required": [
            "method",
            "path",
            "group",
            "description"
          ]
        }
      }
    },
    "required": [
      "name",
      "version",
      "product",
      "description",
      "provider",
      "openapi",
      "basePath",
      "auth",
      "health",
      "endpoints"
    ]
  },
  "DockurOptions": {
    "type": "object",
    "properties": {
      "username": {
        "type": "string",
        "maxLength": 64
      },
      "password": {
        "type": "string",
        "maxLength": 128,
        "writeOnly": true
      },
      "hostname": {
        "type": "string",
        "maxLength": 63
      },
      "language": {
        "type": "string",
        "maxLength": 64
      },
      "region": {
        "type": "string",
        "maxLength": 32
      },
      "keyboard": {
        "type": "string",
        "maxLength": 32
      },
      "productKey": {
        "type": "string",
        "maxLength": 64,
        "writeOnly": true
      },
      "domain": {
        "type": "string",
        "maxLength": 253
      },
      "domainOu": {
        "type": "string",
        "maxLength": 512
      },
      "edition": {
        "type": "string",
        "maxLength": 256
      },
      "command": {
        "type": "string",
        "maxLength": 4096
      },
      "autologin": {
        "type": "boolean"
      },
      "audio": {
        "type": "boolean"
      },
      "secureBoot": {
        "type": "boolean"
      },
      "sharedDir": {
        "type": "string",
        "maxLength": 1024
      },
      "oemDir": {
        "type": "string",
        "maxLength": 1024
      },
      "customIso": {
        "type": "string",
        "maxLength": 2048
      },
      "extraDisksGiB": {
        "type": "array",
        "items": {
          "type": "integer",
          "minimum": 1,
          "maximum": 65536
        },
        "maxItems": 3
      }
    },
    "additionalProperties": false
  },
  "Error": {
    "type": "object",
    "properties": {
      "error": {
        "type": "object",
        "properties": {
          "code": {
            "type": "string"
          },
          "message": {
            "type": "string"
          },
          "hint": {
            "type": "string"
          },
          "requestId": {
            "type": "string"
          }
        },
        "required": [
          "code",
          "message"
        ]
      }
    },
    "required": [
      "error"
    ]
  },
  "Event": {
    "type": "object",
    "properties": {
      "specversion": {
        "type": "string",
        "enum": [
          "1.0"
        ]
      },
      "id": {
        "type": "string",
        "format": "uuid"
      },
      "source": {
        "type": "string"
      },
      "type": {
        "type": "string"
      },
      "subject": {
        "type": "string"
      },
      "time": {
        "type": "string",
        "format": "date-time"
      },
      "datacontenttype": {
        "type": "string",
        "enum": [
          "application/json"
        ]
      },
      "data": {
        "type": "object",
        "additionalProperties": {}
      }
    },
    "required": [
      "specversion",
      "id",
      "source",
      "type",
      "time",
      "datacontenttype"
    ]
  },
  "EventList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Event"
        }
      },
      "window": {
        "type": "object",
        "properties": {
          "oldestId": {
            "type": "string"
          },
          "newestId": {
            "type": "string"
          },
          "retention": {
            "type": "integer"
          }
        },
        "required": [
          "retention"
        ],
        "description": "What the log still holds: the oldest and newest visible event, and how many are kept."
      }
    },
    "required": [
      "items",
      "window"
    ]
  },
  "Finding": {
    "type": "object",
    "properties": {
      "check": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "pass",
          "warn",
          "fail"
        ]
      },
      "message": {
        "type": "string"
      },
      "hint": {
        "type": "string"
      }
    },
    "required": [
      "check",
      "status",
      "message"
    ]
  },
  "GoldenBuild": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string",
        "pattern": "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,128}$"
      },
      "version": {
        "type": "string"
      },
      "imageId": {
        "type": "string"
      },
      "state": {
        "type": "string",
        "enum": [
          "idle",
          "starting",
          "installing",
          "sysprep",
          "capturing",
          "ready",
          "failed"
        ]
      },
      "phase": {
        "type": "string"
      },
      "progressPercent": {
        "type": "integer"
      },
      "message": {
        "type": "string"
      },
      "consoleUrl": {
        "type": "string"
      },
      "outputPath": {
        "type": "string"
      },
      "sha256": {
        "type": "string"
      },
      "startedAt": {
        "type": "string"
      },
      "updatedAt": {
        "type": "string"
      },
      "error": {
        "type": "string"
      },
      "bootstrapState": {
        "type": "string",
        "enum": [
          "running",
          "ready",
          "failed"
        ]
      },
      "bootstrapMessage": {
        "type": "string"
      },
      "dataSource": {
        "type": "string"
      },
      "certified": {
        "type": "boolean"
      },
      "validationScore": {
        "type": "number",
        "minimum": 0,
        "maximum": 100
      },
      "passportPath": {
        "type": "string"
      }
    },
    "required": [
      "id",
      "version",
      "imageId",
      "state",
      "progressPercent",
      "message",
      "startedAt",
      "updatedAt"
    ]
  },
  "GoldenBuildList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/GoldenBuild"
        }
      }
    },
    "required": [
      "items"
    ]
  },
  "Identity": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "role": {
        "type": "string",
        "enum": [
          "viewer",
          "operator",
          "admin"
        ]
      },
      "projects": {
        "type": "array",
        "items": {
          "type": "string"
        }
      }
    },
    "required": [
      "name",
      "role",
      "projects"
    ]
  },
  "Image": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "name": {
        "type": "string"
      },
      "version": {
        "type": "string"
      },
      "family": {
        "type": "string"
      },
      "description": {
        "type": "string"
      },
      "os": {
        "type": "string",
        "enum": [
          "windows",
          "linux"
        ]
      },
      "architecture": {
        "type": "string"
      },
      "firmware": {
        "type": "string",
        "enum": [
          "efi",
          "bios"
        ]
      },
      "defaultUser": {
        "type": "string"
      },
      "sourceUrl": {
        "type": "string"
      },
      "providers": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "minCpu": {
        "type": "integer"
      },
      "minMemoryMiB": {
        "type": "integer"
      },
      "defaultDiskGiB": {
        "type": "integer"
      },
      "dockurVersion": {
        "type": "string"
      },
      "tags": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "availability": {
        "type": "string",
        "enum": [
          "stored",
          "on-demand",
          "catalog"
        ]
      },
      "storageSource": {
        "type": "string",
        "enum": [
          "cdi",
          "dockur",
          "golden",
          "demo",
          "verified"
        ]
      },
      "storageNamespace": {
        "type": "string"
      },
      "storagePath": {
        "type": "string"
      },
      "ready": {
        "type": "boolean"
      },
      "certified": {
        "type": "boolean"
      },
      "validationScore": {
        "type": "number"
      },
      "passportBuildId": {
        "type": "string"
      }
    },
    "required": [
      "id",
      "name",
      "version",
      "family",
      "description",
      "minCpu",
      "minMemoryMiB",
      "defaultDiskGiB",
      "ready"
    ]
  },
  "ImageList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Image"
        }
      }
    },
    "required": [
      "items"
    ]
  },
  "Job": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "kind": {
        "type": "string",
        "enum": [
          "machine",
          "golden",
          "storage"
        ]
      },
      "name": {
        "type": "string"
      },
      "state": {
        "type": "string",
        "enum": [
          "running",
          "succeeded",
          "failed"
        ]
      },
      "progressPercent": {
        "type": "integer"
      },
      "message": {
        "type": "string"
      },
      "consoleUrl": {
        "type": "string"
      },
      "project": {
        "type": "string"
      },
      "steps": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "id": {
              "type": "string"
            },
            "label": {
              "type": "string"
            },
            "state": {
              "type": "string",
              "enum": [
                "pending",
                "active",
                "done",
                "failed"
              ]
            },
            "detail": {
              "type": "string"
            }
          },
          "required": [
            "id",
            "label",
            "state"
          ]
        }
      },
      "logs": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "time": {
              "type": "string",
              "format": "date-time"
            },
            "level": {
              "type": "string",
              "enum": [
                "info",
                "ok",
                "warn",
                "err"
              ]
            },
            "message": {
              "type": "string"
            }
          },
          "required": [
            "time",
            "level",
            "message"
          ]
        }
      },
      "startedAt": {
        "type": "string",
        "format": "date-time"
      },
      "updatedAt": {
        "type": "string",
        "format": "date-time"
      }
    },
    "required": [
      "id",
      "kind",
      "name",
      "state",
      "progressPercent",
      "steps",
      "logs",
      "startedAt",
      "updatedAt"
    ]
  },
  "JobList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Job"
        }
      }
    },
    "required": [
      "items"
    ]
  },
  "LabBootstrap": {
    "type": "object",
    "properties": {
      "autoAuth": {
        "type": "boolean"
      },
      "token": {
        "type": "string"
      }
    },
    "required": [
      "autoAuth"
    ]
  },
  "Liveness": {
    "type": "object",
    "properties": {
      "status": {
        "type": "string",
        "enum": [
          "ok"
        ]
      }
    },
    "required": [
      "status"
    ]
  },
  "Machine": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string",
        "format": "uuid"
      },
      "project": {
        "type": "string"
      },
      "provider": {
        "type": "string",
        "enum": [
          "demo",
          "dockur",
          "libvirt",
          "kubevirt"
        ]
      },
      "state": {
        "type": "string",
        "enum": [
          "pending",
          "provisioning",
          "starting",
          "running",
          "stopping",
          "stopped",
          "paused",
          "migrating",
          "deleting",
          "failed",
          "unknown"
        ]
      },
      "spec": {
        "$ref": "#/components/schemas/MachineSpec"
      },
      "providerRef": {
        "type": "object",
        "properties": {
          "provider": {
            "type": "string"
          },
          "namespace": {
            "type": "string"
          },
          "name": {
            "type": "string"
          }
        },
        "required": [
          "provider",
          "name"
        ]
      },
      "ipAddresses": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "consoleUrl": {
        "type": "string"
      },
      "rdpHost": {
        "type": "string"
      },
      "rdpPort": {
        "type": "integer"
      },
      "rdpUsername": {
        "type": "string"
      },
      "progressPercent": {
        "type": "integer",
        "minimum": 0,
        "maximum": 100
      },
      "message": {
        "type": "string"
      },
      "conditions": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": {
            "type": {
              "type": "string"
            },
            "status": {
              "type": "string"
            },
            "reason": {
              "type": "string"
            },
            "message": {
              "type": "string"
            }
          },
          "required": [
            "type",
            "status"
          ]
        }
      },
      "createdAt": {
        "type": "string",
        "format": "date-time"
      },
      "updatedAt": {
        "type": "string",
        "format": "date-time"
      },
      "expiresAt": {
        "type": "string",
        "format": "date-time"
      },
      "operation": {
        "type": "object",
        "properties": {
          "id": {
            "type": "string",
            "format": "uuid"
          },
          "kind": {
            "type": "string"
          }
        },
        "required": [
          "id",
          "kind"
        ],
        "description": "The provider work under way, while there is any."
      }
    },
    "required": [
      "id",
      "project",
      "provider",
      "state",
      "spec",
      "providerRef",
      "createdAt",
      "updatedAt"
    ]
  },
  "MachineList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Machine"
        }
      },
      "nextCursor": {
        "type": "string"
      }
    },
    "required": [
      "items"
    ]
  },
  "MachineOperations": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Operation"
        }
      }
    },
    "required": [
      "items"
    ]
  },
  "MachineSpec": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
      },
      "image": {
        "type": "string",
        "pattern": "^[A-Za-z0-9_.:/-]{1,128}$"
      },
      "initialization": {
        "type": "object",
        "properties": {
          "username": {
            "type": "string"
          },
          "sshAuthorizedKeys": {
            "type": "array",
            "items": {
              "type": "string",
              "maxLength": 16384
            },
            "maxItems": 32
          }
        },
        "additionalProperties": false
      },
      "compute": {
        "type": "object",
        "properties": {
          "cpu": {
            "type": "integer",
            "minimum": 1,
            "maximum": 256
          },
          "memoryMiB": {
            "type": "integer",
            "minimum": 512,
            "maximum": 2097152
          }
        },
        "required": [
          "cpu",
          "memoryMiB"
        ],
        "additionalProperties": false
      },
      "disk": {
        "type": "object",
        "properties": {
          "sizeGiB": {
            "type": "integer",
            "minimum": 16,
            "maximum": 65536
          },
          "storageClass": {
            "type": "string",
            "maxLength": 253
          },
          "volumeMode": {
            "type": "string",
            "maxLength": 32
          }
        },
        "required": [
          "sizeGiB"
        ],
        "additionalProperties": false
      },
      "network": {
        "type": "object",
        "properties": {
          "networkId": {
            "type": "string",
            "maxLength": 253
          }
        },
        "default": {},
        "additionalProperties": false
      },
      "ttlMinutes": {
        "type": "integer",
        "minimum": 0,
        "maximum": 43200
      },
      "labels": {
        "type": "object",
        "additionalProperties": {
          "type": "string",
          "pattern": "^[A-Za-z0-9_.:/ -]{0,256}$"
        },
        "maxProperties": 64
      },
      "dockur": {
        "$ref": "#/components/schemas/DockurOptions"
      }
    },
    "required": [
      "name",
      "image",
      "compute",
      "disk"
    ],
    "additionalProperties": false
  },
  "Operation": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string",
        "format": "uuid"
      },
      "kind": {
        "type": "string",
        "enum": [
          "create",
          "clone",
          "start",
          "stop",
          "restart",
          "pause",
          "resume",
          "resize",
          "delete",
          "snapshot",
          "snapshot-restore",
          "snapshot-delete"
        ]
      },
      "machineId": {
        "type": "string",
        "format": "uuid"
      },
      "machineName": {
        "type": "string"
      },
      "project": {
        "type": "string"
      },
      "state": {
        "type": "string",
        "enum": [
          "queued",
          "running",
          "succeeded",
          "failed",
          "cancelled"
        ]
      },
      "requestedBy": {
        "type": "string"
      },
      "attempt": {
        "type": "integer",
        "description": "Attempts begun so far."
      },
      "progressPercent": {
        "type": "integer",
        "minimum": 0,
        "maximum": 100
      },
      "phase": {
        "type": "string"
      },
      "message": {
        "type": "string"
      },
      "error": {
        "type": "object",
        "properties": {
          "code": {
            "type": "string"
          },
          "message": {
            "type": "string"
          },
          "retryClass": {
            "type": "string",
            "enum": [
              "retry",
              "retry-elsewhere",
              "needs-person",
              "fatal"
            ]
          }
        },
        "required": [
          "code",
          "message",
          "retryClass"
        ]
      },
      "cancelRequested": {
        "type": "boolean"
      },
      "notBefore": {
        "type": "string",
        "format": "date-time",
        "description": "Earliest next attempt."
      },
      "createdAt": {
        "type": "string",
        "format": "date-time"
      },
      "startedAt": {
        "type": "string",
        "format": "date-time"
      },
      "updatedAt": {
        "type": "string",
        "format": "date-time"
      },
      "finishedAt": {
        "type": "string",
        "format": "date-time"
      },
      "parameters": {
        "type": "object",
        "properties": {
          "force": {
            "type": "boolean"
          },
          "forceAfterSeconds": {
            "type": "integer"
          },
          "start": {
            "type": "boolean"
          },
          "snapshotId": {
            "type": "string"
          },
          "snapshotName": {
            "type": "string"
          },
          "sourceMachineId": {
            "type": "string"
          },
          "reason": {
            "type": "string",
            "enum": [
              "request",
              "expired"
            ]
          },
          "cpu": {
            "type": "integer"
          },
          "memoryMiB": {
            "type": "integer"
          },
          "diskGiB": {
            "type": "integer"
          }
        },
        "description": "What the operation was asked to do, beside its kind."
      },
      "avoidReplica": {
        "type": "string",
        "description": "Replica that asked for another to try."
      }
    },
    "required": [
      "id",
      "kind",
      "machineId",
      "machineName",
      "project",
      "state",
      "requestedBy",
      "attempt",
      "progressPercent",
      "createdAt",
      "updatedAt",
      "parameters"
    ]
  },
  "OperationList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Operation"
        }
      },
      "nextCursor": {
        "type": "string"
      }
    },
    "required": [
      "items"
    ]
  },
  "Probe": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "pass",
          "warn",
          "fail"
        ]
      },
      "message": {
        "type": "string"
      },
      "hint": {
        "type": "string"
      },
      "latencyMs": {
        "type": "integer"
      }
    },
    "required": [
      "name",
      "status",
      "message"
    ]
  },
  "ProjectList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "defaultProject": {
        "type": "string"
      }
    },
    "required": [
      "items"
    ]
  },
  "PublishGoldenBuild": {
    "type": "object",
    "properties": {}
  },
  "Readiness": {
    "type": "object",
    "properties": {
      "provider": {
        "type": "string"
      },
      "status": {
        "type": "string",
        "enum": [
          "ready",
          "not-ready"
        ]
      }
    },
    "required": [
      "provider",
      "status"
    ]
  },
  "Replay": {
    "type": "object",
    "properties": {
      "after": {
        "type": "string"
      }
    },
    "required": [
      "after"
    ]
  },
  "ReplayRequest": {
    "type": "object",
    "properties": {
      "after": {
        "type": "string",
        "maxLength": 64,
        "description": "Event id; empty: all that is in the log."
      }
    },
    "required": [
      "after"
    ],
    "additionalProperties": false
  },
  "Settings": {
    "type": "object",
    "properties": {
      "runtime": {
        "type": "object",
        "properties": {
          "defaultProject": {
            "type": "string"
          },
          "imageNamespace": {
            "type": "string"
          },
          "eventWebhookUrl": {
            "type": "string"
          },
          "storageClass": {
            "type": "string"
          },
          "atlas": {
            "type": "object",
            "properties": {
              "enabled": {
                "type": "boolean"
              },
              "baseUrl": {
                "type": "string"
              },
              "product": {
                "type": "string"
              },
              "preferAtlas": {
                "type": "boolean"
              }
            },
            "required": [
              "enabled",
              "baseUrl",
              "product"
            ]
          },
          "atlasTokenSet": {
            "type": "boolean"
          }
        },
        "required": [
          "defaultProject",
          "imageNamespace",
          "eventWebhookUrl",
          "storageClass",
          "atlas",
          "atlasTokenSet"
        ]
      },
      "system": {
        "type": "object",
        "properties": {
          "provider": {
            "type": "string"
          },
          "authMode": {
            "type": "string"
          },
          "projects": {
            "type": "array",
            "items": {
              "type": "string"
            }
          },
          "defaultProjectEnv": {
            "type": "string"
          },
          "imageNamespaceEnv": {
            "type": "string"
          },
          "namespacePrefix": {
            "type": "string"
          },
          "kubernetesEndpoint": {
            "type": "string"
          },
          "kubernetesConnected": {
            "type": "boolean"
          },
          "scriptsAvailable": {
            "type": "boolean"
          },
          "allowInsecure": {
            "type": "boolean"
          },
          "storageConfigFile": {
            "type": "string"
          },
          "settingsConfigFile": {
            "type": "string"
          }
        },
        "required": [
          "provider",
          "authMode",
          "projects",
          "defaultProjectEnv",
          "imageNamespaceEnv",
          "namespacePrefix",
          "kubernetesConnected",
          "scriptsAvailable",
          "allowInsecure"
        ]
      },
      "doctor": {
        "$ref": "#/components/schemas/Diagnosis"
      },
      "editable": {
        "type": "array",
        "items": {
          "type": "string"
        }
      }
    },
    "required": [
      "runtime",
      "system",
      "doctor",
      "editable"
    ]
  },
  "SettingsTest": {
    "type": "object",
    "properties": {
      "healthy": {
        "type": "boolean"
      },
      "doctor": {
        "$ref": "#/components/schemas/Diagnosis"
      },
      "connection": {
        "type": "object",
        "properties": {
          "healthy": {
            "type": "boolean"
          },
          "probes": {
            "type": "array",
            "items": {
              "$ref": "#/components/schemas/Probe"
            }
          },
          "testedAt": {
            "type": "string"
          }
        },
        "required": [
          "healthy",
          "probes",
          "testedAt"
        ]
      }
    },
    "required": [
      "healthy",
      "doctor",
      "connection"
    ]
  },
  "SettingsUpdate": {
    "type": "object",
    "properties": {
      "storageClass": {
        "type": "string",
        "maxLength": 253
      },
      "defaultProject": {
        "type": "string",
        "maxLength": 253
      },
      "imageNamespace": {
        "type": "string",
        "maxLength": 253
      },
      "eventWebhookUrl": {
        "type": "string",
        "maxLength": 2048
      },
      "atlas": {
        "$ref": "#/components/schemas/AtlasConfig"
      }
    },
    "additionalProperties": false
  },
  "Snapshot": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "project": {
        "type": "string"
      },
      "machineId": {
        "type": "string"
      },
      "name": {
        "type": "string"
      },
      "state": {
        "type": "string",
        "enum": [
          "creating",
          "ready",
          "failed",
          "restoring",
          "restored"
        ]
      },
      "message": {
        "type": "string"
      },
      "createdAt": {
        "type": "string",
        "format": "date-time"
      }
    },
    "required": [
      "id",
      "project",
      "machineId",
      "name",
      "state",
      "createdAt"
    ]
  },
  "SnapshotClass": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "driver": {
        "type": "string"
      },
      "default": {
        "type": "boolean"
      }
    },
    "required": [
      "name",
      "driver"
    ]
  },
  "SnapshotList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Snapshot"
        }
      }
    },
    "required": [
      "items"
    ]
  },
  "StartGoldenBuild": {
    "type": "object",
    "properties": {
      "imageId": {
        "type": "string",
        "maxLength": 128
      },
      "version": {
        "type": "string",
        "maxLength": 64
      },
      "auto": {
        "type": "boolean"
      }
    },
    "additionalProperties": false
  },
  "StorageClass": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string"
      },
      "provisioner": {
        "type": "string"
      },
      "default": {
        "type": "boolean"
      },
      "allowVolumeExpansion": {
        "type": "boolean"
      },
      "volumeBindingMode": {
        "type": "string"
      },
      "backend": {
        "type": "string"
      },
      "snapshotCapable": {
        "type": "boolean"
      },
      "snapshotClass": {
        "type": "string"
      },
      "recommended": {
        "type": "boolean"
      }
    },
    "required": [
      "name",
      "provisioner",
      "backend",
      "snapshotCapable"
    ]
  },
  "StorageConfig": {
    "type": "object",
    "properties": {
      "storageClass": {
        "type": "string"
      }
    },
    "required": [
      "storageClass"
    ]
  },
  "StorageConfigUpdate": {
    "type": "object",
    "properties": {
      "storageClass": {
        "type": "string",
        "maxLength": 253
      }
    },
    "required": [
      "storageClass"
    ],
    "additionalProperties": false
  },
  "StorageInventory": {
    "type": "object",
    "properties": {
      "storageClasses": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/StorageClass"
        }
      },
      "snapshotClasses": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/SnapshotClass"
        }
      },
      "config": {
        "$ref": "#/components/schemas/StorageConfig"
      },
      "provider": {
        "type": "string"
      },
      "setup": {
        "$ref": "#/components/schemas/StorageSetupState"
      },
      "blockDevices": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/BlockDevice"
        }
      },
      "scriptsAvailable": {
        "type": "boolean"
      },
      "backendsInstalled": {
        "type": "object",
        "additionalProperties": {
          "type": "boolean"
        }
      },
      "atlas": {
        "type": "object",
        "properties": {
          "enabled": {
            "type": "boolean"
          },
          "baseUrl": {
            "type": "string"
          },
          "healthy": {
            "type": "boolean"
          },
          "product": {
            "type": "string"
          },
          "storageClasses": {
            "type": "array",
            "items": {
              "type": "string"
            }
          }
        },
        "required": [
          "enabled",
          "baseUrl",
          "healthy",
          "product",
          "storageClasses"
        ]
      }
    },
    "required": [
      "storageClasses",
      "snapshotClasses",
      "config",
      "provider",
      "scriptsAvailable"
    ]
  },
  "StorageSetup": {
    "type": "object",
    "properties": {
      "backend": {
        "type": "string",
        "enum": [
          "longhorn",
          "rook-ceph"
        ]
      },
      "rookMode": {
        "type": "string",
        "enum": [
          "lab",
          "devices",
          "pool-only",
          "device"
        ]
      },
      "device": {
        "type": "string",
        "pattern": "^\\/dev\\/(?!.*\\.\\.)[A-Za-z0-9][A-Za-z0-9/_.:+-]{0,200}$"
      },
      "wipeDevice": {
        "type": "boolean"
      },
      "setDefault": {
        "type": "boolean"
      }
    },
    "required": [
      "backend"
    ],
    "additionalProperties": false
  },
  "StorageSetupState": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "backend": {
        "type": "string"
      },
      "rookMode": {
        "type": "string"
      },
      "device": {
        "type": "string"
      },
      "state": {
        "type": "string",
        "enum": [
          "idle",
          "running",
          "succeeded",
          "failed"
        ]
      },
      "message": {
        "type": "string"
      },
      "error": {
        "type": "string"
      },
      "storageClass": {
        "type": "string"
      },
      "startedAt": {
        "type": "string"
      },
      "updatedAt": {
        "type": "string"
      }
    },
    "required": [
      "id",
      "backend",
      "state",
      "startedAt",
      "updatedAt"
    ]
  },
  "StorageSetupView": {
    "type": "object",
    "properties": {
      "state": {
        "type": "string"
      },
      "setup": {
        "$ref": "#/components/schemas/StorageSetupState"
      },
      "logs": {
        "type": "array",
        "items": {
          "type": "string"
        }
      }
    },
    "required": [
      "state",
      "setup",
      "logs"
    ]
  },
  "Summary": {
    "type": "object",
    "properties": {
      "project": {
        "type": "string"
      },
      "provider": {
        "type": "string"
      },
      "machines": {
        "type": "integer"
      },
      "running": {
        "type": "integer"
      },
      "stopped": {
        "type": "integer"
      },
      "attention": {
        "type": "integer"
      },
      "cpu": {
        "type": "integer"
      },
      "memoryMiB": {
        "type": "integer"
      },
      "diskGiB": {
        "type": "integer"
      },
      "quota": {
        "type": "object",
        "properties": {
          "machines": {
            "type": "integer"
          },
          "cpu": {
            "type": "integer"
          },
          "memoryMiB": {
            "type": "integer"
          },
          "diskGiB": {
            "type": "integer"
          }
        },
        "description": "What the project may ask for together; absent: no limit."
      }
    },
    "required": [
      "project",
      "provider",
      "machines",
      "running",
      "stopped",
      "attention",
      "cpu",
      "memoryMiB",
      "diskGiB"
    ]
  },
  "TakeSnapshot": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "maxLength": 253
      }
    },
    "additionalProperties": false
  },
  "UpdateMachine": {
    "type": "object",
    "properties": {
      "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
      },
      "compute": {
        "type": "object",
        "properties": {
          "cpu": {
            "type": "integer",
            "minimum": 1,
            "maximum": 256
          },
          "memoryMiB": {
            "type": "integer",
            "minimum": 512,
            "maximum": 2097152
          }
        },
        "additionalProperties": false
      },
      "disk": {
        "type": "object",
        "properties": {
          "sizeGiB": {
            "type": "integer",
            "minimum": 16,
            "maximum": 65536
          }
        },
        "additionalProperties": false
      },
      "ttlMinutes": {
        "type": "integer",
        "minimum": 0,
        "maximum": 43200,
        "description": "Counted from now; 0 removes the expiry."
      },
      "labels": {
        "type": "object",
        "additionalProperties": {
          "type": "string",
          "pattern": "^[A-Za-z0-9_.:/ -]{0,256}$"
        },
        "maxProperties": 64,
        "description": "Replaces all labels."
      }
    },
    "additionalProperties": false
  },
  "Webhook": {
    "type": "object",
    "properties": {
      "id": {
        "type": "string"
      },
      "url": {
        "type": "string"
      },
      "types": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "projects": {
        "type": "array",
        "items": {
          "type": "string"
        }
      },
      "signed": {
        "type": "boolean"
      },
      "createdAt": {
        "type": "string",
        "format": "date-time"
      },
      "delivery": {
        "type": "object",
        "properties": {
          "eventId": {
            "type": "string"
          },
          "delivered": {
            "type": "integer"
          },
          "failed": {
            "type": "integer"
          },
          "deadLetters": {
            "type": "integer"
          },
          "lastStatus": {
            "type": "integer"
          },
          "lastError": {
            "type": "string"
          },
          "lastAttemptAt": {
            "type": "string",
            "format": "date-time"
          },
          "lastDeliveredAt": {
            "type": "string",
            "format": "date-time"
          },
          "missed": {
            "type": "boolean"
          }
        },
        "required": [
          "eventId",
          "delivered",
          "failed",
          "deadLetters"
        ]
      }
    },
    "required": [
      "id",
      "url",
      "types",
      "projects",
      "signed",
      "delivery"
    ]
  },
  "WebhookList": {
    "type": "object",
    "properties": {
      "items": {
        "type": "array",
        "items": {
          "$ref": "#/components/schemas/Webhook"
        }
      }
    },
    "required": [
      "items"
    ]
  }
};
