/**
 * Webhooks: the sinks there are, and one delivery for each, spread over the replicas by leadership.
 */
import { messageOf, type Edges, type OutboundClient } from "@kontinuum/std";
import { prefixRange, type Store } from "@kontinuum/storage/client";
import type { EventLog, LoggedEvent } from "../events/event-log.ts";
import { formatTime } from "../model/bytes.ts";
import { invalidRequest, KrytonError } from "../model/errors.ts";
import type { CurrentSettings } from "../settings/runtime-settings.ts";
import { Change } from "../store/change.ts";
import { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { pause, type Leadership } from "../store/leadership.ts";
import type { Sealer } from "../store/sealer.ts";
import { Delivery, maxDeadLetters, type Destination } from "./delivery.ts";
import {
  cursorSchema,
  deadLetterSchema,
  freshCursor,
  maxSinks,
  settingsSinkId,
  sinkRecordSchema,
  type DeadLetter,
  type Sink,
  type SinkRecord,
} from "./sink.ts";

const reloadMs = 1_000;
/** As many as there can be sinks: each attempt that fails means that another was added. */
const maxAttempts = maxSinks + 1;

/** What webhooks are made from. */
export interface WebhooksOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly log: EventLog;
  readonly leadership: Leadership;
  readonly outbound: OutboundClient;
  readonly sealer: Sealer;
  /** The configured secret, and the address it was configured for; an empty address: whatever the settings say. */
  readonly secret: string;
  readonly secretUrl: string;
  settings(): CurrentSettings;
  onAttempt?(ok: boolean): void;
}

interface Running {
  readonly fingerprint: string;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** See the module comment. */
export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #documents: Documents;
  readonly #running = new Map<string, Running>();
  #records: readonly SinkRecord[] = [];
  #signal: AbortSignal | undefined;

  constructor(options: WebhooksOptions) {
    this.#options = options;
    this.#documents = new Documents(options.store, options.edges.log);
  }

  /** Runs deliveries until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, edges } = this.#options;
    this.#signal = signal;
    while (!signal.aborted) {
      try {
        const all = prefixRange(keys.webhook());
        const { revision } = await store.range({ ...all, countOnly: true });
        await this.#reload();
        const watch = store.watch({ ...all, startRevision: revision + 1, signal });
        for await (const batch of watch) if (batch.events.length > 0) await this.#reload();
      } catch (error) {
        if (!signal.aborted) edges.log.warn("webhooks reload", { problem: messageOf(error) });
      }
      await pause(edges, reloadMs, signal);
    }
    for (const running of this.#running.values()) running.stop.abort();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** Starts, stops and replaces deliveries after sinks or settings changed. */
  reconcile(): void {
    const signal = this.#signal;
    if (!signal || signal.aborted) return;
    const wanted = new Map(this.#destinations().map((destination) => [destination.id, destination]));
    for (const [id, running] of this.#running) {
      const destination = wanted.get(id);
      if (destination && running.fingerprint === fingerprint(destination)) continue;
      running.stop.abort();
      this.#running.delete(id);
    }
    for (const [id, destination] of wanted) {
      if (this.#running.has(id)) continue;
      const stop = new AbortController();
      const done = this.#options.leadership
        .run(
          `webhook-${id}`,
          (fence, held) => new Delivery(this.#options, destination, fence, held).run(),
          AbortSignal.any([signal, stop.signal]),
        )
        .catch((error: unknown) => {
          this.#options.edges.log.warn("webhook delivery stopped", { sink: id, problem: messageOf(error) });
        });
      this.#running.set(id, { fingerprint: fingerprint(destination), stop, done });
    }
  }

  /** Every sink with its delivery status. */
  async list(): Promise<Sink[]> {
    await this.#reload();
    const { eventWebhookUrl } = this.#options.settings();
    const sinks: Omit<Sink, "delivery">[] = this.#records.map(
      ({ id, url, types, projects, sealedSecret, createdAt }) => ({
        id,
        url,
        types,
        projects,
        signed: sealedSecret !== undefined,
        createdAt,
      }),
    );
    if (eventWebhookUrl !== "") {
      const signed = this.#settingsSecret(eventWebhookUrl) !== "";
      sinks.unshift({ id: settingsSinkId, url: eventWebhookUrl, types: [], projects: [], signed });
    }
    return Promise.all(
      sinks.map(async (sink) => {
        const cursor = await this.#documents.get(keys.webhookCursor(sink.id), cursorSchema);
        return { ...sink, delivery: cursor?.value ?? freshCursor("") };
      }),
    );
  }

  /** Adds a sink; it gets what happens from now on. */
  async create(wanted: {
    readonly url: string;
    readonly secret?: string | undefined;
    readonly types?: readonly string[] | undefined;
    readonly projects?: readonly string[] | undefined;
  }): Promise<Sink> {
    const { edges, log, sealer } = this.#options;
    const id = edges.random.uuid();
    const place = keys.webhook(id);
    const record: SinkRecord = {
      id,
      url: wanted.url,
      types: [...(wanted.types ?? [])],
      projects: [...(wanted.projects ?? [])],
      ...(wanted.secret ? { sealedSecret: sealer.seal(wanted.secret, place) } : {}),
      createdAt: formatTime(edges.clock.now()),
    };
    await log.catchUp();
    const delivery = freshCursor(log.window.at(-1)?.event.id ?? "");
    await this.#withRoom((change) => change.put(place, record).put(keys.webhookCursor(id), delivery));
    await this.#reload();
    const { sealedSecret, ...shown } = record;
    return { ...shown, signed: sealedSecret !== undefined, delivery };
  }

  /** Makes a change that adds a sink, however many are added at the same time. */
  async #withRoom(prepare: (change: Change) => Change): Promise<void> {
    const { store, edges } = this.#options;
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { count, revision } = await store.range({ ...prefixRange(keys.webhook()), countOnly: true });
      if (count >= maxSinks) throw invalidRequest(`there are at most ${maxSinks} webhooks`);
      const change = prepare(new Change().noneWrittenSince(keys.webhook(), revision));
      if ((await change.commit(store, edges)).succeeded) return;
    }
    throw new KrytonError("CONFLICT", "webhooks change too often", { retryAfterMs: 1_000 });
  }

  async delete(id: string): Promise<void> {
    const { store, edges } = this.#options;
    if (!this.#records.some((record) => record.id === id)) await this.#reload();
    if (!this.#records.some((record) => record.id === id)) throw unknownSink(id);
    await new Change()
      .delete(keys.webhook(id))
      .delete(keys.webhookCursor(id))
      .deletePrefix(keys.deadLetter(id))
      .commit(store, edges);
    await this.#reload();
  }

  /** What could not be delivered, oldest first. */
  async deadLetters(id: string): Promise<DeadLetter[]> {
    await this.#known(id);
    const found = await this.#documents.list(keys.deadLetter(id), deadLetterSchema, {
      limit: maxDeadLetters,
    });
    return found.map(({ value }) => value);
  }

  /** Delivers again what follows `eventId` in the log. The delivery starts over from there. */
  async replay(id: string, eventId: string): Promise<void> {
    const { store, edges, log } = this.#options;
    await this.#known(id);
    await log.catchUp();
    if (eventId !== "" && !log.after(eventId).exact) {
      throw invalidRequest(`event ${JSON.stringify(eventId.slice(0, 64))} is not in the log any more`);
    }
    const from = eventId === "" ? beforeOldest : eventId;
    const cursor = await this.#documents.get(keys.webhookCursor(id), cursorSchema);
    const { missed: _, ...rest } = cursor?.value ?? freshCursor("");
    // Whoever delivers now must not overwrite the position: its leadership ends in the same transaction.
    await new Change()
      .put(keys.webhookCursor(id), { ...rest, eventId: from })
      .deletePrefix(keys.deadLetter(id))
      .delete(keys.leader(`webhook-${id}`))
      .commit(store, edges);
    const running = this.#running.get(id);
    running?.stop.abort();
    await running?.done;
    this.#running.delete(id);
    this.reconcile();
  }

  async #known(id: string): Promise<void> {
    const sinks = await this.list();
    if (!sinks.some((sink) => sink.id === id)) throw unknownSink(id);
  }

  async #reload(): Promise<void> {
    const found = await this.#documents.list(keys.webhook(), sinkRecordSchema, { limit: maxSinks });
    this.#records = found.map(({ value }) => value);
    this.reconcile();
  }

  /** The secret for the settings' sink: signatures made with it go nowhere but to the origin it was configured for. */
  #settingsSecret(url: string): string {
    const { secret, secretUrl } = this.#options;
    return secretUrl === "" || originOf(url) === originOf(secretUrl) ? secret : "";
  }

  #destinations(): Destination[] {
    const { sealer, settings } = this.#options;
    const destinations = this.#records.map(({ id, url, types, projects, sealedSecret }): Destination => {
      return {
        id,
        url,
        secret: sealedSecret === undefined ? "" : sealer.open(sealedSecret, keys.webhook(id)),
        wants: ({ event }: LoggedEvent) => {
          const project = event.data?.["project"];
          return (
            (types.length === 0 || types.includes(event.type)) &&
            (projects.length === 0 || (typeof project === "string" && projects.includes(project)))
          );
        },
      };
    });
    const { eventWebhookUrl } = settings();
    if (eventWebhookUrl !== "") {
      const secret = this.#settingsSecret(eventWebhookUrl);
      destinations.push({ id: settingsSinkId, url: eventWebhookUrl, secret, wants: () => true });
    }
    return destinations;
  }
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

/** A position before every event. */
const beforeOldest = "";

function fingerprint({ url, secret }: Destination): string {
  return `${url} ${secret}`;
}

function unknownSink(id: string): KrytonError {
  return new KrytonError("NOT_FOUND", `no webhook ${id}`);
}
