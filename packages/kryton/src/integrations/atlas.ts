/**
 * Atlas, an outside storage control plane: asked which storage classes it knows, and whether it is well.
 */
import { at, isObject, messageOf, stringAt, type Clock, type OutboundClient } from "@kontinuum/std";
import { z } from "zod";
import { formatTime } from "../model/bytes.ts";
import type { AtlasSettings } from "../settings/runtime-settings.ts";

const limitMs = 12_000;
const maxBytes = 1024 * 1024;
/** Class names taken from one answer. */
const maxClasses = 1_000;

/** One check of a connection test. */
export const probeSchema = z
  .object({
    name: z.string(),
    status: z.enum(["pass", "warn", "fail"]),
    message: z.string(),
    hint: z.string().optional(),
    latencyMs: z.int().optional(),
  })
  .meta({ id: "Probe" });
/** See {@link probeSchema}. */
export type Probe = z.infer<typeof probeSchema>;

/** The outcome of a test of Atlas. */
export const atlasResultSchema = z
  .object({
    healthy: z.boolean(),
    configured: z.boolean(),
    baseUrl: z.string(),
    product: z.string(),
    probes: z.array(probeSchema),
    storageClasses: z.array(z.string()).optional(),
    testedAt: z.string(),
  })
  .meta({ id: "AtlasResult" });
/** See {@link atlasResultSchema}. */
export type AtlasResult = z.infer<typeof atlasResultSchema>;

/** Tests Atlas with the given settings. Never rejects: what goes wrong is a probe. */
export async function testAtlas(
  settings: AtlasSettings,
  client: OutboundClient,
  clock: Clock,
): Promise<AtlasResult> {
  const result = (probes: Probe[], storageClasses?: string[]): AtlasResult => ({
    healthy: probes.length > 1 && probes.every(({ status }) => status !== "fail"),
    configured: settings.baseUrl !== "",
    baseUrl: settings.baseUrl,
    product: settings.product,
    probes,
    ...(storageClasses ? { storageClasses } : {}),
    testedAt: formatTime(clock.now()),
  });
  if (!settings.enabled) {
    return result([{ name: "atlas", status: "warn", message: "The Atlas integration is off." }]);
  }
  if (settings.baseUrl === "") {
    return result([
      { name: "atlas", status: "fail", message: "No Atlas URL is set.", hint: "Set atlas.baseUrl." },
    ]);
  }
  const call = async (path: string): Promise<{ status: number; text: string; latencyMs: number }> => {
    const startedAt = clock.monotonic();
    const { status, body } = await client.request({
      method: "GET",
      url: `${settings.baseUrl}${path}`,
      headers: {
        accept: "application/json",
        "x-atlas-product": settings.product,
        ...(settings.token === "" ? {} : { authorization: `Bearer ${settings.token}` }),
      },
      timeoutMs: limitMs,
      maxBytes,
    });
    return { status, text: body.toString("utf8"), latencyMs: Math.round(clock.monotonic() - startedAt) };
  };
  const ready = await probeReady(call);
  const version = await probeVersion(call);
  const { probe, names } = await probeClasses(call);
  return result([ready, version, probe], names);
}

type Caller = (path: string) => Promise<{ status: number; text: string; latencyMs: number }>;

async function probeReady(call: Caller): Promise<Probe> {
  const name = "readyz";
  try {
    const { status, latencyMs } = await call("/readyz");
    if (status >= 500) return { name, status: "fail", message: `Answered ${status}.`, latencyMs };
    if (status >= 400) return { name, status: "warn", message: `Answered ${status}.`, latencyMs };
    return { name, status: "pass", message: "Ready.", latencyMs };
  } catch (error) {
    return { name, status: "fail", message: messageOf(error), hint: "Check the URL and that Atlas runs." };
  }
}

async function probeVersion(call: Caller): Promise<Probe> {
  const name = "version";
  for (const path of ["/version", "/api/atlas/v1/version"]) {
    try {
      const { status, latencyMs } = await call(path);
      if (status < 400) return { name, status: "pass", message: "Tells its version.", latencyMs };
      return { name, status: "warn", message: `Answered ${status}.`, latencyMs };
    } catch {
      // The second path is for installations that serve only their own prefix.
    }
  }
  return { name, status: "warn", message: "Tells no version." };
}

async function probeClasses(call: Caller): Promise<{ probe: Probe; names: string[] | undefined }> {
  const name = "storage-classes";
  try {
    const { status, text, latencyMs } = await call("/api/atlas/v1/storage-classes");
    if (status === 401 || status === 403) {
      const hint = "Check the Atlas token.";
      return {
        probe: { name, status: "fail", message: `Answered ${status}.`, hint, latencyMs },
        names: undefined,
      };
    }
    if (status >= 400) {
      return { probe: { name, status: "warn", message: `Answered ${status}.`, latencyMs }, names: undefined };
    }
    const names = classNames(JSON.parse(text));
    return { probe: { name, status: "pass", message: `${names.length} storage classes.`, latencyMs }, names };
  } catch (error) {
    return { probe: { name, status: "warn", message: messageOf(error) }, names: undefined };
  }
}

function classNames(answer: unknown): string[] {
  const items = Array.isArray(answer) ? answer : at(answer, "items");
  if (!Array.isArray(items)) return [];
  return items.slice(0, maxClasses).flatMap((item: unknown) => {
    if (typeof item === "string") return [item];
    const name = isObject(item) ? stringAt(item, "name") : undefined;
    return name ? [name] : [];
  });
}
