/**
 * A machine as callers see it, and the body that asks for one.
 *
 * The schemas are the contract: they validate requests, type the code and become the OpenAPI
 * document. Optional fields are left out of answers when empty; `spec` is the accepted request
 * without `project` and without secrets.
 */
import { z } from "zod";
import { boundedText, timeSchema } from "./bytes.ts";
import { dockurOptionsSchema } from "./dockur-options.ts";
import { maxSshKeyBytes, maxSshKeys } from "./initialization.ts";

/** Every state a machine can be in; see docs/kryton/api.md for who may see which. */
export const machineStates = [
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
  "unknown",
] as const;
/** One of {@link machineStates}. */
export type MachineState = (typeof machineStates)[number];

/** Names of the machine providers. */
export const providerNames = ["demo", "dockur", "libvirt", "kubevirt"] as const;
/** One of {@link providerNames}. */
export type ProviderName = (typeof providerNames)[number];

/** Those that can be chosen; the others are the contract's and not in this build yet. */
export const builtProviders: readonly ProviderName[] = ["demo"];

/** A DNS-1123 label: names of machines and projects. */
export const labelPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
/** Image ids and label keys. */
export const tokenPattern = /^[A-Za-z0-9_.:/-]{1,128}$/;
/** Label values. */
export const labelValuePattern = /^[A-Za-z0-9_.:/ -]{0,256}$/;
/** Greatest number of labels of one machine. */
export const maxLabels = 64;
/** Greatest time to live, minutes (30 days). */
export const maxTtlMinutes = 43_200;

const label = boundedText(63).regex(labelPattern).min(1);

/** The labels of a machine. */
export const labelsSchema = z
  .record(z.string().regex(tokenPattern), z.string().regex(labelValuePattern))
  .refine((labels) => Object.keys(labels).length <= maxLabels, {
    message: `must have at most ${maxLabels} entries`,
  })
  .meta({ maxProperties: maxLabels });

const computeSchema = z.strictObject({
  cpu: z.int().min(1).max(256),
  memoryMiB: z.int().min(512).max(2_097_152),
});

const diskSchema = z.strictObject({
  sizeGiB: z.int().min(16).max(65_536),
  storageClass: boundedText(253).optional(),
  volumeMode: boundedText(32).optional(),
});

const networkSchema = z.strictObject({ networkId: boundedText(253).optional() });

const ttlSchema = z.int().min(0).max(maxTtlMinutes);

const initializationSchema = z.strictObject({
  username: z.string().optional(),
  sshAuthorizedKeys: z
    .array(z.string().meta({ maxLength: maxSshKeyBytes }))
    .meta({ maxItems: maxSshKeys })
    .optional(),
});

const specShape = {
  name: label,
  image: z.string().regex(tokenPattern),
  initialization: initializationSchema.optional(),
  compute: computeSchema,
  disk: diskSchema,
  network: networkSchema.default({}),
  ttlMinutes: ttlSchema.optional(),
  labels: labelsSchema.optional(),
  dockur: dockurOptionsSchema.optional(),
};

/** What was asked for, as stored and echoed. */
export const machineSpecSchema = z.strictObject(specShape).meta({ id: "MachineSpec" });
/** See {@link machineSpecSchema}. */
export type MachineSpec = z.infer<typeof machineSpecSchema>;

/** Body of `POST /api/v1/machines`. */
export const createMachineSchema = z
  .strictObject({
    project: z.string().optional().meta({ description: "Default: the default project." }),
    ...specShape,
  })
  .meta({ id: "CreateMachine" });
/** See {@link createMachineSchema}. */
export type CreateMachine = z.infer<typeof createMachineSchema>;

/** Body of `PATCH /api/v1/machines/{id}`: absent means unchanged; a null label removes it. */
export const updateMachineSchema = z
  .strictObject({
    name: label.optional(),
    compute: computeSchema.partial().optional(),
    disk: z.strictObject({ sizeGiB: diskSchema.shape.sizeGiB.optional() }).optional(),
    ttlMinutes: ttlSchema.optional().meta({ description: "Counted from now; 0 removes the expiry." }),
    labels: labelsSchema.optional().meta({ description: "Replaces all labels." }),
  })
  .meta({ id: "UpdateMachine" });
/** See {@link updateMachineSchema}. */
export type UpdateMachine = z.infer<typeof updateMachineSchema>;

/** Body of `POST /api/v1/machines/{id}/clone`. */
export const cloneMachineSchema = z
  .strictObject({ name: label, ttlMinutes: ttlSchema.optional(), labels: labelsSchema.optional() })
  .meta({ id: "CloneMachine" });
/** See {@link cloneMachineSchema}. */
export type CloneMachine = z.infer<typeof cloneMachineSchema>;

/** A machine. */
export const machineSchema = z
  .object({
    id: z.uuid(),
    project: z.string(),
    provider: z.enum(providerNames),
    state: z.enum(machineStates),
    spec: machineSpecSchema,
    providerRef: z.object({
      provider: z.string(),
      namespace: z.string().optional(),
      name: z.string(),
    }),
    ipAddresses: z.array(z.string()).optional(),
    consoleUrl: z.string().optional(),
    rdpHost: z.string().optional(),
    rdpPort: z.int().optional(),
    rdpUsername: z.string().optional(),
    progressPercent: z.int().min(0).max(100).optional(),
    message: z.string().optional(),
    conditions: z
      .array(
        z.object({
          type: z.string(),
          status: z.string(),
          reason: z.string().optional(),
          message: z.string().optional(),
        }),
      )
      .optional(),
    createdAt: timeSchema,
    updatedAt: timeSchema,
    expiresAt: timeSchema.optional(),
    operation: z
      .object({ id: z.uuid(), kind: z.string() })
      .optional()
      .meta({ description: "The provider work under way, while there is any." }),
  })
  .meta({ id: "Machine" });
/** See {@link machineSchema}. */
export type Machine = z.infer<typeof machineSchema>;

/** States of a snapshot. */
export const snapshotStates = ["creating", "ready", "failed", "restoring", "restored"] as const;

/** A snapshot of a machine. */
export const snapshotSchema = z
  .object({
    id: z.string(),
    project: z.string(),
    machineId: z.string(),
    name: z.string(),
    state: z.enum(snapshotStates),
    message: z.string().optional(),
    createdAt: timeSchema,
  })
  .meta({ id: "Snapshot" });
/** See {@link snapshotSchema}. */
export type Snapshot = z.infer<typeof snapshotSchema>;
