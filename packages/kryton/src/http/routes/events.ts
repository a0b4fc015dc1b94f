/**
 * Routes of events: the history and the live stream.
 */
import { z } from "zod";
import { KrytonError } from "../../model/errors.ts";
import { eventSchema, type CloudEvent } from "../../model/event.ts";
import { hasProject } from "../../model/principal.ts";
import { maxStreams } from "../../events/stream-hub.ts";
import { responseSink } from "../../events/stream-output.ts";
import { sees } from "../../events/visibility.ts";
import { limitOf, limitParameter } from "../parameters.ts";
import { alreadySent, ok } from "../reply.ts";
import { route, type Outcome, type QueryParameter, type Route } from "../route.ts";
import type { Services } from "../services.ts";

const group = "events";
const typeParameter: QueryParameter = {
  name: "type",
  description: "Only events of this type.",
  schema: z.string(),
};
const projectFilter: QueryParameter = {
  name: "project",
  description: "Only events of this project.",
  schema: z.string(),
};
const historySchema = z
  .object({
    items: z.array(eventSchema),
    window: z
      .object({ oldestId: z.string().optional(), newestId: z.string().optional(), retention: z.int() })
      .meta({
        description: "What the log still holds: the oldest and newest visible event, and how many are kept.",
      }),
  })
  .meta({ id: "EventList" });

/** Events: history and stream. */
export function eventRoutes({ events, streams, authenticator }: Services): Route[] {
  const filter = (query: URLSearchParams): ((event: CloudEvent) => boolean) | undefined => {
    const type = query.get("type");
    const project = query.get("project");
    if (!type && !project) return undefined;
    return (event) => (!type || event.type === type) && (!project || event.data?.["project"] === project);
  };
  return [
    route(
      {
        method: "GET",
        path: "/api/v1/events",
        group,
        summary: "What happened, newest first.",
        access: { kind: "any" },
        query: [limitParameter, projectFilter, typeParameter],
        answers: { 200: { description: "The newest visible events.", schema: historySchema } },
      },
      async ({ principal, query }) => {
        await events.catchUp();
        const limit = limitOf(query);
        const matches = filter(query) ?? (() => true);
        const visible = events.window.filter(({ event }) => sees(principal, event));
        const items = visible
          .filter(({ event }) => matches(event))
          .slice(-limit)
          .reverse();
        const [oldest, newest] = [visible[0], visible.at(-1)];
        return ok({
          items: items.map(({ event }) => event),
          window: {
            ...(oldest ? { oldestId: oldest.event.id } : {}),
            ...(newest ? { newestId: newest.event.id } : {}),
            retention: events.retention,
          },
        });
      },
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/events/stream",
        group,
        summary: "What happens, as it happens (server-sent events); resumes after Last-Event-ID.",
        access: { kind: "any" },
        query: [
          projectFilter,
          typeParameter,
          {
            name: "lastEventId",
            description: "As the header, for clients that cannot set one.",
            schema: z.string(),
          },
        ],
        answers: {
          200: { description: "The stream.", contentType: "text/event-stream", schema: z.string() },
        },
      },
      async ({ principal, query, incoming, outgoing }): Promise<Outcome> => {
        if (streams.size >= maxStreams) {
          throw new KrytonError("STREAM_UNSUPPORTED", "too many event streams are open", {
            retryAfterMs: 5_000,
          });
        }
        const header = incoming.headers["last-event-id"];
        const lastEventId =
          (typeof header === "string" ? header : undefined) ?? query.get("lastEventId") ?? undefined;
        await events.catchUp();
        outgoing.writeHead(200, {
          "Content-Type": "text/event-stream",
          "Cache-Control": "no-cache",
          Connection: "keep-alive",
          "X-Accel-Buffering": "no",
        });
        if (incoming.method === "HEAD") {
          outgoing.end();
          return alreadySent;
        }
        const project = query.get("project");
        const matches = project && !hasProject(principal, project) ? () => false : filter(query);
        const remove = streams.add({
          sink: responseSink(outgoing),
          principal,
          lastEventId,
          ...(matches ? { matches } : {}),
          valid: () => authenticator.stillValid(principal),
        });
        outgoing.once("close", remove);
        return alreadySent;
      },
    ),
  ];
}
