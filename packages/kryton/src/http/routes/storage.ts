/**
 * Routes of storage: the inventory, the default class, and setting a backend up.
 */
import { CodedError } from "@kontinuum/std";
import { z } from "zod";
import { testAtlas } from "../../integrations/atlas.ts";
import { boundedText } from "../../model/bytes.ts";
import { invalidRequest, KrytonError } from "../../model/errors.ts";
import { hasRole } from "../../model/principal.ts";
import { limited } from "../../provider-contract/limited.ts";
import {
  logTexts,
  rookModes,
  setupBackends,
  setupState,
  setupStateSchema,
  type SetupRequest,
} from "../../storage-setup/record.ts";
import { backendOf } from "../../storage-inventory/contract.ts";
import { blockDeviceSchema } from "../../storage-inventory/devices.ts";
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

const setupBody = z
  .strictObject({
    backend: z.enum(setupBackends),
    rookMode: z.enum(rookModes).optional(),
    device: z
      .string()
      .regex(/^\/dev\/(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9/_.:+-]{0,200}$/)
      .optional(),
    wipeDevice: z.boolean().optional(),
    setDefault: z.boolean().optional(),
  })
  .meta({ id: "StorageSetup" });

const inventorySchema = z
  .object({
    storageClasses: z.array(storageClassSchema),
    snapshotClasses: z.array(snapshotClassSchema),
    config: configSchema,
    provider: z.string(),
    setup: setupStateSchema.optional(),
    blockDevices: z.array(blockDeviceSchema).optional(),
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

/** Asks the cluster; what goes wrong there is the cluster's failure, not ours. */
async function asked<T>(services: Services, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  try {
    return await limited(services.edges.clock, limitMs, work);
  } catch (cause) {
    if (!(cause instanceof CodedError)) throw cause;
    const gone = cause.code === "unavailable" || cause.code === "deadline_exceeded";
    throw new KrytonError(
      gone ? "PROVIDER_UNAVAILABLE" : "PROVIDER_ERROR",
      // The cause names the cluster's address: it is for the log and for the administrators' connection test.
      gone ? "the connected cluster does not answer" : "the connected cluster refuses to show its storage",
      { cause, hint: "POST /api/v1/settings/test shows which connection fails." },
    );
  }
}

/** Throws unless machines can be put on this class. */
export async function checkStorageClass(services: Services, name: string): Promise<void> {
  const { cluster } = services;
  if (!cluster) throw invalidRequest("there are no storage classes: no cluster is connected");
  const classes = await asked(services, (signal) => cluster.classes(signal));
  const found = classes.find((candidate) => candidate.name === name);
  if (!found) throw invalidRequest(`storage class ${JSON.stringify(name)} is not in the cluster`);
  if (backendOf(found.provisioner) === "local-path") {
    throw invalidRequest(`storage class ${name} keeps disks on one node and cannot hold machines`);
  }
}

/** Storage: inventory, default class, set-up. */
export function storageRoutes(services: Services): Route[] {
  const { provider, cluster, setup, settings, metrics, outbound, edges } = services;
  const needCluster = (what: string): KrytonError =>
    new KrytonError("UNSUPPORTED", `${what} needs a connected cluster`, {
      hint: "Set KRYTON_KUBECONFIG or KRYTON_KUBERNETES_ENDPOINT and restart.",
    });
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
        const tested =
          atlas.enabled && atlas.preferAtlas ? await testAtlas(atlas, outbound, edges.clock) : undefined;
        const record = await setup?.current();
        const devices = admin ? await setup?.devices() : undefined;
        const [classes, snapshotClasses] = cluster
          ? await asked(services, (signal) =>
              Promise.all([cluster.classes(signal), cluster.snapshotClasses(signal)]),
            )
          : [[], []];
        const rated = rate(classes, snapshotClasses, tested?.storageClasses ?? []);
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
          setup: setupState(record, admin),
          ...(devices && devices.length > 0 ? { blockDevices: devices } : {}),
          scriptsAvailable: (await setup?.available()) ?? false,
          ...(Object.keys(installed).length > 0 ? { backendsInstalled: installed } : {}),
          ...(tested
            ? {
                atlas: {
                  enabled: true,
                  baseUrl: admin ? tested.baseUrl : "",
                  healthy: tested.healthy,
                  product: tested.product,
                  storageClasses: tested.storageClasses ?? [],
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
        if (!cluster) throw needCluster("a storage class");
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
              .object({ state: z.string(), setup: setupStateSchema, logs: z.array(z.string()) })
              .meta({ id: "StorageSetupView" }),
          },
        },
      },
      async ({ principal }) => {
        const admin = hasRole(principal, "admin");
        const record = await setup?.current();
        const state = setupState(record, admin);
        return ok({ state: state.state, setup: state, logs: admin ? logTexts(record) : [] });
      },
    ),
    routeWithBody(
      {
        method: "POST",
        path: "/api/v1/storage/setup",
        group: "storage",
        summary: "Set a storage system up in the cluster; followed under GET.",
        access: { kind: "global", role: "admin" },
        answers: { 202: { description: "The set-up began.", schema: setupStateSchema } },
      },
      setupBody,
      async ({ body, principal }) => {
        if (!setup) throw needCluster("a storage set-up");
        const record = await setup.begin(setupRequest(body), principal.name);
        metrics.operation("storage-setup");
        return { status: 202, json: setupState(record, true) };
      },
    ),
    route(
      {
        method: "POST",
        path: "/api/v1/storage/setup/cancel",
        group: "storage",
        summary: "Stop a running set-up; what it has installed stays.",
        access: { kind: "global", role: "admin" },
        answers: { 202: { description: "It will stop.", schema: setupStateSchema } },
      },
      async ({ principal }) => {
        if (!setup) throw needCluster("a storage set-up");
        const record = await setup.cancel(principal.name);
        if (!record) throw new KrytonError("CONFLICT", "no storage set-up is running");
        return { status: 202, json: setupState(record, true) };
      },
    ),
  ];
}

/** What a body asks for, with what belongs together checked together. */
function setupRequest(body: z.infer<typeof setupBody>): SetupRequest {
  const { backend, device, wipeDevice, setDefault = true } = body;
  if (backend === "longhorn") {
    if (body.rookMode !== undefined || device !== undefined || wipeDevice) {
      throw invalidRequest("rookMode, device and wipeDevice are for backend rook-ceph");
    }
    return { backend, setDefault };
  }
  const rookMode = body.rookMode ?? "lab";
  if (rookMode === "device" && device === undefined)
    throw invalidRequest("device is required with rookMode device");
  if (rookMode !== "device" && (device !== undefined || wipeDevice)) {
    throw invalidRequest("device and wipeDevice need rookMode device");
  }
  return {
    backend,
    rookMode,
    setDefault,
    ...(device === undefined ? {} : { device }),
    ...(wipeDevice ? { wipeDevice } : {}),
  };
}
