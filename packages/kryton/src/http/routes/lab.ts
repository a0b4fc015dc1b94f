/**
 * Lab bootstrap: hands a browser on this machine the lab's token, and only when three switches agree.
 *
 * The request must come from loopback, under a local name, directly: anything a proxy forwarded or a page
 * elsewhere sent is answered as if it were off.
 */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { guardLoopback, isLocal } from "../loopback-guard.ts";
import { ok } from "../reply.ts";
import { route, type Route } from "../route.ts";
import type { Services } from "../services.ts";

const forwarded = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "via",
];

/** `GET /api/v1/lab/bootstrap`. */
export function labRoutes({ config, edges }: Services): Route[] {
  return [
    route(
      {
        method: "GET",
        path: "/api/v1/lab/bootstrap",
        group: "meta",
        summary: "The lab token, for a browser on the same machine, when lab auto-auth is on.",
        access: { kind: "public" },
        hidden: true,
        answers: {
          200: {
            description: "Whether a token is handed out, and the token.",
            schema: z
              .object({ autoAuth: z.boolean(), token: z.string().optional() })
              .meta({ id: "LabBootstrap" }),
          },
        },
      },
      async ({ incoming }) => {
        const off = ok({ autoAuth: false });
        if (!config.labAutoAuth || config.labTokenFile === "") return off;
        const address = (incoming.socket.remoteAddress ?? "").replace(/^::ffff:/, "");
        const site = incoming.headers["sec-fetch-site"];
        const crossSite = site !== undefined && site !== "same-origin" && site !== "none";
        if (!isLocal(address) || crossSite || forwarded.some((name) => incoming.headers[name] !== undefined))
          return off;
        try {
          guardLoopback(incoming, config.allowedHosts);
          const token = (await readFile(config.labTokenFile, "utf8")).trim();
          return token === ""
            ? off
            : { ...ok({ autoAuth: true, token }), headers: { "Cache-Control": "no-store" } };
        } catch (error) {
          edges.log.warn("lab token is not handed out", {
            problem: error instanceof Error ? error.message : String(error),
          });
          return off;
        }
      },
    ),
  ];
}
