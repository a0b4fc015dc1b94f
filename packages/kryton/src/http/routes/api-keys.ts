/**
 * Routes of API keys: who has one and when it was last used. Keys are made in the keys file, never here.
 */
import { z } from "zod";
import { timeSchema } from "../../model/bytes.ts";
import { roles } from "../../model/principal.ts";
import { ok } from "../reply.ts";
import { route, type Route } from "../route.ts";
import type { Services } from "../services.ts";

const keySchema = z
  .object({
    name: z.string(),
    role: z.enum(roles),
    projects: z.array(z.string()),
    expiresAt: timeSchema.optional(),
    lastUsedAt: timeSchema.optional().meta({ description: "Exact to about a minute; absent: never." }),
  })
  .meta({ id: "ApiKey" });

/** API keys: list. */
export function apiKeyRoutes({ authenticator, keyUse }: Services): Route[] {
  return [
    route(
      {
        method: "GET",
        path: "/api/v1/api-keys",
        group: "meta",
        summary: "API keys of the keys file, without their digests, and when each was last used.",
        access: { kind: "global", role: "admin" },
        answers: {
          200: {
            description: "The keys; none in other modes than apikey.",
            schema: z.object({ items: z.array(keySchema) }).meta({ id: "ApiKeyList" }),
          },
        },
      },
      async () => {
        const holders = authenticator.holders?.() ?? [];
        const used = holders.length > 0 ? await keyUse.list() : new Map<string, string>();
        return ok({
          items: holders.map((holder) => {
            const lastUsedAt = used.get(holder.name);
            return { ...holder, ...(lastUsedAt === undefined ? {} : { lastUsedAt }) };
          }),
        });
      },
    ),
  ];
}
