/**
 * Routes that describe the API: discovery and the OpenAPI document.
 */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { ok } from "../reply.ts";
import { route, type Route } from "../route.ts";
import type { Services } from "../services.ts";

/** Where the committed document lies. */
export const openapiFile = new URL("../../../openapi.yaml", import.meta.url);

const discoverySchema = z
  .object({
    name: z.string(),
    version: z.string(),
    product: z.string(),
    description: z.string(),
    provider: z.string(),
    openapi: z.string(),
    basePath: z.string(),
    auth: z.object({ mode: z.string(), schemes: z.array(z.string()), header: z.string() }),
    health: z.object({ live: z.string(), ready: z.string(), metrics: z.string() }),
    endpoints: z.array(
      z.object({ method: z.string(), path: z.string(), group: z.string(), description: z.string() }),
    ),
  })
  .meta({ id: "Discovery" });

/** Discovery lists `all()`: every route of the server that is not hidden. */
export function discoveryRoutes({ provider, authenticator }: Services, all: () => readonly Route[]): Route[] {
  const yaml = (path: string, hidden: boolean): Route =>
    route(
      {
        method: "GET",
        path,
        group: "meta",
        summary: "This API as an OpenAPI 3.1 document.",
        access: { kind: "public" },
        hidden,
        answers: {
          200: { description: "The document.", contentType: "application/yaml", schema: z.unknown() },
        },
      },
      async () => ({
        status: 200,
        content: { type: "application/yaml; charset=utf-8", body: await readFile(openapiFile) },
        headers: { "Cache-Control": "public, max-age=300" },
      }),
    );
  return [
    yaml("/openapi.yaml", false),
    yaml("/api/openapi.yaml", true),
    route(
      {
        method: "GET",
        path: "/api/v1",
        group: "meta",
        summary: "What this API offers and how to sign in.",
        access: { kind: "public" },
        answers: { 200: { description: "The offer.", schema: discoverySchema } },
      },
      () =>
        ok({
          name: "kryton",
          version: "1.0.0",
          product: "Kryton",
          description: "One stable machine API over interchangeable machine providers.",
          provider: provider.name,
          openapi: "/openapi.yaml",
          basePath: "/api/v1",
          auth: { mode: authenticator.mode, schemes: ["bearer", "proxy"], header: "Authorization" },
          health: { live: "/healthz", ready: "/readyz", metrics: "/metrics" },
          endpoints: all()
            .filter((entry) => !entry.hidden)
            .map(({ method, path, group, summary }) => ({ method, path, group, description: summary })),
        }),
    ),
  ];
}
