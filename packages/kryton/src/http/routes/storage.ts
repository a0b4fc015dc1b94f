/**
 * Routes of storage: the inventory, the default class, and setting a backend up.
 */
import { z } from "zod";
import { testAtlas } from "../../integrations/atlas.ts";
import { boundedText, zeroTime } from "../../model/bytes.ts";
import { invalidRequest, KrytonError } from "../../model/errors.ts";
import { hasRole } from "../../model/principal.ts";
import { limited } from "../../provider-contract/limited.ts";
import { backendOf } from "../../storage-inventory/contract.ts";
import {
  installedBackends,
  rate,
  snapshotClassSchema,
  storageClassSchema,
} from "../../storage-inventory/inventory.ts";
import { ok } from "../reply.ts";
import { route, routeWithBody, type Route } from "../route.ts";
import type { Services } from "../services.ts";

const limitMs = 10_000;

const configSchema = z.object({ storageClass: z.string() }).meta({ id: "StorageConfig" });
const configBody = z.strictObject({ storageClass: boundedText(253) }).meta({ id: "StorageConfigUpdate" });

const setupSchema = z
  .object({
    id: z.string(),
    backend: z.string(),
    rookMode: z.string().optional(),
    device: z.string().optional(),
    state: z.enum(["idle", "running", "succeeded", "failed"]),
    message: z.string().optional(),
    error: z.string().optional(),
    storageClass: z.string().optional(),
    startedAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({ id: "StorageSetupState" });
const setupBody = z
  .strictObject({
    backend: z.enum(["longhorn", "rook-ceph"]),
    rookMode: z.enum(["lab", "devices", "pool-only", "device"]).optional(),
    device: boundedText(256).optional(),
    wipeDevice: z.boolean().optional(),
    setDefault: z.boolean().optional(),
  })
  .meta({ id: "StorageSetup" });

const idle: z.infer<typeof setupSchema> = {
  id: "current",
  backend: "",
  state: "idle",
  startedAt: zeroTime,
  updatedAt: zeroTime,
};

const inventorySchema = z
  .object({
    storageClasses: z.array(storageClassSchema),
    snapshotClasses: z.array(snapshotClassSchema),
    config: configSchema,
    provider: z.string(),
    setup: setupSchema.optional(),
    scriptsAvailable: z.boolean(),
    backendsInstalled: z.record(z.string(), z.boolean()).optional(),
    atlas: z
      .object({
        enabled: z.boolean(),
        baseUrl: z.string(),
        healthy: z.boolean(),
        product: z.string(),
        storageClasses: z.array(z.string()),
      })
      .optional(),
  })
  .meta({ id: "StorageInventory" });

/** Throws unless machines can be put on this class. */
export async function checkStorageClass({ provider, edges }: Services, name: string): Promise<void> {
  const { cluster } = provider;
  if (!cluster) throw invalidRequest(`provider ${provider.name} has no storage classes`);
  const classes = await limited(edges.clock, limitMs, (signal) => cluster.classes(signal));
  const found = classes.find((candidate) => candidate.name === name);
  if (!found) throw invalidRequest(`storage class ${JSON.stringify(name)} is not in the cluster`);
  if (backendOf(found.provisioner) === "local-path") {
    throw invalidRequest(`storage class ${name} keeps disks on one node and cannot hold machines`);
  }
}

/** Storage: inventory, default class, set-up. */
export function storageRoutes(services: Services): Route[] {
  const { provider, settings, metrics, outbound, edges } = services;
  const needCluster = (what: string): void => {
    if (provider.name === "kubevirt") return;
    throw new KrytonError("UNSUPPORTED", `${what} needs the provider kubevirt`, {
      hint: "Other providers keep disks on their host.",
    });
  };
  return [
    route(
      {
        method: "GET",
        path: "/api/v1/storage",
        group: "storage",
        summary: "Storage classes and how fit they are for machines.",
        access: { kind: "any" },
        answers: { 200: { description: "The inventory.", schema: inventorySchema } },
      },
      async ({ principal }) => {
        const { atlas, storageClass } = await settings.refresh();
        const admin = hasRole(principal, "admin");
        const asked =
          atlas.enabled && atlas.preferAtlas ? await testAtlas(atlas, outbound, edges.clock) : undefined;
        const { cluster } = provider;
        const [classes, snapshotClasses] = cluster
          ? await limited(edges.clock, limitMs, (signal) =>
              Promise.all([cluster.classes(signal), cluster.snapshotClasses(signal)]),
            )
          : [[], []];
        const rated = rate(classes, snapshotClasses, asked?.storageClasses ?? []);
        const installed = installedBackends(rated);
        return ok({
          storageClasses: rated,
          snapshotClasses: snapshotClasses.map(({ name, driver, default: isDefault }) => ({
            name,
            driver,
            ...(isDefault ? { default: true } : {}),
          })),
          config: { storageClass },
          provider: provider.name,
          setup: idle,
          scriptsAvailable: provider.name === "kubevirt",
          ...(Object.keys(installed).length > 0 ? { backendsInstalled: installed } : {}),
          ...(asked
            ? {
                atlas: {
                  enabled: true,
                  baseUrl: admin ? asked.baseUrl : "",
                  healthy: asked.healthy,
                  product: asked.product,
                  storageClasses: asked.storageClasses ?? [],
                },
              }
            : {}),
        });
      },
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/storage/config",
        group: "storage",
        summary: "The default storage class.",
        access: { kind: "any" },
        answers: { 200: { description: "The class; empty when unset.", schema: configSchema } },
      },
      async () => ok({ storageClass: (await settings.refresh()).storageClass }),
    ),
    routeWithBody(
      {
        method: "PUT",
        path: "/api/v1/storage/config",
        group: "storage",
        summary: "Choose the default storage class; empty clears it.",
        access: { kind: "global", role: "admin" },
        answers: { 200: { description: "The class.", schema: configSchema } },
      },
      configBody,
      async ({ body: { storageClass } }) => {
        needCluster("a storage class");
        if (storageClass !== "") await checkStorageClass(services, storageClass);
        await settings.change(
          (stored) => ({ ...stored, storageClass }),
          () => ({ type: "io.kryton.storage.configured", subject: "storage/config", data: { storageClass } }),
        );
        metrics.operation("storage-config");
        return ok({ storageClass });
      },
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/storage/setup",
        group: "storage",
        summary: "How far a storage set-up is.",
        access: { kind: "any" },
        answers: {
          200: {
            description: "The state and the last lines of the log.",
            schema: z
              .object({ state: z.string(), setup: setupSchema, logs: z.array(z.string()) })
              .meta({ id: "StorageSetupView" }),
          },
        },
      },
      () => ok({ state: idle.state, setup: idle, logs: [] }),
    ),
    routeWithBody(
      {
        method: "POST",
        path: "/api/v1/storage/setup",
        group: "storage",
        summary: "Set a storage backend up in the cluster.",
        access: { kind: "global", role: "admin" },
        answers: { 202: { description: "The set-up began.", schema: setupSchema } },
      },
      setupBody,
      () => {
        needCluster("a storage set-up");
        throw new KrytonError("UNSUPPORTED", "this build has no storage set-up", {
          hint: "Install Longhorn or Rook yourself, then choose the class.",
        });
      },
    ),
  ];
}
