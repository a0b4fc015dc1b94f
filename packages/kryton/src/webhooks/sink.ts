/**
 * Where events are delivered to, and how that is going.
 */
import { z } from "zod";
import { boundedText, timeSchema } from "../model/bytes.ts";

/** The sink that the settings' `eventWebhookUrl` stands for. */
export const settingsSinkId = "settings";
/** Sinks of one installation. */
export const maxSinks = 32;

/** The stored form of a sink. */
export const sinkRecordSchema = z.object({
  id: z.string(),
  url: z.string(),
  /** Only events of these types; empty for all. */
  types: z.array(z.string()),
  /** Only events of these projects; empty for all. */
  projects: z.array(z.string()),
  sealedSecret: z.string().optional(),
  createdAt: z.string(),
});
/** See {@link sinkRecordSchema}. */
export type SinkRecord = z.infer<typeof sinkRecordSchema>;

/** Body of `POST /api/v1/webhooks`. */
export const createSinkSchema = z
  .strictObject({
    url: boundedText(2048).min(1),
    secret: boundedText(1024).meta({ writeOnly: true }).optional(),
    types: z.array(boundedText(128)).max(64).optional(),
    projects: z.array(boundedText(63)).max(256).optional(),
  })
  .meta({ id: "CreateWebhook" });

/** How far delivery is: everything up to `eventId` was delivered or given up. */
export const cursorSchema = z.object({
  /** Id of the last event that is done; empty: none yet. */
  eventId: z.string(),
  delivered: z.int(),
  failed: z.int(),
  deadLetters: z.int(),
  lastStatus: z.int().optional(),
  lastError: z.string().optional(),
  lastAttemptAt: timeSchema.optional(),
  lastDeliveredAt: timeSchema.optional(),
  /** Events that left the log before they could be delivered. */
  missed: z.boolean().optional(),
});
/** See {@link cursorSchema}. */
export type Cursor = z.infer<typeof cursorSchema>;

/** A sink in answers. The secret is never shown. */
export const sinkSchema = z
  .object({
    id: z.string(),
    url: z.string(),
    types: z.array(z.string()),
    projects: z.array(z.string()),
    signed: z.boolean(),
    createdAt: timeSchema.optional(),
    delivery: cursorSchema,
  })
  .meta({ id: "Webhook" });
/** See {@link sinkSchema}. */
export type Sink = z.infer<typeof sinkSchema>;

/** An event that could not be delivered. */
export const deadLetterSchema = z
  .object({
    eventId: z.string(),
    type: z.string(),
    subject: z.string().optional(),
    attempts: z.int(),
    lastError: z.string(),
    at: timeSchema,
    event: z.unknown(),
  })
  .meta({ id: "DeadLetter" });
/** See {@link deadLetterSchema}. */
export type DeadLetter = z.infer<typeof deadLetterSchema>;

/** A cursor at the beginning of what is to come. */
export function freshCursor(eventId: string): Cursor {
  return { eventId, delivered: 0, failed: 0, deadLetters: 0 };
}
