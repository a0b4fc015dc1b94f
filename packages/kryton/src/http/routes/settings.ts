/**
 * Routes of settings, integrations and storage choice: what belongs to no project. Changes and
 * connection tests are for admins; facts about the host and the cluster are shown to admins only.
 */
import { isDnsLabel } from "@kontinuum/std";
import { z } from "zod";
import { atlasResultSchema, probeSchema, testAtlas } from "../../integrations/atlas.ts";
import { boundedText } from "../../model/bytes.ts";
import { invalidRequest } from "../../model/errors.ts";
import { hasProject, hasRole, type Principal } from "../../model/principal.ts";
import { testConnections } from "../../settings/connection-test.ts";
import type { AtlasSettings, CurrentSettings, StoredSettings } from "../../settings/runtime-settings.ts";
import { ok } from "../reply.ts";
import { route, routeWithBody, type Route } from "../route.ts";
import type { Services } from "../services.ts";
import { checkStorageClass } from "./storage.ts";
import { diagnosisSchema } from "./meta.ts";

const atlasShape = z
  .strictObject({
    enabled: z.boolean().optional(),
    baseUrl: boundedText(2048).optional(),
    token: boundedText(4096).meta({ writeOnly: true }).optional(),
    product: boundedText(253).optional(),
    preferAtlas: z.boolean().optional(),
  })
  .meta({ id: "AtlasConfig" });

const updateSchema = z
  .strictObject({
    storageClass: boundedText(253).optional(),
    defaultProject: boundedText(253).optional(),
    imageNamespace: boundedText(253).optional(),
    eventWebhookUrl: boundedText(2048).optional(),
    atlas: atlasShape.optional(),
  })
  .meta({ id: "SettingsUpdate" });

const atlasView = z.object({
  enabled: z.boolean(),
  baseUrl: z.string(),
  product: z.string(),
  preferAtlas: z.boolean().optional(),
});

const viewSchema = z
  .object({
    runtime: z.object({
      defaultProject: z.string(),
      imageNamespace: z.string(),
      eventWebhookUrl: z.string(),
      storageClass: z.string(),
      atlas: atlasView,
      atlasTokenSet: z.boolean(),
    }),
    system: z.object({
      provider: z.string(),
      authMode: z.string(),
      projects: z.array(z.string()),
      defaultProjectEnv: z.string(),
      imageNamespaceEnv: z.string(),
      namespacePrefix: z.string(),
      kubernetesEndpoint: z.string().optional(),
      kubernetesConnected: z.boolean(),
      scriptsAvailable: z.boolean(),
      allowInsecure: z.boolean(),
      storageConfigFile: z.string().optional(),
      settingsConfigFile: z.string().optional(),
    }),
    doctor: diagnosisSchema,
    editable: z.array(z.string()),
  })
  .meta({ id: "Settings" });

const testSchema = z
  .object({
    healthy: z.boolean(),
    doctor: diagnosisSchema,
    connection: z.object({ healthy: z.boolean(), probes: z.array(probeSchema), testedAt: z.string() }),
  })
  .meta({ id: "SettingsTest" });

/** Settings and integrations. */
export function settingsRoutes(services: Services): Route[] {
  const { settings, doctor, provider, edges, outbound, metrics } = services;
  const view = async (principal: Principal) => viewOf(services, principal, await settings.refresh());
  return [
    route(
      {
        method: "GET",
        path: "/api/v1/settings",
        group: "settings",
        summary: "Settings, and facts about the installation.",
        access: { kind: "any" },
        answers: { 200: { description: "The settings.", schema: viewSchema } },
      },
      async ({ principal }) => ok(await view(principal)),
    ),
    routeWithBody(
      {
        method: "PUT",
        path: "/api/v1/settings",
        group: "settings",
        summary: "Change settings; all or nothing.",
        access: { kind: "global", role: "admin" },
        answers: { 200: { description: "The settings.", schema: viewSchema } },
      },
      updateSchema,
      async ({ body, principal }) => {
        const revise = await reviser(services, body);
        await settings.change(revise, ({ defaultProject, imageNamespace }) => ({
          type: "io.kryton.settings.updated",
          subject: "settings",
          data: { defaultProject, imageNamespace },
        }));
        metrics.operation("settings-config");
        return ok(await view(principal));
      },
    ),
    route(
      {
        method: "POST",
        path: "/api/v1/settings/test",
        group: "settings",
        summary: "Test the connections this installation lives on.",
        access: { kind: "global", role: "admin" },
        answers: {
          200: { description: "All is well.", schema: testSchema },
          503: { description: "Something is not.", schema: testSchema },
        },
      },
      async () => {
        const [diagnosis, connection] = await Promise.all([
          doctor.diagnose(),
          testConnections({ provider, cluster: services.cluster, setup: services.setup, edges }),
        ]);
        const healthy = diagnosis.healthy && connection.healthy;
        return { status: healthy ? 200 : 503, json: { healthy, doctor: diagnosis, connection } };
      },
    ),
    routeWithBody(
      {
        method: "POST",
        path: "/api/v1/integrations/atlas/test",
        group: "integrations",
        summary: "Test Atlas, with the stored settings or those of the body.",
        access: { kind: "global", role: "admin" },
        bodyOptional: true,
        answers: {
          200: { description: "Off, or well.", schema: atlasResultSchema },
          503: { description: "On, and not well.", schema: atlasResultSchema },
        },
      },
      atlasShape,
      async ({ body }) => {
        const stored = (await settings.refresh()).atlas;
        const tried = overridden(stored, body);
        const result = await testAtlas(tried, outbound, edges.clock);
        return { status: tried.enabled && !result.healthy ? 503 : 200, json: result };
      },
    ),
  ];
}

/** The settings to test: what the body gives, the rest as stored; a token stays with its URL. */
function overridden(stored: AtlasSettings, body: z.infer<typeof atlasShape>): AtlasSettings {
  if (!body.baseUrl && !body.token && body.enabled !== true) return stored;
  const baseUrl = trimUrl(body.baseUrl || stored.baseUrl);
  const token = body.token || (baseUrl === stored.baseUrl ? stored.token : "");
  return {
    enabled: true,
    baseUrl,
    token,
    product: body.product || stored.product,
    preferAtlas: stored.preferAtlas,
  };
}

function trimUrl(url: string): string {
  return url.trim().replace(/\/+$/, "");
}

function checkUrl(name: string, url: string): void {
  if (url === "") return;
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalidRequest(`${name} is not a URL`);
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:")
    throw invalidRequest(`${name} must be http or https`);
  if (parsed.username !== "" || parsed.password !== "")
    throw invalidRequest(`${name} must not carry user info`);
}

/** Checks a whole update, then answers how the stored settings change. */
async function reviser(
  services: Services,
  body: z.infer<typeof updateSchema>,
): Promise<(stored: StoredSettings) => StoredSettings> {
  const { settings } = services;
  const { atlas: now } = await settings.refresh();
  if (body.storageClass !== undefined && body.storageClass !== "")
    await checkStorageClass(services, body.storageClass);
  const defaultProject = body.defaultProject?.trim();
  if (defaultProject !== undefined && !services.projects().includes(defaultProject)) {
    throw invalidRequest(`defaultProject ${JSON.stringify(defaultProject)} is not a configured project`);
  }
  const imageNamespace = body.imageNamespace?.trim();
  if (imageNamespace !== undefined && !isDnsLabel(imageNamespace)) {
    throw invalidRequest("imageNamespace must be a DNS label of at most 63 characters");
  }
  const eventWebhookUrl = body.eventWebhookUrl?.trim();
  if (eventWebhookUrl !== undefined) checkUrl("eventWebhookUrl", eventWebhookUrl);
  const atlas = body.atlas && nextAtlas(services, now, body.atlas);
  return (stored) => ({
    ...stored,
    ...(body.storageClass === undefined ? {} : { storageClass: body.storageClass }),
    ...(defaultProject === undefined ? {} : { defaultProject }),
    ...(imageNamespace === undefined ? {} : { imageNamespace }),
    ...(eventWebhookUrl === undefined ? {} : { eventWebhookUrl }),
    ...(atlas === undefined ? {} : { atlas }),
  });
}

function nextAtlas(
  { settings }: Services,
  now: AtlasSettings,
  body: z.infer<typeof atlasShape>,
): NonNullable<StoredSettings["atlas"]> {
  const baseUrl = body.baseUrl === undefined ? now.baseUrl : trimUrl(body.baseUrl);
  checkUrl("atlas.baseUrl", baseUrl);
  const enabled = body.enabled ?? now.enabled;
  if (enabled && baseUrl === "")
    throw invalidRequest("atlas.baseUrl is required while atlas.enabled is true");
  // A token belongs to the address it was given for: another address must not receive it.
  const token = body.token || (baseUrl === now.baseUrl ? now.token : "");
  return {
    enabled,
    baseUrl,
    product: (body.product ?? now.product).trim() || "kryton",
    preferAtlas: body.preferAtlas ?? now.preferAtlas,
    ...(token === "" ? {} : { sealedToken: settings.sealToken(token) }),
  };
}

async function viewOf(services: Services, principal: Principal, current: CurrentSettings) {
  const { config, provider, authenticator, doctor, cluster, setup } = services;
  const admin = hasRole(principal, "admin");
  const { token, preferAtlas, ...atlas } = current.atlas;
  const kubevirt = provider.name === "kubevirt";
  return {
    runtime: {
      defaultProject: current.defaultProject,
      imageNamespace: current.imageNamespace,
      // A webhook's address often carries a credential.
      eventWebhookUrl: admin ? current.eventWebhookUrl : "",
      storageClass: current.storageClass,
      atlas: { ...atlas, ...(preferAtlas ? { preferAtlas } : {}) },
      atlasTokenSet: token !== "",
    },
    system: {
      provider: provider.name,
      authMode: authenticator.mode,
      projects: services.projects().filter((project) => hasProject(principal, project)),
      defaultProjectEnv: config.defaultProject,
      imageNamespaceEnv: config.imageNamespace,
      namespacePrefix: config.namespacePrefix,
      ...(admin && cluster ? { kubernetesEndpoint: cluster.endpoint } : {}),
      kubernetesConnected: cluster !== undefined,
      scriptsAvailable: (await setup?.available()) ?? false,
      allowInsecure: config.allowInsecure,
      ...(admin
        ? { storageConfigFile: config.storageConfigFile, settingsConfigFile: config.settingsConfigFile }
        : {}),
    },
    doctor: await doctor.diagnose(),
    editable: [
      "defaultProject",
      "eventWebhookUrl",
      "storageClass",
      "atlas",
      ...(kubevirt ? ["imageNamespace"] : []),
    ],
  };
}
