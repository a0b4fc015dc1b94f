/**
 * Routes of snapshots.
 */
import { z } from "zod";
import { boundedText } from "../../model/bytes.ts";
import { snapshotSchema } from "../../model/machine.ts";
import { maxSnapshotName } from "../../service/snapshots.ts";
import { flagOf, projectParameter } from "../parameters.ts";
import { noContent, ok } from "../reply.ts";
import { route, routeWithBody, type Route } from "../route.ts";
import type { Services } from "../services.ts";
import { idOf } from "./machines.ts";

const group = "machines";
const path = "/api/v1/machines/{id}";
const query = [projectParameter];
const takeSchema = z
  .strictObject({ name: boundedText(maxSnapshotName).optional() })
  .meta({ id: "TakeSnapshot" });
const listSchema = z.object({ items: z.array(snapshotSchema) }).meta({ id: "SnapshotList" });

/** Snapshots: take, list, restore, delete. */
export function snapshotRoutes({ snapshots, metrics }: Services): Route[] {
  return [
    routeWithBody(
      {
        method: "POST",
        path: `${path}/snapshot`,
        group,
        summary: "Take a snapshot.",
        access: { kind: "project", role: "operator", from: "query" },
        query,
        bodyOptional: true,
        answers: { 201: { description: "The snapshot.", schema: snapshotSchema } },
      },
      takeSchema,
      async (call) => {
        const snapshot = await snapshots.create(call.project, idOf(call), call.body.name, call.asking);
        metrics.operation("snapshot");
        return { status: 201, json: snapshot };
      },
    ),
    route(
      {
        method: "GET",
        path: `${path}/snapshots`,
        group,
        summary: "Snapshots of a machine, newest first.",
        access: { kind: "project", role: "viewer", from: "query" },
        query,
        answers: { 200: { description: "All snapshots.", schema: listSchema } },
      },
      async (call) => ok({ items: await snapshots.list(call.project, idOf(call)) }),
    ),
    route(
      {
        method: "POST",
        path: `${path}/snapshots/{sid}/restore`,
        group,
        summary: "Put a machine back to a snapshot.",
        access: { kind: "project", role: "operator", from: "query" },
        query: [
          ...query,
          { name: "start", description: "Start the machine afterwards.", schema: z.boolean() },
        ],
        answers: { 202: { description: "The snapshot.", schema: snapshotSchema } },
      },
      async (call) => {
        const { project, params, asking } = call;
        const snapshot = await snapshots.restore(
          project,
          idOf(call),
          params["sid"] ?? "",
          flagOf(call.query, "start"),
          asking,
        );
        metrics.operation("snapshot-restore");
        return { status: 202, json: snapshot };
      },
    ),
    route(
      {
        method: "DELETE",
        path: `${path}/snapshots/{sid}`,
        group,
        summary: "Delete a snapshot.",
        access: { kind: "project", role: "operator", from: "query" },
        query,
        answers: { 204: { description: "The snapshot is gone." } },
      },
      async (call) => {
        await snapshots.delete(call.project, idOf(call), call.params["sid"] ?? "", call.asking);
        metrics.operation("snapshot-delete");
        return noContent;
      },
    ),
  ];
}
