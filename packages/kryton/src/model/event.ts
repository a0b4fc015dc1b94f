/**
 * What happened, as a CloudEvent (CloudEvents 1.0, structured mode).
 *
 * Types are additive: those of the contract keep their data keys; state changes that nobody asked
 * for (`machine.running`, `machine.failed`, …) and operations come on top.
 */
import { z } from "zod";
import { timeSchema } from "./bytes.ts";

/** Source of every event of this API. */
export const eventSource = "kryton://control-plane";

/** A CloudEvent. */
export const eventSchema = z
  .object({
    specversion: z.literal("1.0"),
    id: z.uuid(),
    source: z.string(),
    type: z.string(),
    subject: z.string().optional(),
    time: timeSchema,
    datacontenttype: z.literal("application/json"),
    data: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: "Event" });
/** See {@link eventSchema}. */
export type CloudEvent = z.infer<typeof eventSchema>;

/** Every type of event this API publishes. */
export const eventTypes = [
  "io.kryton.machine.created",
  "io.kryton.machine.install.started",
  "io.kryton.machine.started",
  "io.kryton.machine.stopped",
  "io.kryton.machine.restarted",
  "io.kryton.machine.paused",
  "io.kryton.machine.resumed",
  "io.kryton.machine.updated",
  "io.kryton.machine.cloned",
  "io.kryton.machine.deleted",
  "io.kryton.machine.expired",
  "io.kryton.machine.running",
  "io.kryton.machine.failed",
  "io.kryton.machine.state.changed",
  "io.kryton.operation.failed",
  "io.kryton.operation.cancelled",
  "io.kryton.snapshot.created",
  "io.kryton.snapshot.restored",
  "io.kryton.snapshot.deleted",
  "io.kryton.snapshot.failed",
  "io.kryton.settings.updated",
  "io.kryton.storage.configured",
  "io.kryton.storage.setup.started",
  "io.kryton.storage.setup.finished",
  "io.kryton.golden.started",
  "io.kryton.golden.finished",
] as const;
/** One of {@link eventTypes}. */
export type EventType = (typeof eventTypes)[number];

/** An event before it has an identity and a time. */
export interface EventDraft {
  readonly type: EventType;
  readonly subject?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}
