/**
 * Routes of operations: the provider work behind the verbs.
 */
import { z } from "zod";
import { invalidRequest } from "../../model/errors.ts";
import { operationSchema, operationStates, type Operation } from "../../model/operation.ts";
import { allowed } from "../../model/principal.ts";
import { KrytonError } from "../../model/errors.ts";
import {
  cursorAfter,
  cursorOf,
  cursorParameter,
  limitOf,
  limitParameter,
  projectParameter,
} from "../parameters.ts";
import { ok } from "../reply.ts";
import { route, type Call, type Route } from "../route.ts";
import type { Services } from "../services.ts";
import { idOf } from "./machines.ts";

const group = "operations";
const one = { description: "The operation.", schema: operationSchema };
const listSchema = z
  .object({ items: z.array(operationSchema), nextCursor: z.string().optional() })
  .meta({ id: "OperationList" });

/** Operations: list, read, cancel, retry. */
export function operationRoutes({ operations, machines }: Services): Route[] {
  const own = async (call: Pick<Call<unknown>, "principal" | "params">): Promise<Operation> => {
    const { value } = await operations.find(call.principal, idOf(call));
    if (allowed(call.principal, "operator", value.project)) return value;
    throw new KrytonError("FORBIDDEN", "this needs the role operator", {
      hint: "Ask an administrator for it.",
    });
  };
  return [
    route(
      {
        method: "GET",
        path: "/api/v1/operations",
        group,
        summary: "Provider work of a project, newest first.",
        access: { kind: "project", role: "viewer", from: "query" },
        query: [
          projectParameter,
          limitParameter,
          cursorParameter,
          { name: "state", description: "Only operations in this state.", schema: z.enum(operationStates) },
        ],
        answers: { 200: { description: "A page of operations.", schema: listSchema } },
      },
      async (call) => {
        const state = call.query.get("state") || undefined;
        if (state !== undefined && !operationStates.some((known) => known === state)) {
          throw invalidRequest(`state must be one of ${operationStates.join(", ")}`);
        }
        const { items, next } = await operations.list(
          call.project,
          limitOf(call.query),
          cursorOf(call.query),
          state,
        );
        return ok({ items, ...(next === undefined ? {} : { nextCursor: cursorAfter(next) }) });
      },
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/operations/{id}",
        group,
        summary: "An operation, if the caller may see its project.",
        access: { kind: "any" },
        answers: { 200: one },
      },
      async (call) => ok((await operations.find(call.principal, idOf(call))).value),
    ),
    route(
      {
        method: "POST",
        path: "/api/v1/operations/{id}/cancel",
        group,
        summary: "Cancel an operation (operator of its project).",
        access: { kind: "any" },
        answers: { 202: one },
      },
      async (call) => ({ status: 202, json: await operations.cancel((await own(call)).id) }),
    ),
    route(
      {
        method: "POST",
        path: "/api/v1/operations/{id}/retry",
        group,
        summary: "Do what failed or was cancelled once more, as a new operation (operator of its project).",
        access: { kind: "any" },
        answers: { 202: one },
      },
      async (call) => ({
        status: 202,
        json: await machines.retry(await own(call), call.principal.name),
      }),
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/machines/{id}/operations",
        group,
        summary: "The queue and the history of a machine's provider work, newest first.",
        access: { kind: "project", role: "viewer", from: "query" },
        query: [projectParameter],
        answers: {
          200: {
            description: "Operations of the machine.",
            schema: z.object({ items: z.array(operationSchema) }).meta({ id: "MachineOperations" }),
          },
        },
      },
      async (call) => {
        await machines.find(call.project, idOf(call));
        return ok({ items: await operations.ofMachine(idOf(call)) });
      },
    ),
  ];
}
