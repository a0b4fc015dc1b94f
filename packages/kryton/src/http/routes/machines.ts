/**
 * Routes of machines.
 */
import { z } from "zod";
import {
  cloneMachineSchema,
  createMachineSchema,
  machineSchema,
  machineStates,
  updateMachineSchema,
} from "../../model/machine.ts";
import { invalidRequest } from "../../model/errors.ts";
import {
  cursorAfter,
  cursorOf,
  cursorParameter,
  flagOf,
  labelParameter,
  labelsOf,
  limitOf,
  limitParameter,
  projectParameter,
  stateParameter,
} from "../parameters.ts";
import { noContent, ok } from "../reply.ts";
import { route, routeWithBody, type Access, type Route } from "../route.ts";
import type { Services } from "../services.ts";

const read: Access = { kind: "project", role: "viewer", from: "query" };
const write: Access = { kind: "project", role: "operator", from: "query" };
const group = "machines";
const path = "/api/v1/machines/{id}";
const one = { description: "The machine.", schema: machineSchema };
const listSchema = z
  .object({ items: z.array(machineSchema), nextCursor: z.string().optional() })
  .meta({ id: "MachineList" });
const summarySchema = z
  .object({
    project: z.string(),
    provider: z.string(),
    machines: z.int(),
    running: z.int(),
    stopped: z.int(),
    attention: z.int(),
    cpu: z.int(),
    memoryMiB: z.int(),
    diskGiB: z.int(),
    quota: z
      .object({
        machines: z.int().optional(),
        cpu: z.int().optional(),
        memoryMiB: z.int().optional(),
        diskGiB: z.int().optional(),
      })
      .optional()
      .meta({ description: "What the project may ask for together; absent: no limit." }),
  })
  .meta({ id: "Summary" });

/** Longest wait of a stop before force, seconds. */
const maxForceAfterSeconds = 3_600;

function stopOf(force: boolean, after: string | undefined): { force?: boolean; forceAfterSeconds?: number } {
  if (after === undefined) return force ? { force } : {};
  const seconds = /^\d{1,4}$/.test(after) ? Number(after) : 0;
  if (seconds < 1 || seconds > maxForceAfterSeconds) {
    throw invalidRequest(`forceAfterSeconds must be a whole number from 1 to ${maxForceAfterSeconds}`);
  }
  if (force) throw invalidRequest("force and forceAfterSeconds exclude each other");
  return { forceAfterSeconds: seconds };
}

/** The id of the machine a request is about. */
export function idOf(call: { readonly params: Readonly<Record<string, string>> }): string {
  return call.params["id"] ?? "";
}

/** Machines: list, create, read, change, power, delete, sum up. */
export function machineRoutes({ machines, metrics, provider, config }: Services): Route[] {
  const power = (verb: "start" | "restart" | "pause" | "resume", summary: string): Route =>
    route(
      {
        method: "POST",
        path: `${path}/${verb}`,
        group,
        summary,
        access: write,
        query: [projectParameter],
        answers: { 200: one },
      },
      async (call) => {
        const machine = await machines[verb](call.project, idOf(call), call.asking);
        metrics.operation(verb);
        return ok(machine);
      },
    );
  return [
    route(
      {
        method: "GET",
        path: "/api/v1/machines",
        group,
        summary: "Machines of a project, by id.",
        access: read,
        query: [projectParameter, limitParameter, cursorParameter, stateParameter, labelParameter],
        answers: { 200: { description: "A page of machines.", schema: listSchema } },
      },
      async (call) => {
        const state = call.query.get("state") || undefined;
        if (state !== undefined && !machineStates.some((known) => known === state)) {
          throw invalidRequest(`state must be one of ${machineStates.join(", ")}`);
        }
        const { items, next } = await machines.list(
          call.project,
          { limit: limitOf(call.query), after: cursorOf(call.query) },
          { labels: labelsOf(call.query), state },
        );
        return ok({ items, ...(next === undefined ? {} : { nextCursor: cursorAfter(next) }) });
      },
    ),
    routeWithBody(
      {
        method: "POST",
        path: "/api/v1/machines",
        group,
        summary: "Create a machine.",
        access: { kind: "project", role: "operator", from: "body" },
        answers: { 201: one },
      },
      createMachineSchema,
      async (call) => {
        const machine = await machines.create(call.project, call.body, call.asking);
        metrics.operation("create");
        return { status: 201, json: machine };
      },
    ),
    route(
      {
        method: "GET",
        path,
        group,
        summary: "A machine.",
        access: read,
        query: [projectParameter],
        answers: { 200: one },
      },
      async (call) => ok(await machines.get(call.project, idOf(call))),
    ),
    routeWithBody(
      {
        method: "PATCH",
        path,
        group,
        summary: "Rename, label, resize, or set a new expiry.",
        access: write,
        query: [projectParameter],
        answers: { 200: one },
      },
      updateMachineSchema,
      async (call) => {
        const machine = await machines.update(call.project, idOf(call), call.body, call.asking);
        metrics.operation("update");
        return ok(machine);
      },
    ),
    route(
      {
        method: "DELETE",
        path,
        group,
        summary: "Delete a machine.",
        access: write,
        query: [projectParameter],
        answers: { 204: { description: "The deletion was accepted." } },
      },
      async (call) => {
        await machines.delete(call.project, idOf(call), call.asking);
        metrics.operation("delete");
        return noContent;
      },
    ),
    power("start", "Start a machine."),
    route(
      {
        method: "POST",
        path: `${path}/stop`,
        group,
        summary: "Stop a machine.",
        access: write,
        query: [
          projectParameter,
          { name: "force", description: "Cut the power instead of asking the guest.", schema: z.boolean() },
          {
            name: "forceAfterSeconds",
            description: "Ask the guest, and cut the power when it has not obeyed after so many seconds.",
            schema: z.int().min(1).max(maxForceAfterSeconds),
          },
        ],
        answers: { 200: one },
      },
      async (call) => {
        const how = stopOf(flagOf(call.query, "force"), call.query.get("forceAfterSeconds") || undefined);
        const machine = await machines.stop(call.project, idOf(call), how, call.asking);
        metrics.operation("stop");
        return ok(machine);
      },
    ),
    power("restart", "Restart a machine."),
    power("pause", "Freeze a running machine."),
    power("resume", "Let a paused machine go on."),
    routeWithBody(
      {
        method: "POST",
        path: `${path}/clone`,
        group,
        summary: "Create a machine with a copy of this one's disk.",
        access: write,
        query: [projectParameter],
        answers: { 201: one },
      },
      cloneMachineSchema,
      async (call) => {
        const machine = await machines.clone(call.project, idOf(call), call.body, call.asking);
        metrics.operation("clone");
        return { status: 201, json: machine };
      },
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/summary",
        group,
        summary: "Counts and requested sizes of a project's machines.",
        access: read,
        query: [projectParameter],
        answers: { 200: { description: "The summary.", schema: summarySchema } },
      },
      async (call) => {
        const sum = {
          project: call.project,
          provider: provider.name,
          machines: 0,
          running: 0,
          stopped: 0,
          attention: 0,
          cpu: 0,
          memoryMiB: 0,
          diskGiB: 0,
        };
        for await (const machine of machines.each(call.project)) {
          sum.machines++;
          if (machine.state === "running") sum.running++;
          else if (machine.state === "stopped") sum.stopped++;
          else if (machine.state === "failed" || machine.state === "unknown") sum.attention++;
          sum.cpu += machine.spec.compute.cpu;
          sum.memoryMiB += machine.spec.compute.memoryMiB;
          sum.diskGiB += machine.spec.disk.sizeGiB;
        }
        const quota = config.quotas.get(call.project) ?? config.quotas.get("*");
        return ok({ ...sum, ...(quota ? { quota } : {}) });
      },
    ),
  ];
}
