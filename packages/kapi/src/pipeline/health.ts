/**
 * `/livez`, `/readyz`, `/healthz`: named checks, one line each when asked for.
 */
import type { RequestContext } from "./context.ts";
import { sendText } from "../wire/respond.ts";

/** A check; throws or rejects when it fails. */
export type HealthCheck = () => void | Promise<void>;

/** Checks by endpoint and name. */
export type HealthChecks = Readonly<Record<"livez" | "readyz" | "healthz", ReadonlyMap<string, HealthCheck>>>;

/** The checks of a server: its store answers, and it is not on its way down. */
export function healthChecks(store: HealthCheck, isReady: () => boolean): HealthChecks {
  const live = new Map<string, HealthCheck>([
    ["ping", () => {}],
    ["etcd", store],
  ]);
  const shutdown: HealthCheck = () => {
    if (!isReady()) throw new Error("not ready");
  };
  return { livez: live, healthz: live, readyz: new Map([...live, ["shutdown", shutdown]]) };
}

/** Whether a path is one of the health endpoints. */
export function isHealthPath(path: string): boolean {
  return /^\/(livez|readyz|healthz)(\/[\w.-]+)?$/.test(path);
}

/** Answers a health endpoint. */
export async function serveHealth(context: RequestContext, checks: HealthChecks): Promise<void> {
  const [, endpoint = "", single] = context.info.path.split("/");
  const all = endpoint === "livez" || endpoint === "readyz" ? checks[endpoint] : checks.healthz;
  if (single !== undefined) {
    const check = all.get(single);
    if (!check) return sendText(context, 404, "404 page not found\n");
    const failed = await fails(check);
    return failed
      ? sendText(context, 500, "internal server error: reason withheld\n")
      : sendText(context, 200, "ok");
  }
  const excluded = new Set(context.query.getAll("exclude"));
  const lines: string[] = [];
  let failures = 0;
  for (const [name, check] of all) {
    if (excluded.has(name)) {
      lines.push(`[+]${name} excluded: ok`);
    } else if (await fails(check)) {
      failures++;
      lines.push(`[-]${name} failed: reason withheld`);
    } else lines.push(`[+]${name} ok`);
  }
  const text = `${lines.join("\n")}\n`;
  if (failures > 0) return sendText(context, 500, `${text}${endpoint} check failed\n`);
  const verbose = context.query.get("verbose");
  return sendText(context, 200, verbose === null ? "ok" : `${text}${endpoint} check passed\n`);
}

async function fails(check: HealthCheck): Promise<boolean> {
  try {
    await check();
    return false;
  } catch {
    return true;
  }
}
