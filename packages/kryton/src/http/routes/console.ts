/**
 * Routes of consoles: tickets, the console page, the proxied web console. The VNC socket itself is an
 * upgrade and is served by `console/sockets.ts` behind the same checks.
 */
import { z } from "zod";
import { consolePage } from "../../console/page.ts";
import { proxyConsole } from "../../console/web-proxy.ts";
import { classify } from "../../operations/failure.ts";
import { refOf } from "../../operations/record.ts";
import { KrytonError } from "../../model/errors.ts";
import type { ConsoleTarget } from "../../provider-contract/contract.ts";
import { limited } from "../../provider-contract/limited.ts";
import { projectParameter } from "../parameters.ts";
import { ok, type Reply } from "../reply.ts";
import { route, type Call, type Method, type Outcome, type Route } from "../route.ts";
import type { Services } from "../services.ts";
import { idOf } from "./machines.ts";

const group = "machines";
const path = "/api/v1/machines/{id}";
const query = [
  projectParameter,
  { name: "console_ticket", description: "A console ticket, instead of credentials.", schema: z.string() },
];
const targetSchema = z
  .object({ kind: z.literal("vnc"), websocketUrl: z.string(), namespace: z.string(), name: z.string() })
  .meta({ id: "ConsoleTarget" });

/** Where the console of a machine is; throws `UNSUPPORTED` when the provider has none. */
export async function consoleTarget(
  { provider, machines, edges }: Services,
  project: string,
  id: string,
): Promise<ConsoleTarget> {
  const { value } = await machines.find(project, id);
  if (!provider.console) {
    throw new KrytonError("UNSUPPORTED", `provider ${provider.name} has no console`, {
      hint: "GET /api/v1/capabilities lists what it can do.",
    });
  }
  const { console } = provider;
  try {
    return await limited(edges.clock, targetLimitMs, (signal) =>
      console.target(refOf(value.machine), { signal, progress: () => {} }),
    );
  } catch (error) {
    throw classify(error);
  }
}

const targetLimitMs = 10_000;

/** Tickets, page, proxy. */
export function consoleRoutes(services: Services): Route[] {
  const { tickets, machines } = services;
  const open = async (call: Call<undefined>): Promise<Outcome> => {
    const html = wantsHtml(call);
    let target: ConsoleTarget;
    try {
      target = await consoleTarget(services, call.project, idOf(call));
    } catch (error) {
      const told = classify(error);
      if (!html || told.kryton === "UNSUPPORTED" || told.kryton === "NOT_FOUND") throw error;
      return pageReply(consolePage({ machine: idOf(call), project: call.project, bootError: told.message }));
    }
    if (target.kind === "web") return proxyConsole(call, target.upstreamUrl, services);
    if (html) return pageReply(consolePage({ machine: idOf(call), project: call.project, bootError: "" }));
    return ok({
      kind: "vnc",
      websocketUrl: `/api/v1/machines/${encodeURIComponent(idOf(call))}/vnc?project=${encodeURIComponent(call.project)}`,
      namespace: target.namespace,
      name: target.name,
    });
  };
  const console = (suffix: string, method: Method = "GET"): Route =>
    route(
      {
        method,
        path: `${path}/console${suffix}`,
        group,
        summary: "The console: a page, a proxied viewer, or where the VNC socket is.",
        // Whatever changes something behind the console is as good as its keyboard.
        access: { kind: "console", role: method === "GET" ? "viewer" : "operator" },
        query,
        hidden: suffix !== "",
        answers: { 200: { description: "The target of a VNC console.", schema: targetSchema } },
      },
      open,
    );
  return [
    route(
      {
        method: "POST",
        path: `${path}/console-ticket`,
        group,
        summary: "Ten minutes of this machine's console for a browser.",
        access: { kind: "project", role: "viewer", from: "query" },
        query: [projectParameter],
        hidden: true,
        answers: {
          200: {
            description: "The ticket; also set as a cookie.",
            schema: z.object({ ticket: z.string(), expiresAt: z.string() }).meta({ id: "ConsoleTicket" }),
          },
        },
      },
      async (call) => {
        const { principal, project, incoming, outgoing } = call;
        await machines.find(project, idOf(call));
        return ok(
          await tickets.issue({ project, machineId: idOf(call), principal }, incoming, (cookie) =>
            outgoing.setHeader("Set-Cookie", cookie),
          ),
        );
      },
    ),
    console(""),
    console("/{rest}"),
    ...(["POST", "PUT", "PATCH", "DELETE"] as const).map((method) => console("/{rest}", method)),
    route(
      {
        method: "GET",
        path: `${path}/vnc`,
        group,
        summary: "The VNC console as a WebSocket.",
        access: { kind: "console", role: "viewer" },
        query,
        answers: { 101: { description: "The socket." } },
      },
      async (call) => {
        await consoleTarget(services, call.project, idOf(call));
        throw new KrytonError("INVALID_REQUEST", "the VNC console is a WebSocket", {
          hint: "Connect with a WebSocket client, subprotocol binary.",
        });
      },
    ),
  ];
}

function wantsHtml({ incoming, query: parameters }: Call<undefined>): boolean {
  return (incoming.headers.accept ?? "").includes("text/html") || parameters.get("format") === "html";
}

function pageReply(html: string): Reply {
  return {
    status: 200,
    content: { type: "text/html; charset=utf-8", body: html },
    headers: { "Cache-Control": "no-store" },
  };
}
