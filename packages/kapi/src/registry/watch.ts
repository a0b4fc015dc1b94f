/**
 * Watch: the stream of a resource's changes to one client, over a plain response or a WebSocket.
 *
 * Each event's line is made once per form and shared by every client that asked for that form. A client that
 * does not read is parked (see `watch-cache/watcher.ts`), never queued for.
 */
import type { Timer } from "@kontinuum/std";
import { encodeWatchFrame } from "../codec/index.ts";
import { parseJson, stringifyJson } from "../json/json.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition } from "../resource.ts";
import type { StatusError } from "../status/status.ts";
import { partialMetadata, tableOf } from "../table/table.ts";
import { objectHead, type CacheEntry } from "../watch-cache/entry.ts";
import type { CacheEvent, ChangeType } from "../watch-cache/ring.ts";
import { Watcher, type WatchSink } from "../watch-cache/watcher.ts";
import { negotiate, parseIncludeObject, type IncludeObject, type Negotiated } from "../wire/media-type.ts";
import { header } from "../wire/request.ts";
import type { RegistryDeps } from "./deps.ts";
import type { ListOptions } from "./options.ts";
import { ready, selectsIn } from "./read.ts";
import { apiVersionOf, type ResourceStore } from "./resource-store.ts";
import { watchStart } from "./watch-options.ts";
import type { WatchOutput } from "./watch-output.ts";

/** Bytes a client may leave unread before it is parked. */
const parkAt = 256 * 1024;
/** Idle watches are told the current version this often. */
const bookmarkMs = 55_000;
/** Without `timeoutSeconds` a watch ends after 30 to 60 minutes. */
const minTimeoutSeconds = 1800;

/** Annotation of the bookmark that ends the initial state. */
const initialEventsEnd = "k8s.io/initial-events-end";

/** Makes the lines of one form. */
class LineMaker {
  readonly #resource: ResourceDefinition;
  readonly #store: ResourceStore;
  readonly #form: Negotiated;
  readonly #include: IncludeObject;
  readonly #now: () => number;
  /** Names of this form's lines, by type. */
  readonly #ids: Readonly<Record<ChangeType, string>>;
  #first = true;

  constructor(
    resource: ResourceDefinition,
    store: ResourceStore,
    form: Negotiated,
    include: IncludeObject,
    now: () => number,
  ) {
    this.#resource = resource;
    this.#store = store;
    this.#form = form;
    this.#include = include;
    this.#now = now;
    const id = `${apiVersionOf(resource)}|${form.encoding}|${form.shape}|${form.metaVersion}|${include}`;
    this.#ids = { ADDED: `${id}|ADDED`, MODIFIED: `${id}|MODIFIED`, DELETED: `${id}|DELETED` };
  }

  /** The bytes of one event; shared when the event is. */
  line(type: ChangeType, entry: CacheEntry, event: CacheEvent | undefined): Buffer | Promise<Buffer> {
    const columns = this.#form.shape === "table" && this.#first;
    this.#first = false;
    if (!event || columns) return this.#make(type, entry, columns);
    const id = this.#ids[type];
    event.lines ??= new Map();
    const known = event.lines.get(id);
    if (known) return known;
    const made = this.#make(type, entry, false);
    event.lines.set(id, made);
    if (made instanceof Promise) made.catch(() => event.lines?.delete(id));
    return made;
  }

  #make(type: ChangeType, entry: CacheEntry, columns: boolean): Buffer | Promise<Buffer> {
    const rest = this.#store.form(this.#resource, entry);
    return rest instanceof Promise
      ? rest.then((bytes) => this.#encode(type, entry, bytes, columns))
      : this.#encode(type, entry, rest, columns);
  }

  #encode(type: string, entry: CacheEntry, rest: Buffer, columns: boolean): Buffer {
    const resource = this.#resource;
    if (this.#form.shape === "object" && this.#form.encoding !== "protobuf") {
      const head = `{"type":"${type}","object":${objectHead(apiVersionOf(resource), resource.kind, entry.revision)}`;
      const out = Buffer.allocUnsafe(head.length + rest.length + 2);
      out.write(head, 0, "latin1");
      rest.copy(out, head.length);
      out.write("}\n", head.length + rest.length, "latin1");
      return out;
    }
    const object = parseJson(this.#store.bytes(resource, entry, rest).toString("utf8"));
    return this.#frame(type, object as Record<string, unknown>, columns);
  }

  /** A bookmark; tables carry it as a row. */
  bookmark(revision: number, end: boolean): Buffer {
    const metadata = {
      resourceVersion: String(revision),
      ...(end ? { annotations: { [initialEventsEnd]: "true" } } : {}),
    };
    const first = this.#first;
    this.#first = false;
    return this.#frame(
      "BOOKMARK",
      { kind: this.#resource.kind, apiVersion: apiVersionOf(this.#resource), metadata },
      first,
    );
  }

  error(error: StatusError): Buffer {
    const object = error.toObject();
    if (this.#form.encoding === "protobuf") return Buffer.from(encodeWatchFrame("ERROR", object) ?? []);
    return Buffer.from(`${stringifyJson({ type: "ERROR", object })}\n`);
  }

  #frame(type: string, object: Record<string, unknown>, columns: boolean): Buffer {
    const { encoding, shape, metaVersion: version } = this.#form;
    if (encoding === "protobuf") {
      const framed = shape === "metadata" ? partialMetadata(object, version) : object;
      return Buffer.from(encodeWatchFrame(type, framed) ?? []);
    }
    let shown: Record<string, unknown> = object;
    if (shape === "table") {
      const metadata = object["metadata"];
      const resourceVersion =
        typeof metadata === "object" && metadata !== null && "resourceVersion" in metadata
          ? String(metadata.resourceVersion)
          : "";
      const cells =
        type === "BOOKMARK" ? { columns: this.#resource.columns.map(() => emptyColumn) } : this.#resource;
      const table = tableOf(cells, [object], {
        include: this.#include,
        now: this.#now(),
        meta: { resourceVersion },
        columns: false,
        version,
      });
      if (columns)
        table["columnDefinitions"] = tableOf(this.#resource, [], {
          include: "None",
          now: 0,
          meta: { resourceVersion: "" },
          columns: true,
        })["columnDefinitions"];
      shown = table;
    } else if (shape === "metadata") shown = partialMetadata(object, version);
    return Buffer.from(`${stringifyJson({ type, object: shown })}\n`);
  }
}

const emptyColumn = {
  name: "",
  type: "string",
  format: "",
  description: "",
  priority: 0,
  cell: () => "",
} as const;

/** Serves a watch until it ends; resolves when it did. Errors known before the stream begins are thrown. */
export async function serveWatch(
  deps: RegistryDeps,
  context: RequestContext,
  resource: ResourceDefinition,
  namespace: string,
  options: ListOptions,
  output: WatchOutput,
): Promise<void> {
  const protobuf = resource.origin === "builtin";
  const form = negotiate(header(context.request, "accept"), { list: false, protobuf, yaml: false });
  const include =
    form.shape === "table" ? parseIncludeObject(context.parameter("includeObject")) : "Metadata";
  const store = deps.storage.of(resource);
  const { cache } = store;
  const start = watchStart(options);
  await ready(store, options.resourceVersion);
  if (context.signal.aborted) return;
  const { clock, random } = deps.edges;
  const lines = new LineMaker(resource, store, form, include, () => clock.now());
  const matches = selectsIn(resource, options);
  const initial = start.initial
    ? cache.list(store.scope(namespace)).filter((entry) => entry.error === undefined && matches(entry))
    : [];
  const scope = store.scope(namespace);
  const seconds = options.timeoutSeconds ?? minTimeoutSeconds + random.integer(minTimeoutSeconds);
  await new Promise<void>((resolve) => {
    const timers: Timer[] = [];
    const sink: WatchSink = {
      get writable() {
        return output.pending < parkAt;
      },
      event(type, entry, event) {
        const line = lines.line(type, entry, event);
        if (line instanceof Promise) return line.then((bytes) => output.send(bytes));
        output.send(line);
      },
      initialDone(revision) {
        if (start.marked && options.bookmarks) output.send(lines.bookmark(revision, true));
      },
      bookmark: (revision) => output.send(lines.bookmark(revision, false)),
      flush: () => output.flush(),
      end(error) {
        for (const timer of timers.splice(0)) timer.clear();
        if (error) output.send(lines.error(error));
        output.end();
        resolve();
      },
    };
    const watcher = new Watcher({
      cache,
      store: deps.storage.store,
      decode: store.decode,
      matches: (entry) => entry.key.startsWith(scope) && matches(entry),
      sink,
      initial,
      from: start.after ?? cache.revision,
    });
    output.onClose(() => watcher.close());
    output.onDrain(() => watcher.drained());
    context.signal.addEventListener("abort", () => watcher.close(), { once: true });
    const type =
      form.encoding === "protobuf" ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json";
    output.open(type);
    context.onStarted?.();
    const tick = (): void => {
      timers[0] = clock.timer(bookmarkMs, () => {
        void cache
          .fresh()
          .then(() => watcher.bookmark())
          .catch(() => {});
        tick();
      });
    };
    if (options.bookmarks) tick();
    timers.push(
      clock.timer(seconds * 1000, () => {
        if (options.bookmarks) watcher.bookmark();
        watcher.close();
      }),
    );
    watcher.start();
    if (context.signal.aborted) watcher.close();
  });
}
