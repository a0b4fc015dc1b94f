/**
 * Routes about the service itself: health, discovery, identity, capabilities, doctor, images.
 */
import { z } from "zod";
import type { Diagnosis } from "../../doctor/doctor.ts";
import { imageSchema } from "../../model/image.ts";
import { roles } from "../../model/principal.ts";
import { hasProject, hasRole } from "../../model/principal.ts";
import { ok, type Reply } from "../reply.ts";
import { route, type Route } from "../route.ts";
import type { Services } from "../services.ts";

/** A finding of the doctor, in answers. */
export const findingSchema = z
  .object({
    check: z.string(),
    status: z.enum(["pass", "warn", "fail"]),
    message: z.string(),
    hint: z.string().optional(),
  })
  .meta({ id: "Finding" });

/** A diagnosis, in answers. */
export const diagnosisSchema = z
  .object({ provider: z.string(), healthy: z.boolean(), findings: z.array(findingSchema) })
  .meta({ id: "Diagnosis" });

const capabilitiesSchema = z
  .object({
    provider: z.string(),
    snapshots: z.boolean(),
    networks: z.boolean(),
    ttl: z.boolean(),
    liveMigration: z.boolean(),
    console: z.boolean(),
    goldenImages: z.boolean(),
    restart: z.boolean(),
    pause: z.boolean(),
    forceStop: z.boolean(),
    resize: z.boolean(),
    clone: z.boolean(),
  })
  .meta({ id: "Capabilities" });

const readySchema = z
  .object({ provider: z.string(), status: z.enum(["ready", "not-ready"]) })
  .meta({ id: "Readiness" });

/** The answer of a diagnosis: 503 when something failed, with the same body. */
export function diagnosisReply(diagnosis: Diagnosis): Reply {
  return { status: diagnosis.healthy ? 200 : 503, json: diagnosis };
}

/** Health, identity, capabilities, doctor, images. */
export function metaRoutes(services: Services): Route[] {
  const { provider, doctor, inventory, metrics, store, edges } = services;
  const plain = { contentType: "text/plain; version=0.0.4; charset=utf-8", schema: z.string() };
  return [
    route(
      {
        method: "GET",
        path: "/healthz",
        group: "health",
        summary: "The process lives.",
        access: { kind: "public" },
        answers: {
          200: {
            description: "It does.",
            schema: z.object({ status: z.literal("ok") }).meta({ id: "Liveness" }),
          },
        },
      },
      () => ok({ status: "ok" }),
    ),
    route(
      {
        method: "GET",
        path: "/readyz",
        group: "health",
        summary: "Provider and store can be used.",
        access: { kind: "public" },
        answers: {
          200: { description: "They can.", schema: readySchema },
          503: { description: "They cannot.", schema: readySchema },
        },
      },
      async () => {
        try {
          await store.revision();
          await doctor.health();
          return ok({ provider: provider.name, status: "ready" });
        } catch (error) {
          edges.log.warn("not ready", { problem: error instanceof Error ? error.message : String(error) });
          return { status: 503, json: { provider: provider.name, status: "not-ready" } };
        }
      },
    ),
    route(
      {
        method: "GET",
        path: "/metrics",
        group: "health",
        summary: "Metrics in the Prometheus text format.",
        access: { kind: "public" },
        answers: { 200: { description: "The metrics.", ...plain } },
      },
      () => ({ status: 200, content: { type: plain.contentType, body: metrics.text() } }),
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/me",
        group: "meta",
        summary: "Who the caller is.",
        access: { kind: "any" },
        answers: {
          200: {
            description: "The caller.",
            schema: z
              .object({ name: z.string(), role: z.enum(roles), projects: z.array(z.string()) })
              .meta({ id: "Identity" }),
          },
        },
      },
      ({ principal }) => ok({ name: principal.name, role: principal.role, projects: principal.projects }),
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/projects",
        group: "meta",
        summary: "Configured projects the caller can view.",
        access: { kind: "any" },
        answers: {
          200: {
            description: "The projects, in configured order.",
            schema: z
              .object({ items: z.array(z.string()), defaultProject: z.string().optional() })
              .meta({ id: "ProjectList" }),
          },
        },
      },
      ({ principal }) => {
        const items = services.projects().filter((project) => hasProject(principal, project));
        const fallback = services.defaultProject();
        return ok({ items, ...(items.includes(fallback) ? { defaultProject: fallback } : {}) });
      },
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/capabilities",
        group: "meta",
        summary: "What the provider can do.",
        access: { kind: "any" },
        answers: { 200: { description: "The capabilities.", schema: capabilitiesSchema } },
      },
      async () =>
        ok({
          provider: provider.name,
          ...provider.capabilities,
          goldenImages: await services.goldenImages(),
        }),
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/doctor",
        group: "meta",
        summary: "Whether this installation is fit for use.",
        access: { kind: "any" },
        answers: {
          200: { description: "It is.", schema: diagnosisSchema },
          503: { description: "It is not.", schema: diagnosisSchema },
        },
      },
      async () => diagnosisReply(await doctor.diagnose()),
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/images",
        group: "images",
        summary: "Images by name, with their availability here.",
        access: { kind: "any" },
        answers: {
          200: {
            description: "All images of the catalog.",
            schema: z.object({ items: z.array(imageSchema) }).meta({ id: "ImageList" }),
          },
        },
      },
      async ({ principal }) => {
        const items = await inventory.list();
        // Where a disk lies on the host is for administrators.
        return ok({
          items: hasRole(principal, "admin") ? items : items.map(({ storagePath: _, ...rest }) => rest),
        });
      },
    ),
  ];
}
