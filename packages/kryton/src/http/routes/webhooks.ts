/**
 * Routes of webhooks: sinks, their delivery, what could not be delivered, delivering again. Admins only.
 */
import { z } from "zod";
import { boundedText } from "../../model/bytes.ts";
import { invalidRequest } from "../../model/errors.ts";
import { createSinkSchema, deadLetterSchema, sinkSchema } from "../../webhooks/sink.ts";
import { noContent, ok } from "../reply.ts";
import { route, routeWithBody, type Access, type Route } from "../route.ts";
import type { Services } from "../services.ts";
import { idOf } from "./machines.ts";

const admin: Access = { kind: "global", role: "admin" };
const group = "events";
const path = "/api/v1/webhooks";

/** Webhooks: list, add, remove, dead letters, replay. */
export function webhookRoutes({ webhooks, settings }: Services): Route[] {
  return [
    route(
      {
        method: "GET",
        path,
        group,
        summary: "Webhooks and how their delivery goes.",
        access: admin,
        answers: {
          200: {
            description: "All webhooks.",
            schema: z.object({ items: z.array(sinkSchema) }).meta({ id: "WebhookList" }),
          },
        },
      },
      async () => {
        await settings.refresh();
        return ok({ items: await webhooks.list() });
      },
    ),
    routeWithBody(
      {
        method: "POST",
        path,
        group,
        summary: "Add a webhook; it gets what happens from now on.",
        access: admin,
        answers: { 201: { description: "The webhook.", schema: sinkSchema } },
      },
      createSinkSchema,
      async ({ body }) => {
        if (!URL.canParse(body.url) || !/^https?:$/.test(new URL(body.url).protocol)) {
          throw invalidRequest("url must be an http or https URL");
        }
        return { status: 201, json: await webhooks.create(body) };
      },
    ),
    route(
      {
        method: "DELETE",
        path: `${path}/{id}`,
        group,
        summary: "Remove a webhook and its dead letters.",
        access: admin,
        answers: { 204: { description: "It is gone." } },
      },
      async (call) => {
        await webhooks.delete(idOf(call));
        return noContent;
      },
    ),
    route(
      {
        method: "GET",
        path: `${path}/{id}/dead-letters`,
        group,
        summary: "Events that could not be delivered, oldest first.",
        access: admin,
        answers: {
          200: {
            description: "The dead letters.",
            schema: z.object({ items: z.array(deadLetterSchema) }).meta({ id: "DeadLetterList" }),
          },
        },
      },
      async (call) => ok({ items: await webhooks.deadLetters(idOf(call)) }),
    ),
    routeWithBody(
      {
        method: "POST",
        path: `${path}/{id}/replay`,
        group,
        summary: "Deliver again what follows an event in the log; dead letters are dropped.",
        access: admin,
        answers: {
          202: {
            description: "Delivery starts over.",
            schema: z.object({ after: z.string() }).meta({ id: "Replay" }),
          },
        },
      },
      z
        .strictObject({
          after: boundedText(64).meta({ description: "Event id; empty: all that is in the log." }),
        })
        .meta({ id: "ReplayRequest" }),
      async (call) => {
        await webhooks.replay(idOf(call), call.body.after);
        return { status: 202, json: { after: call.body.after } };
      },
    ),
  ];
}
