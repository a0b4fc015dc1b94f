/**
 * Settings that can change while krytond runs: one document in the store, followed by every replica.
 *
 * A value that was never set falls back to the configuration. Secrets are sealed and never handed out; a
 * changed base URL drops the token that was meant for the old one.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { z } from "zod";
import type { Config } from "../config/config.ts";
import { KrytonError } from "../model/errors.ts";
import type { EventDraft } from "../model/event.ts";
import { Change } from "../store/change.ts";
import { decode, Documents, type Stored } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { pause } from "../store/leadership.ts";
import type { Sealer } from "../store/sealer.ts";

const reloadMs = 1_000;
const maxAttempts = 16;

/** The stored form. Absent: as configured. */
export const storedSettingsSchema = z.object({
  defaultProject: z.string().optional(),
  imageNamespace: z.string().optional(),
  eventWebhookUrl: z.string().optional(),
  storageClass: z.string().optional(),
  atlas: z
    .object({
      enabled: z.boolean(),
      baseUrl: z.string(),
      product: z.string(),
      preferAtlas: z.boolean(),
      sealedToken: z.string().optional(),
    })
    .optional(),
});
/** See {@link storedSettingsSchema}. */
export type StoredSettings = z.infer<typeof storedSettingsSchema>;

/** The Atlas integration as it applies. */
export interface AtlasSettings {
  readonly enabled: boolean;
  readonly baseUrl: string;
  readonly token: string;
  readonly product: string;
  readonly preferAtlas: boolean;
}

/** The settings as they apply. */
export interface CurrentSettings {
  readonly defaultProject: string;
  readonly imageNamespace: string;
  readonly eventWebhookUrl: string;
  readonly storageClass: string;
  readonly atlas: AtlasSettings;
}

/** What the settings are made from. */
export interface RuntimeSettingsOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly sealer: Sealer;
  readonly config: Config;
  projects(): readonly string[];
  /** Called on every replica after the settings changed. */
  onChange?(current: CurrentSettings): void;
  /** Called on the replica that made a change. */
  onWrite?(current: CurrentSettings): void;
}

/** See the module comment. */
export class RuntimeSettings {
  readonly #options: RuntimeSettingsOptions;
  readonly #documents: Documents;
  #stored: Stored<StoredSettings> | undefined;

  constructor(options: RuntimeSettingsOptions) {
    this.#options = options;
    this.#documents = new Documents(options.store, options.edges.log);
  }

  /** The settings this replica knows. */
  get current(): CurrentSettings {
    return this.#applied(this.#stored?.value ?? {});
  }

  /** Reads the newest settings, so that a request after a change on another replica sees it. */
  async refresh(): Promise<CurrentSettings> {
    this.#stored = await this.#documents.get(keys.settings, storedSettingsSchema);
    return this.current;
  }

  /** Writes `initial` unless settings are stored already. */
  async seed(initial: StoredSettings): Promise<void> {
    const { store, edges } = this.#options;
    await new Change().absent(keys.settings).put(keys.settings, initial).commit(store, edges);
    await this.refresh();
  }

  /** Changes the settings and tells of it. `revise` may run more than once. */
  async change(
    revise: (stored: StoredSettings) => StoredSettings,
    event: (current: CurrentSettings) => EventDraft,
  ): Promise<CurrentSettings> {
    const { store, edges, onChange, onWrite } = this.#options;
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const found = await this.#documents.get(keys.settings, storedSettingsSchema);
      const next = revise(found?.value ?? {});
      const change = new Change()
        .unchanged(keys.settings, found?.modRevision ?? 0)
        .put(keys.settings, next)
        .event(event(this.#applied(next)));
      if ((await change.commit(store, edges)).succeeded) {
        const current = await this.refresh();
        onChange?.(current);
        onWrite?.(current);
        return current;
      }
    }
    throw new KrytonError("CONFLICT", "the settings are changed by too many callers at once", {
      retryAfterMs: 1_000,
    });
  }

  /** Seals a token for storing it. */
  sealToken(token: string): string {
    return this.#options.sealer.seal(token, keys.settings);
  }

  /** Follows changes of other replicas until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, edges, onChange } = this.#options;
    while (!signal.aborted) {
      try {
        const { kvs, revision } = await store.range({ key: keys.settings });
        const first = kvs[0];
        this.#stored = first && decode(first, storedSettingsSchema, edges.log);
        onChange?.(this.current);
        const watch = store.watch({ key: keys.settings, startRevision: revision + 1, signal });
        for await (const batch of watch) {
          for (const { kv, type } of batch.events) {
            this.#stored = type === "put" ? decode(kv, storedSettingsSchema, edges.log) : undefined;
            onChange?.(this.current);
          }
        }
      } catch (error) {
        if (!signal.aborted) edges.log.warn("settings reload", { problem: messageOf(error) });
      }
      await pause(edges, reloadMs, signal);
    }
  }

  #applied(stored: StoredSettings): CurrentSettings {
    const { config, projects } = this.#options;
    const known = projects();
    const wanted = stored.defaultProject ?? config.defaultProject;
    const fallback = known.includes(config.defaultProject) ? config.defaultProject : (known[0] ?? wanted);
    return {
      defaultProject: known.includes(wanted) ? wanted : fallback,
      imageNamespace: stored.imageNamespace ?? config.imageNamespace,
      eventWebhookUrl: stored.eventWebhookUrl ?? config.webhookUrl,
      storageClass: stored.storageClass ?? config.storageClass,
      atlas: this.#atlas(stored),
    };
  }

  #atlas(stored: StoredSettings): AtlasSettings {
    const { config } = this.#options;
    if (!stored.atlas) {
      const { url, token, product } = config.atlas;
      return { enabled: url !== "", baseUrl: url, token, product, preferAtlas: false };
    }
    const { sealedToken, ...atlas } = stored.atlas;
    return { ...atlas, token: sealedToken === undefined ? "" : this.#open(sealedToken) };
  }

  #open(sealed: string): string {
    try {
      return this.#options.sealer.open(sealed, keys.settings);
    } catch (error) {
      this.#options.edges.log.error("a stored token cannot be opened and is not used", {
        problem: messageOf(error),
      });
      return "";
    }
  }
}
