/**
 * Reading a node's resources (COSI State): get, list and watch, with decoded records.
 *
 * `proto_spec` is what counts; `yaml_spec` is display text and ignored. Resources come from a machine
 * nobody has vouched for, so every record is decoded under the transport's message bound and the
 * number of resources of one list is bounded here.
 */
import { fromBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Resource } from "../gen/cosi/resource/resource_pb.ts";
import { EventType, type State } from "../gen/cosi/resource/state_pb.ts";
import type { Caller, CallOptions } from "./call.ts";
import type { ResourceKind } from "./resource-kind.ts";
import { isTalosError, TalosError } from "./talos-error.ts";

/** Most resources accepted in one list. A large node has a few hundred of any type. */
const listMax = 5_000;

/** One resource with its record. */
export interface NodeResource<Spec> {
  readonly id: string;
  /** Decimal number of the version, or `undefined` as text. */
  readonly version: string;
  readonly phase: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Spec;
}

/** One change. `bootstrapped` says that all that existed at the start has been told. */
export type ResourceEvent<Spec> =
  | { readonly type: "created" | "updated"; readonly resource: NodeResource<Spec> }
  | { readonly type: "destroyed"; readonly id: string }
  | { readonly type: "bootstrapped" };

/** Options of a watch. The deadline covers only the time until the node accepts it. */
export interface WatchOptions extends CallOptions {
  /** Only this resource. Its present state comes first. */
  readonly id?: string;
  /** Tell what exists first, then `bootstrapped`. Default true; not with `id`. */
  readonly bootstrap?: boolean;
}

/** Reads resources of one node. */
export class StateReader {
  readonly #state: Client<typeof State>;
  readonly #caller: Caller;

  constructor(state: Client<typeof State>, caller: Caller) {
    this.#state = state;
    this.#caller = caller;
  }

  /** All resources of a kind, in the node's order (by id). */
  async list<D extends DescMessage>(
    kind: ResourceKind<D>,
    options: CallOptions = {},
  ): Promise<NodeResource<MessageShape<D>>[]> {
    const { namespace, type } = kind;
    const found: NodeResource<MessageShape<D>>[] = [];
    const stream = this.#caller.stream(`List ${type}`, options, (wire) =>
      this.#state.list({ namespace, type }, wire),
    );
    for await (const { resource } of stream) {
      if (found.length >= listMax) {
        throw new TalosError("protocol", `the node lists more than ${listMax} resources of ${type}`);
      }
      found.push(decode(kind, resource));
    }
    return found;
  }

  /** One resource, or `undefined` when there is none. */
  async get<D extends DescMessage>(
    kind: ResourceKind<D>,
    id: string,
    options: CallOptions = {},
  ): Promise<NodeResource<MessageShape<D>> | undefined> {
    const { namespace, type } = kind;
    try {
      const { resource } = await this.#caller.unary(`Get ${type}`, options, (wire) =>
        this.#state.get({ namespace, type, id }, wire),
      );
      return decode(kind, resource);
    } catch (error) {
      if (isTalosError(error, "not_found")) return undefined;
      throw error;
    }
  }

  /** Changes of a kind until the loop is left, the signal aborts, or the connection fails. */
  async *watch<D extends DescMessage>(
    kind: ResourceKind<D>,
    options: WatchOptions = {},
  ): AsyncGenerator<ResourceEvent<MessageShape<D>>, void, undefined> {
    const { namespace, type } = kind;
    const one = options.id === undefined ? {} : { id: options.id };
    const bootstrapContents = options.id === undefined && (options.bootstrap ?? true);
    const stream = this.#caller.stream(`Watch ${type}`, { ...options, untilFirst: true }, (wire) =>
      this.#state.watch({ namespace, type, ...one, options: { bootstrapContents }, apiVersion: 1 }, wire),
    );
    for await (const { event } of stream) {
      for (const { eventType, resource, error } of event) {
        switch (eventType) {
          case EventType.CREATED:
            yield { type: "created", resource: decode(kind, resource) };
            break;
          case EventType.UPDATED:
            yield { type: "updated", resource: decode(kind, resource) };
            break;
          case EventType.DESTROYED:
            yield { type: "destroyed", id: resource?.metadata?.id ?? "" };
            break;
          case EventType.BOOTSTRAPPED:
            yield { type: "bootstrapped" };
            break;
          case EventType.ERRORED:
            throw new TalosError("failed", `the node ended the watch of ${type}: ${error ?? "no reason"}`);
          case EventType.NOOP:
            break;
        }
      }
    }
  }
}

function decode<D extends DescMessage>(
  kind: ResourceKind<D>,
  resource: Resource | undefined,
): NodeResource<MessageShape<D>> {
  const metadata = resource?.metadata;
  const spec = resource?.spec;
  if (!metadata || !spec) {
    throw new TalosError("protocol", `the node sent a resource of ${kind.type} without metadata or spec`);
  }
  try {
    return {
      id: metadata.id,
      version: metadata.version,
      phase: metadata.phase,
      labels: { ...metadata.labels },
      spec: fromBinary(kind.schema, spec.protoSpec),
    };
  } catch (cause) {
    throw new TalosError(
      "protocol",
      `the node's ${kind.type} ${JSON.stringify(metadata.id)} is not readable`,
      {
        cause,
      },
    );
  }
}
