/**
 * `cosi.resource.State`: reading a node's resources. Writing is refused, even to an admin.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  LabelTerm_Operation as Operation,
  ResourceSchema,
  type IDQuery,
  type LabelQuery,
  type Resource,
} from "../../gen/cosi/resource/resource_pb.ts";
import { EventType, type State, type WatchResponseSchema } from "../../gen/cosi/resource/state_pb.ts";
import { parseVersionContract } from "../../config/version-contract.ts";
import { failedPrecondition, notFound, permissionDenied, unimplemented } from "../call-error.ts";
import { definitionStore } from "../definition-resources.ts";
import { sensitivityOf, namespaceNames } from "../resource-types.ts";
import type { ResourceChange, ResourceStore, StoredResource } from "../resource-store.ts";
import { roles } from "../role.ts";
import { callerOf, type Caller } from "./call-context.ts";

type WatchMessage = MessageInitShape<typeof WatchResponseSchema>;
type EventInit = NonNullable<WatchMessage["event"]>[number];

const refuseWrite = (): never => {
  throw permissionDenied("write access is not allowed");
};

/** See the module's comment. */
export const stateService: ServiceImpl<typeof State> = {
  get(request, context) {
    const { namespace, type, id } = request;
    const found = readableStore(callerOf(context), namespace, type).get(namespace, type, id);
    if (!found) throw notFound(`resource ${type}(${namespace}/${id}@undefined) doesn't exist`);
    return { resource: wire(found) };
  },

  async *list({ namespace, type, options }, context) {
    const store = readableStore(callerOf(context), namespace, type);
    const isWanted = selector(options?.labelQuery ?? [], options?.idQuery);
    for (const resource of store.list(namespace, type)) {
      if (isWanted(resource)) yield { resource: wire(resource) };
    }
  },

  async *watch({ namespace, type, id, options, apiVersion }, context) {
    const store = readableStore(callerOf(context), namespace, type);
    const bootstrap = options?.bootstrapContents === true;
    if (id !== undefined && (bootstrap || (options?.labelQuery.length ?? 0) > 0)) {
      throw unimplemented("a watch of one resource takes neither bootstrap contents nor a query");
    }
    if (options?.startFromBookmark !== undefined) throw failedPrecondition("invalid bookmark");
    const isWanted = selector(options?.labelQuery ?? [], options?.idQuery);
    const changes = store.watch(namespace, type, id);
    const end = (): void => store.unwatch(changes);
    context.signal.addEventListener("abort", end, { once: true });
    try {
      yield { event: [] };
      for (const event of presentState(store, { namespace, type, id, bootstrap, apiVersion, isWanted })) {
        yield { event: [event] };
      }
      for await (const change of changes)
        if (isWanted(change.resource)) yield { event: [changeEvent(change)] };
    } finally {
      context.signal.removeEventListener("abort", end);
      end();
    }
  },

  create: refuseWrite,
  update: refuseWrite,
  destroy: refuseWrite,
  teardown: refuseWrite,
  teardownAndDestroy: refuseWrite,
};

function readableStore(caller: Caller, namespace: string, type: string): ResourceStore {
  const { minor } = parseVersionContract(caller.node.record.talosVersion);
  const sensitivity = sensitivityOf(type, minor);
  if (!sensitivity) throw permissionDenied(`resource type ${JSON.stringify(type)} is not supported`);
  if (!namespaceNames.includes(namespace)) {
    throw permissionDenied(`namespace ${JSON.stringify(namespace)} is not supported`);
  }
  if (sensitivity === "sensitive" && !caller.roles.includes(roles.admin))
    throw permissionDenied("not authorized");
  return namespace === "meta"
    ? definitionStore(minor, caller.node.edges.clock)
    : caller.node.currentResources();
}

interface WatchStart {
  readonly namespace: string;
  readonly type: string;
  readonly id: string | undefined;
  readonly bootstrap: boolean;
  readonly apiVersion: number;
  readonly isWanted: (resource: StoredResource) => boolean;
}

function* presentState(store: ResourceStore, start: WatchStart): Generator<EventInit> {
  const { namespace, type, id } = start;
  if (id !== undefined) {
    const found = store.get(namespace, type, id);
    if (found) yield { eventType: EventType.CREATED, resource: wire(found) };
    else {
      const metadata = { namespace, type, id, version: "undefined", phase: "running" };
      yield { eventType: EventType.DESTROYED, resource: { metadata, spec: {} } };
    }
    return;
  }
  if (!start.bootstrap) return;
  const present = store.list(namespace, type).filter(start.isWanted);
  for (const resource of present) yield { eventType: EventType.CREATED, resource: wire(resource) };
  if (start.apiVersion < 1) return;
  const last = present.at(-1);
  yield { eventType: EventType.BOOTSTRAPPED, ...(last ? { resource: wire(last) } : {}) };
}

function changeEvent(change: ResourceChange): EventInit {
  const resource = wire(change.resource);
  switch (change.type) {
    case "created":
      return { eventType: EventType.CREATED, resource };
    case "updated":
      return { eventType: EventType.UPDATED, resource, old: wire(change.old) };
    case "destroyed":
      return { eventType: EventType.DESTROYED, resource };
  }
}

function wire(resource: StoredResource): Resource {
  return create(ResourceSchema, {
    metadata: {
      namespace: resource.namespace,
      type: resource.type,
      id: resource.id,
      version: String(resource.version),
      owner: resource.owner,
      phase: "running",
      created: timestampFromMs(resource.created),
      updated: timestampFromMs(resource.updated),
      labels: { ...resource.labels },
      annotations: { ...resource.annotations },
    },
    spec: { protoSpec: resource.proto, yamlSpec: resource.yaml() },
  });
}

/** All terms of one query must hold; of several queries one suffices. */
function selector(
  queries: readonly LabelQuery[],
  ids: IDQuery | undefined,
): (resource: StoredResource) => boolean {
  const text = ids?.regexp ?? "";
  // A pattern is the caller's: only its literal part is used, as a search for text.
  const literal = text.replace(/^\^|\$$/g, "");
  if (/[\\()[\]{}|*+?.]/.test(literal)) throw unimplemented("the simulator takes only literal id queries");
  return ({ id, labels = {} }) => {
    if (text !== "" && !id.includes(literal)) return false;
    return queries.length === 0 || queries.some(({ terms }) => terms.every((term) => matches(term, labels)));
  };
}

function matches(term: LabelQuery["terms"][number], labels: Readonly<Record<string, string>>): boolean {
  const value = labels[term.key];
  const [first = ""] = term.value;
  const holds = ((): boolean => {
    switch (term.op) {
      case Operation.EXISTS:
        return value !== undefined;
      case Operation.NOT_EXISTS:
        return value === undefined;
      case Operation.EQUAL:
        return value === first;
      case Operation.IN:
        return value !== undefined && term.value.includes(value);
      case Operation.LT:
        return value !== undefined && value < first;
      case Operation.LTE:
        return value !== undefined && value <= first;
      case Operation.LT_NUMERIC:
        return value !== undefined && Number(value) < Number(first);
      case Operation.LTE_NUMERIC:
        return value !== undefined && Number(value) <= Number(first);
      default:
        throw unimplemented("unknown operation of a label query");
    }
  })();
  return holds !== term.invert;
}
