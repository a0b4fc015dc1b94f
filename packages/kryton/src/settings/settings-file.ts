/**
 * The original's settings files: read once into the store, and mirrored while one process owns the store.
 *
 * Written to a temporary name and renamed, 0600. A token is read from an old file and sealed, but never
 * written to one again.
 */
import { readFile, rename, unlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ensureFolder, messageOf, type Edges } from "@kontinuum/std";
import { z } from "zod";
import type { Config } from "../config/config.ts";
import type { CurrentSettings, RuntimeSettings, StoredSettings } from "./runtime-settings.ts";

const maxFileBytes = 1024 * 1024;

const settingsFileSchema = z.object({
  defaultProject: z.string().optional(),
  imageNamespace: z.string().optional(),
  eventWebhookUrl: z.string().optional(),
  atlas: z
    .object({
      enabled: z.boolean().optional(),
      baseUrl: z.string().optional(),
      token: z.string().optional(),
      product: z.string().optional(),
      preferAtlas: z.boolean().optional(),
    })
    .optional(),
});
const storageFileSchema = z.object({ storageClass: z.string().optional() });

/** What the files say, in stored form; broken files are reported and left alone. */
export async function importSettings(
  config: Config,
  settings: Pick<RuntimeSettings, "sealToken">,
  edges: Edges,
): Promise<StoredSettings> {
  const file = await read(config.settingsConfigFile, settingsFileSchema, edges);
  const storage = await read(config.storageConfigFile, storageFileSchema, edges);
  const atlas = file?.atlas;
  const useAtlas = atlas && (atlas.baseUrl || atlas.token || atlas.enabled);
  return {
    ...(file?.defaultProject ? { defaultProject: file.defaultProject } : {}),
    ...(file?.imageNamespace ? { imageNamespace: file.imageNamespace } : {}),
    ...(file?.eventWebhookUrl ? { eventWebhookUrl: file.eventWebhookUrl } : {}),
    ...(storage?.storageClass ? { storageClass: storage.storageClass } : {}),
    ...(useAtlas
      ? {
          atlas: {
            enabled: atlas.enabled ?? false,
            baseUrl: (atlas.baseUrl ?? "").replace(/\/+$/, ""),
            product: atlas.product || "kryton",
            preferAtlas: atlas.preferAtlas ?? false,
            ...(atlas.token ? { sealedToken: settings.sealToken(atlas.token) } : {}),
          },
        }
      : {}),
  };
}

/** Whether one process owns the store, so that files beside it may mirror it. */
export function ownsFiles(config: Config): boolean {
  return config.storage.startsWith("memory:") || config.storage.startsWith("sqlite:");
}

/** Writes the settings to the files. A failure is logged: the store is what counts. */
export async function mirrorSettings(config: Config, current: CurrentSettings, edges: Edges): Promise<void> {
  const { enabled, baseUrl, product, preferAtlas } = current.atlas;
  try {
    await write(config.storageConfigFile, { storageClass: current.storageClass }, edges);
    await write(
      config.settingsConfigFile,
      {
        defaultProject: current.defaultProject,
        imageNamespace: current.imageNamespace,
        eventWebhookUrl: current.eventWebhookUrl,
        atlas: { enabled, baseUrl, product, ...(preferAtlas ? { preferAtlas } : {}) },
      },
      edges,
    );
  } catch (error) {
    edges.log.warn("settings files could not be written", { problem: messageOf(error) });
  }
}

async function read<T>(path: string, schema: z.ZodType<T>, edges: Edges): Promise<T | undefined> {
  try {
    const text = await readFile(path, "utf8");
    if (text.length > maxFileBytes) throw new RangeError(`larger than ${maxFileBytes} bytes`);
    return schema.parse(JSON.parse(text));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) {
      edges.log.warn("settings file was not imported", { file: path, problem: messageOf(error) });
    }
    return undefined;
  }
}

async function write(path: string, value: unknown, edges: Edges): Promise<void> {
  await ensureFolder(dirname(path), { setting: `settings file ${path}` });
  const temporary = `${path}.${edges.random.uuid()}`;
  try {
    await writeFile(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}
