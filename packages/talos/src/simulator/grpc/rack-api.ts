/**
 * The API of all nodes of a rack: one set of handlers behind every port.
 *
 * Two interceptors stand before the handlers, in the order of the real apid: may the caller call this at
 * all, and which node shall answer (`node` and `nodes` metadata). A call that is forwarded runs the same
 * handlers for another node, if that node would accept the connection.
 */
import {
  createContextValues,
  type Interceptor,
  type StreamResponse,
  type UnaryResponse,
} from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter, type ConnectNodeAdapterOptions } from "@connectrpc/connect-node";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { isObject } from "@kontinuum/std";
import { ClusterService } from "../../gen/cluster/cluster_pb.ts";
import { State } from "../../gen/cosi/resource/state_pb.ts";
import { MetadataSchema, type Metadata } from "../../gen/common/common_pb.ts";
import { InspectService } from "../../gen/inspect/inspect_pb.ts";
import { ImageService } from "../../gen/machine/image_pb.ts";
import { LifecycleService } from "../../gen/machine/lifecycle_pb.ts";
import { MachineService } from "../../gen/machine/machine_pb.ts";
import { SecurityService } from "../../gen/securityapi/security_pb.ts";
import { StorageService } from "../../gen/storage/storage_pb.ts";
import { TimeService } from "../../gen/time/time_pb.ts";
import { permissionDenied, unavailable, wireError } from "../call-error.ts";
import type { Peer } from "../node-listener.ts";
import type { SimulatedNode } from "../node.ts";
import { mayCall, roles } from "../role.ts";
import { callerKey, type Caller } from "./call-context.ts";
import { clusterService } from "./cluster-service.ts";
import { imageService } from "./image-service.ts";
import { inspectService } from "./inspect-service.ts";
import { lifecycleService } from "./lifecycle-service.ts";
import { machineService } from "./machine-service.ts";
import { securityService, storageService, timeService } from "./other-services.ts";
import { routeOf } from "./route.ts";
import { stateService } from "./state-service.ts";

/** Largest message either way (Talos API). */
const messageBytes = 32 * 1024 * 1024;

/** What the API needs of the rack. */
export interface RackApiOptions {
  /** A node by address or host name. */
  readonly nodeAt: (target: string) => SimulatedNode | undefined;
  readonly healthIntervalMs: number;
}

/** See the module's comment. */
export class RackApi {
  readonly #callers = new WeakMap<object, Caller>();
  readonly #apid: (request: Http2ServerRequest, response: Http2ServerResponse) => void;
  readonly #trustd: (request: Http2ServerRequest, response: Http2ServerResponse) => void;

  constructor(options: RackApiOptions) {
    const common = {
      fallback: unknownService,
      connect: false,
      grpcWeb: false,
      readMaxBytes: messageBytes,
      writeMaxBytes: messageBytes,
      contextValues: (request: object) => {
        const values = createContextValues();
        const caller = this.#callers.get(request);
        return caller ? values.set(callerKey, caller) : values;
      },
    };
    this.#apid = connectNodeAdapter({
      ...common,
      interceptors: [failures, faults, permission, routing(options)],
      routes: (router) => {
        router.service(MachineService, machineService);
        router.service(ClusterService, clusterService(options.nodeAt, options.healthIntervalMs));
        router.service(StorageService, storageService);
        router.service(TimeService, timeService);
        router.service(State, stateService);
        router.service(InspectService, inspectService);
        router.service(ImageService, imageService);
        router.service(LifecycleService, lifecycleService);
      },
    });
    this.#trustd = connectNodeAdapter({
      ...common,
      routes: (router) => void router.service(SecurityService, securityService),
    });
  }

  /** Answers a call to the Talos API of a node. */
  handle(node: SimulatedNode, request: Http2ServerRequest, response: Http2ServerResponse, peer: Peer): void {
    this.#callers.set(request, { node, roles: peer.roles, isMaintenance: peer.isMaintenance });
    this.#apid(request, response);
  }

  /** Answers a call to trustd of a node. */
  handleTrustd(node: SimulatedNode, request: Http2ServerRequest, response: Http2ServerResponse): void {
    this.#callers.set(request, { node, roles: [], isMaintenance: false });
    this.#trustd(request, response);
  }
}

/** What a gRPC server says to a service it does not have: a reply that is only a status. */
const unknownService: NonNullable<ConnectNodeAdapterOptions["fallback"]> = (request, response) => {
  const service = (request.url ?? "").split("/")[1] ?? "";
  const head = {
    ":status": 200,
    "content-type": "application/grpc",
    "grpc-status": String(Code.Unimplemented),
    "grpc-message": encodeURIComponent(`unknown service ${service.slice(0, 200)}`).replaceAll("%20", " "),
  };
  // Status and nothing else: one frame that ends the stream, as gRPC wants it.
  if ("stream" in response) response.stream.respond(head, { endStream: true });
  else response.destroy();
};

type Request = Parameters<ReturnType<Interceptor>>[0];
type Response = UnaryResponse | StreamResponse;

function callerOf(request: Request): Caller {
  const caller = request.contextValues.get(callerKey);
  if (!caller) throw unavailable("this connection belongs to no node");
  return caller;
}

/** Failures of the simulation in gRPC's terms. */
const failures: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: translated(response.message) } : response;
  } catch (error) {
    throw wireError(error);
  }
};

async function* translated<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw wireError(error);
  }
}

/** Delays, failures and lost replies that were asked for. */
const faults: Interceptor = (next) => async (request) => {
  const { node } = callerOf(request);
  const { callDelayMs, failCalls, loseReply } = node.faults;
  if (callDelayMs) await node.edges.clock.sleep(callDelayMs, request.signal);
  if (failCalls?.includes(request.method.name)) throw new ConnectError("simulated failure", Code.Internal);
  const response = await next(request);
  if (loseReply?.includes(request.method.name)) throw unavailable("simulated loss of the reply");
  return response;
};

const permission: Interceptor = (next) => (request) => {
  const caller = callerOf(request);
  const stated = request.header.get("talos-role");
  const effective =
    caller.roles.includes(roles.impersonator) && stated !== null ? stated.split(/,\s*/) : caller.roles;
  if (!mayCall(`/${request.service.typeName}/${request.method.name}`, effective))
    throw permissionDenied("not authorized");
  request.contextValues.set(callerKey, { ...caller, roles: effective });
  return next(request);
};

function routing({ nodeAt }: RackApiOptions): Interceptor {
  return (next) => async (request) => {
    const caller = callerOf(request);
    const run = (node: SimulatedNode): Promise<Response> => {
      const contextValues = createContextValues().set(callerKey, { ...caller, node });
      return next({ ...request, contextValues });
    };
    const route = routeOf(request.header, request.service.typeName, caller);
    if (route.kind === "local") return next(request);
    const reach = (target: string): SimulatedNode => reachable(nodeAt(target), caller.node, target);
    if (route.kind === "one") return run(reach(route.target));
    return fanOut(request, route.targets, (target) => run(reach(target)));
  };
}

/** The target, if it is up and trusts the cluster the call comes from. */
function reachable(target: SimulatedNode | undefined, from: SimulatedNode, name: string): SimulatedNode {
  const isTrusted = target?.config !== undefined && target.config.osCa.crt === from.config?.osCa.crt;
  const isUp = target !== undefined && target.apiPort !== 0 && target.faults.connections === undefined;
  if (!target || !isUp || !isTrusted) {
    throw unavailable(
      `connection error: desc = "transport: Error while dialing: dial tcp ${name}:50000: connect: connection refused"`,
    );
  }
  return target;
}

/** One reply per target; a target's failure is part of the reply, and the call itself succeeds. */
async function fanOut(
  request: Request,
  targets: readonly string[],
  run: (target: string) => Promise<Response>,
): Promise<Response> {
  const { service, method } = request;
  const contentType = request.header.get("content-type") ?? "application/grpc+proto";
  // What a handler's own response would carry (gRPC over HTTP/2).
  const head = {
    service,
    header: new Headers({ "content-type": contentType }),
    trailer: new Headers({ "grpc-status": "0" }),
  };
  if (request.stream) {
    return { ...head, stream: true, method: request.method, message: fanOutStream(request, targets, run) };
  }
  const messages: unknown[] = [];
  for (const target of targets) {
    try {
      const response = await run(target);
      const parts = response.stream ? [] : listOf(response.message);
      messages.push(...parts.map((part) => Object.assign(part, { metadata: metadataOf(target) })));
    } catch (error) {
      messages.push(failedPart(partOf(method.output), target, error));
    }
  }
  const message = Object.assign(create(method.output), { messages });
  return { ...head, stream: false, method: request.method, message };
}

async function* fanOutStream(
  request: Request,
  targets: readonly string[],
  run: (target: string) => Promise<Response>,
): AsyncGenerator<Message> {
  for (const target of targets) {
    try {
      const response = await run(target);
      if (!response.stream) continue;
      for await (const part of response.message) yield Object.assign(part, { metadata: metadataOf(target) });
    } catch (error) {
      yield failedPart(request.method.output, target, error);
    }
  }
}

/** The message of one node in a reply of several. */
function partOf(reply: DescMessage): DescMessage {
  const field = reply.field["messages"];
  return field?.fieldKind === "list" && field.listKind === "message" ? field.message : reply;
}

function failedPart(kind: DescMessage, target: string, error: unknown): Message {
  return Object.assign(create(kind), { metadata: metadataOf(target, error) });
}

function listOf(message: object): object[] {
  const list: unknown = "messages" in message ? message.messages : [];
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function metadataOf(hostname: string, error?: unknown): Metadata {
  if (error === undefined) return create(MetadataSchema, { hostname });
  const { code, rawMessage } = ConnectError.from(wireError(error));
  const text = `rpc error: code = ${Code[code]} desc = ${rawMessage}`;
  return create(MetadataSchema, { hostname, error: text, status: { code, message: rawMessage } });
}
