/**
 * The audit trail: who did what to what, with which outcome (audit.k8s.io/v1 Event).
 *
 * Metadata level only: bodies, which may hold secrets, are never in it. Whoever embeds the server decides where
 * events go; without a sink nothing is made.
 */
import type { Clock, JsonObject } from "@kontinuum/std";
import type { UserInfo } from "../contract.ts";
import { header } from "../wire/request.ts";
import type { RequestContext } from "./context.ts";

/** Takes finished audit events. Must not throw and must not block. */
export type AuditSink = (event: JsonObject) => void;

/** Makes audit events. */
export class Audit {
  readonly #sink: AuditSink | undefined;
  readonly #clock: Clock;
  readonly #received = new WeakMap<RequestContext, number>();

  constructor(sink: AuditSink | undefined, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  received(context: RequestContext): void {
    if (!this.#sink) return;
    this.#received.set(context, this.#clock.now());
    if (context.longRunning) this.#emit(context, "RequestReceived", undefined);
  }

  completed(context: RequestContext): void {
    if (!this.#sink) return;
    this.#emit(context, "ResponseComplete", context.response.statusCode);
  }

  #emit(context: RequestContext, stage: string, code: number | undefined): void {
    const { info, request } = context;
    const now = this.#clock.now();
    const impersonated = context.impersonator !== undefined;
    const agent = header(request, "user-agent");
    this.#sink?.({
      kind: "Event",
      apiVersion: "audit.k8s.io/v1",
      level: "Metadata",
      auditID: context.auditId,
      stage,
      requestURI: request.url.slice(0, 4096),
      verb: info.verb,
      user: shown(context.impersonator ?? context.user),
      ...(impersonated ? { impersonatedUser: shown(context.user) } : {}),
      sourceIPs: [request.address],
      ...(agent === undefined ? {} : { userAgent: agent.slice(0, 1024) }),
      ...(info.isResource
        ? {
            objectRef: {
              resource: info.resource,
              ...(info.namespace === "" ? {} : { namespace: info.namespace }),
              ...(info.name === "" ? {} : { name: info.name }),
              ...(info.group === "" ? {} : { apiGroup: info.group }),
              apiVersion: info.version,
              ...(info.subresource === "" ? {} : { subresource: info.subresource }),
            },
          }
        : {}),
      ...(code === undefined ? {} : { responseStatus: { metadata: {}, code } }),
      requestReceivedTimestamp: micro(this.#received.get(context) ?? now),
      stageTimestamp: micro(now),
      annotations: { ...context.annotations },
    });
  }
}

function micro(ms: number): string {
  return new Date(ms).toISOString().replace(/(\.\d{3})Z$/, "$1000Z");
}

function shown({ name, uid, groups, extra }: UserInfo): JsonObject {
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(extra === undefined ? {} : { extra }),
  };
}
