/**
 * Setting up storage in the connected cluster: one durable job, run by one replica at a time.
 *
 * The record in the store says what was asked for and which step is due. The replica that leads runs the steps; when
 * it dies another goes on with the step that was under way. Every write is fenced. A set-up ends as `succeeded` or
 * `failed` and can be asked for again: what is there already stays.
 */
import { CodedError, messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import { KubernetesStorage } from "../cluster/cluster-storage.ts";
import type { Kubernetes } from "../cluster/kubernetes.ts";
import type { Environment } from "../config/values.ts";
import { formatTime } from "../model/bytes.ts";
import { invalidRequest, KrytonError } from "../model/errors.ts";
import type { RuntimeSettings } from "../settings/runtime-settings.ts";
import { listBlockDevices, whyNotDevice, type BlockDevice } from "../storage-inventory/devices.ts";
import { Change, type Fence } from "../store/change.ts";
import { Documents, type Stored } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import { pause, type Leadership } from "../store/leadership.ts";
import { hasManifests } from "./manifests.ts";
import { classOf } from "./objects.ts";
import {
  maxLogBytes,
  maxLogLines,
  setupBackends,
  setupRecordSchema,
  setupSteps,
  type SetupLogLine,
  type SetupRecord,
  type SetupRequest,
} from "./record.ts";
import { steps, type StepTools } from "./steps.ts";

/** Longest time for one step, milliseconds, counted across replicas. */
export const stepLimitMs = 30 * 60_000;
const pollMs = 500;
const watchPauseMs = 50;
const maxAttempts = 16;

/** What a set-up works with. */
export interface StorageSetupOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly leadership: Leadership;
  readonly settings: RuntimeSettings;
  readonly api: Kubernetes;
  /** Folder with the manifests of storage systems. */
  readonly folder: string;
  readonly env: Environment;
}

/** See the module comment. */
export class StorageSetup {
  readonly #options: StorageSetupOptions;
  readonly #documents: Documents;
  readonly #storage: KubernetesStorage;

  constructor(options: StorageSetupOptions) {
    this.#options = options;
    this.#documents = new Documents(options.store, options.edges.log);
    this.#storage = new KubernetesStorage(options.api);
  }

  /** The set-up that runs or ran last. */
  async current(): Promise<SetupRecord | undefined> {
    return (await this.#read())?.value;
  }

  /** Whether there are manifests for any storage system. */
  async available(): Promise<boolean> {
    const found = await Promise.all(setupBackends.map((part) => hasManifests(this.#options.folder, part)));
    return found.includes(true);
  }

  /** Asks the cluster for its version; fails when it does not answer. */
  async reach(signal: AbortSignal): Promise<void> {
    const { api } = this.#options;
    if ((await api.find("/version", signal)) === undefined) {
      throw new CodedError("unavailable", `${api.endpoint} tells no version: it is no Kubernetes API server`);
    }
  }

  /** Disks of this host. */
  devices(): Promise<BlockDevice[]> {
    return listBlockDevices(this.#options.env);
  }

  /** Records what is wanted; the leading replica does it. Fails with `INVALID_REQUEST` when it cannot begin. */
  async begin(request: SetupRequest, requestedBy: string): Promise<SetupRecord> {
    const { store, edges, folder } = this.#options;
    if (request.device !== undefined) await this.#checkDevice(request.device);
    const needsManifests = request.rookMode !== "pool-only";
    if (needsManifests && !(await hasManifests(folder, request.backend))) {
      throw invalidRequest(
        `there are no manifests of ${request.backend}: put its release's YAML files into ${request.backend}/ in the folder of KRYTON_STORAGE_MANIFESTS`,
      );
    }
    const found = await this.#read();
    if (found?.value.state === "running") throw busy();
    const now = formatTime(edges.clock.now());
    const record: SetupRecord = {
      ...request,
      state: "running",
      step: 0,
      stepStartedAt: now,
      message: `${setupSteps[0]}.`,
      requestedBy,
      startedAt: now,
      updatedAt: now,
      logs: [
        {
          time: now,
          level: "info",
          message: `Storage set-up of ${request.backend} was asked for by ${requestedBy}.`,
        },
      ],
    };
    const { backend, rookMode = "", device = "" } = request;
    const { succeeded } = await new Change()
      .unchanged(keys.storageSetup, found?.modRevision ?? 0)
      .put(keys.storageSetup, record)
      .event({
        type: "io.kryton.storage.setup.started",
        subject: "storage/setup",
        data: { backend, rookMode, device },
      })
      .commit(store, edges);
    if (!succeeded) throw busy();
    return record;
  }

  /** Asks a running set-up to stop; what it has installed stays. `undefined` when none runs. */
  async cancel(requestedBy: string): Promise<SetupRecord | undefined> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const found = await this.#read();
      if (found?.value.state !== "running") return undefined;
      const next = { ...found.value, cancelRequestedBy: requestedBy };
      const change = new Change().unchanged(found.key, found.modRevision).put(found.key, next);
      if ((await change.commit(this.#options.store, this.#options.edges)).succeeded) return next;
    }
    throw new KrytonError("CONFLICT", "the set-up changes too often to be cancelled", {
      retryAfterMs: 1_000,
    });
  }

  /** Runs set-ups whenever this replica leads, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void> {
    const { leadership } = this.#options;
    return leadership.run("storage-setup", (fence, held) => this.#lead(fence, held), signal);
  }

  async #lead(fence: Fence, signal: AbortSignal): Promise<void> {
    const { store, edges } = this.#options;
    while (!signal.aborted) {
      const { revision } = await store.range({ key: keys.storageSetup, countOnly: true });
      const found = await this.#read();
      if (found?.value.state === "running") {
        await this.#work(found.value, fence, signal);
        continue;
      }
      const watch = store.watch({ key: keys.storageSetup, startRevision: revision + 1, signal });
      try {
        for await (const batch of watch) if (batch.events.length > 0) break;
      } finally {
        watch.close();
      }
      // A watch that ends by itself must not make this loop spin.
      await pause(edges, watchPauseMs, signal);
    }
  }

  /** Runs the step that is due, to its end or to the loss of leadership. */
  async #work(record: SetupRecord, fence: Fence, signal: AbortSignal): Promise<void> {
    const step = steps[record.step];
    if (!step) return this.#finish(record, fence, undefined);
    if (record.cancelRequestedBy !== undefined) {
      return this.#finish(record, fence, `cancelled by ${record.cancelRequestedBy}`);
    }
    const { edges } = this.#options;
    const stop = new AbortController();
    const left = Date.parse(record.stepStartedAt) + stepLimitMs - edges.clock.now();
    const timer = edges.clock.timer(Math.max(0, left), () => stop.abort("limit"));
    const tools = this.#tools(fence, AbortSignal.any([signal, stop.signal]), stop);
    try {
      await step(record, tools);
      await this.#advance(fence);
    } catch (error) {
      if (signal.aborted) return;
      if (stop.signal.aborted) {
        const late = stop.signal.reason === "limit";
        const latest = (await this.current()) ?? record;
        const why = late
          ? `${setupSteps[record.step]} took longer than ${stepLimitMs / 60_000} minutes: ${latest.message ?? ""}`
          : `cancelled by ${latest.cancelRequestedBy ?? "somebody"}`;
        return await this.#finish(latest, fence, why);
      }
      if (
        error instanceof CodedError &&
        (error.code === "unavailable" || error.code === "deadline_exceeded")
      ) {
        await tools.waiting(messageOf(error));
        return await pause(edges, pollMs, signal);
      }
      const latest = (await this.current()) ?? record;
      await this.#finish(
        latest,
        fence,
        error instanceof CodedError ? error.message : "internal error; see the log",
      );
      if (!(error instanceof CodedError))
        edges.log.error("storage set-up failed", { problem: messageOf(error) });
    } finally {
      timer.clear();
    }
  }

  #tools(fence: Fence, signal: AbortSignal, stop: AbortController): StepTools {
    const { api, edges, folder } = this.#options;
    const write = async (revise: (record: SetupRecord) => SetupRecord): Promise<void> => {
      const written = await this.#revise(fence, revise);
      if (written?.cancelRequestedBy !== undefined) stop.abort("cancelled");
    };
    return {
      api,
      storage: this.#storage,
      clock: edges.clock,
      folder,
      pollMs,
      signal,
      say: (level, message) => write((record) => this.#logged(record, level, message)),
      waiting: (message) =>
        write((record) =>
          record.message === message ? record : { ...this.#logged(record, "info", message), message },
        ),
    };
  }

  #logged(record: SetupRecord, level: SetupLogLine["level"], message: string): SetupRecord {
    const time = formatTime(this.#options.edges.clock.now());
    const line = { time, level, message: message.slice(0, maxLogBytes) };
    return { ...record, updatedAt: time, logs: [...record.logs, line].slice(-maxLogLines) };
  }

  async #advance(fence: Fence): Promise<void> {
    await this.#revise(fence, (record) => {
      const done = setupSteps[record.step] ?? "";
      const step = record.step + 1;
      const logged = this.#logged(record, "ok", `${done}: done.`);
      const next = setupSteps[step];
      return { ...logged, step, stepStartedAt: logged.updatedAt, message: next ? `${next}.` : "Done." };
    });
  }

  /** Ends the set-up: with a reason as failed, without one as succeeded, its class then being the default. */
  async #finish(record: SetupRecord, fence: Fence, problem: string | undefined): Promise<void> {
    const { settings } = this.#options;
    const name = classOf[record.backend].name;
    if (problem === undefined && record.setDefault) {
      await settings.change(
        (stored) => ({ ...stored, storageClass: name }),
        ({ storageClass }) => ({
          type: "io.kryton.storage.configured",
          subject: "storage/config",
          data: { storageClass },
        }),
      );
    }
    await this.#revise(fence, (latest) =>
      problem === undefined
        ? {
            ...this.#logged(latest, "ok", "Storage is set up."),
            state: "succeeded",
            storageClass: name,
            message: "Storage is set up.",
          }
        : { ...this.#logged(latest, "err", problem), state: "failed", error: problem },
    );
  }

  /** Changes the record while it runs and the fence stands, and tells of its end, without texts that may name folders. */
  async #revise(
    fence: Fence,
    revise: (record: SetupRecord) => SetupRecord,
  ): Promise<SetupRecord | undefined> {
    const { store, edges } = this.#options;
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const found = await this.#read();
      if (found?.value.state !== "running") return undefined;
      const next = revise(found.value);
      if (next === found.value) return next;
      const change = new Change()
        .fencedBy(fence)
        .unchanged(found.key, found.modRevision)
        .put(found.key, next);
      if (next.state !== "running") {
        const data = {
          backend: next.backend,
          state: next.state,
          storageClass: next.storageClass ?? "",
        };
        change.event({ type: "io.kryton.storage.setup.finished", subject: "storage/setup", data });
      }
      if ((await change.commit(store, edges)).succeeded) return next;
      const { kvs } = await store.range({ key: fence.key });
      if (kvs[0]?.createRevision !== fence.revision)
        throw new CodedError("cancelled", "another replica leads now");
    }
    throw new CodedError("conflict", "the set-up's record changes too often");
  }

  async #checkDevice(device: string): Promise<void> {
    const reason = await whyNotDevice(device, this.#options.env);
    if (reason !== undefined) throw invalidRequest(`device ${device}: ${reason}`);
  }

  #read(): Promise<Stored<SetupRecord> | undefined> {
    return this.#documents.get(keys.storageSetup, setupRecordSchema);
  }
}

function busy(): KrytonError {
  return invalidRequest("a storage set-up is running already; wait for its end or cancel it");
}
