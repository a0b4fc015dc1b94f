/**
 * Status written together with its story: each condition that changed becomes an Event, so that `kubectl describe`
 * tells how an object got where it is.
 *
 * An Event is made for a change of status or reason, never for a message alone, so steady objects are silent. The
 * same change again raises the count of its Event. Events are a convenience: failing to write one fails nothing.
 */
import { createHash } from "node:crypto";
import {
  findCondition,
  formatTime,
  resource,
  shape,
  type CachedClient,
  type Condition,
  type KubeObject,
  type Resource,
} from "@kontinuum/controller";
import { isCoded, messageOf, type Clock, type JsonObject, type Log } from "@kontinuum/std";

interface Reported extends KubeObject {
  status?: { conditions?: Condition[] };
}

interface KubeEvent extends KubeObject {
  involvedObject: JsonObject;
  reason?: string;
  message?: string;
  type?: string;
  count?: number;
  firstTimestamp?: string;
  lastTimestamp?: string;
  source?: JsonObject;
}

const events: Resource<KubeEvent> = resource<KubeEvent>({
  group: "",
  version: "v1",
  kind: "Event",
  plural: "events",
  shape: shape.object<KubeEvent>({
    ...shape.kubeObject,
    involvedObject: shape.map(shape.unknown),
    reason: shape.optional(shape.string),
    message: shape.optional(shape.string),
    type: shape.optional(shape.string),
    count: shape.optional(shape.number),
    firstTimestamp: shape.optional(shape.string),
    lastTimestamp: shape.optional(shape.string),
    source: shape.optional(shape.map(shape.unknown)),
  }),
});

/** Longest message of an Event (Kubernetes API reference, Event v1). */
const maxMessage = 1024;

/** Reasons that a person should look at, by how they end. */
const alarming = /(Failed|Abandoned|Refused|Changed|Unhealthy|NotHealthy|InvalidSpec|NotFound)$/;

/** What an Event can be written with. */
export interface EventContext {
  readonly client: CachedClient;
  readonly clock: Clock;
  readonly log: Log;
}

/** Writes the status and tells of its changes. Returns the object as the server made it. */
export async function writeStatus<T extends Reported>(
  { client, clock, log }: EventContext,
  kind: Resource<T>,
  object: T,
  status: NonNullable<T["status"]>,
): Promise<T> {
  const before = object.status?.conditions ?? [];
  const written = await client.updateStatus(kind, { ...object, status });
  for (const condition of transitions(before, status.conditions ?? [])) {
    try {
      await record(client, clock, written, kind, condition);
    } catch (error) {
      log.debug("an event could not be written", { reason: messageOf(error) });
    }
  }
  return written;
}

/** Conditions whose status or reason is not what it was. Pure. */
export function transitions(before: readonly Condition[], after: readonly Condition[]): readonly Condition[] {
  return after.filter((condition) => {
    const earlier = findCondition(before, condition.type);
    return earlier?.status !== condition.status || earlier.reason !== condition.reason;
  });
}

async function record(
  client: CachedClient,
  clock: Clock,
  object: KubeObject,
  kind: Resource,
  { type, status, reason, message }: Condition,
): Promise<void> {
  const { namespace = "", name, uid = "", resourceVersion = "" } = object.metadata;
  const hash = createHash("sha256").update(`${uid} ${type} ${status} ${reason}`).digest("hex").slice(0, 16);
  const ref = { namespace, name: `${name.slice(0, 200)}.${hash}` };
  const now = formatTime(clock.now());
  const text = `${type}: ${message || status}`.slice(0, maxMessage);
  const present = await client.live.find(events, ref);
  if (present) {
    const count = (present.count ?? 1) + 1;
    await client.live.update(events, { ...present, count, lastTimestamp: now, message: text });
    return;
  }
  try {
    await client.live.create(events, {
      apiVersion: "v1",
      kind: "Event",
      metadata: ref,
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: kind.kind,
        namespace,
        name,
        uid,
        resourceVersion,
      },
      reason,
      message: text,
      type: status !== "True" && alarming.test(reason) ? "Warning" : "Normal",
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component: "kontinuum" },
    });
  } catch (error) {
    // Another worker told the same story at the same moment.
    if (!isCoded(error, "already_exists")) throw error;
  }
}
