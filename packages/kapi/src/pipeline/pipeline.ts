/**
 * The life of a request: one list of stages over one context, the same for every way a request can come in.
 *
 * A stage throws a `StatusError` to refuse; whatever else is thrown is a bug of ours, is logged under the request's
 * audit id and answered as 500. Nothing that happens here ends the process or touches another request.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import { accessDenied, attributesOf } from "../auth/access.ts";
import type { Identity } from "../auth/identity.ts";
import { impersonate } from "../auth/impersonate.ts";
import type { Authorizer } from "../contract.ts";
import { parseGoDuration } from "../schema/formats.ts";
import { badRequest, StatusError, toStatusError, timeout, unauthorized } from "../status/status.ts";
import { header } from "../wire/request.ts";
import { sendValue, sendText } from "../wire/respond.ts";
import type { Audit } from "./audit.ts";
import type { RequestContext } from "./context.ts";
import type { InFlight } from "./in-flight.ts";
import { maxUrlLength } from "./request-info.ts";

/** A step of the pipeline. */
export interface Stage {
  readonly name: string;
  run(context: RequestContext): void | Promise<void>;
}

/** Longest time of an ordinary request, its answer's way to the client included; and of the rest of any answer after its end. */
const requestTimeoutMs = 60_000;

/** What the pipeline is made of. */
export interface PipelineOptions {
  readonly edges: Edges;
  /** Refuses what browsers send across sites; absent while authentication is on. */
  readonly guard: ((context: RequestContext) => void) | undefined;
  readonly identity: Identity;
  readonly access: Authorizer;
  readonly inFlight: InFlight;
  readonly audit: Audit;
  /** Told about every answered request and how many seconds it took. */
  readonly observe: (context: RequestContext, seconds: number) => void;
  readonly route: (context: RequestContext) => Promise<void>;
}

/** Runs requests through the stages. */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #stages: readonly Stage[];

  constructor(options: PipelineOptions) {
    this.#options = options;
    const { guard, identity, access, inFlight, audit, route } = options;
    this.#stages = [
      { name: "identify", run: (context) => this.#identify(context) },
      { name: "guard", run: (context) => guard?.(context) },
      { name: "authenticate", run: (context) => authenticate(identity, context) },
      { name: "impersonate", run: (context) => impersonate(access, context) },
      { name: "audit", run: (context) => audit.received(context) },
      { name: "authorize", run: (context) => authorize(access, context) },
      {
        name: "answer",
        run: async (context) => {
          const leave = inFlight.enter(context);
          // A watch or a tunnel gives its place back once its answer has begun.
          if (context.info.verb === "watch" || context.tunnel) context.onStarted = leave;
          try {
            await route(context);
          } finally {
            leave();
          }
        },
      },
    ];
  }

  /** Answers a request; never fails. */
  async run(context: RequestContext): Promise<void> {
    const { edges, audit, observe } = this.#options;
    const began = edges.clock.monotonic();
    const timer = edges.clock.timer(timeoutOf(context) ?? requestTimeoutMs, () => {
      if (context.onTimeout) return context.onTimeout();
      if (context.response.headersSent || context.longRunning) return;
      void this.#fail(context, timeout("request did not complete within the allotted time"));
    });
    try {
      for (const stage of this.#stages) {
        const pending = stage.run(context);
        if (pending) await pending;
      }
    } catch (error) {
      await this.#fail(context, error);
    } finally {
      timer.clear();
      if (!context.inProcess && !context.isOver && context.response.writableLength > 0)
        this.#limitRest(context);
      audit.completed(context);
      observe(context, (edges.clock.monotonic() - began) / 1000);
    }
  }

  /** A client that does not take what is left of its answer loses the connection. */
  #limitRest({ response }: RequestContext): void {
    const timer = this.#options.edges.clock.timer(requestTimeoutMs, () => response.destroy());
    response.on("close", () => timer.clear());
  }

  #identify(context: RequestContext): void {
    const sent = header(context.request, "audit-id");
    context.auditId =
      sent !== undefined && /^[\w.-]{1,64}$/.test(sent) ? sent : this.#options.edges.random.uuid();
    context.response.setHeader("audit-id", context.auditId);
    if (context.request.url.length > maxUrlLength)
      throw new StatusError(414, "BadRequest", "the request's URL is too long");
    if (!context.request.url.startsWith("/"))
      throw new StatusError(400, "BadRequest", "the request's target must be a path");
    context.longRunning =
      context.tunnel !== undefined || (context.info.verb === "watch" && context.info.isResource);
    if (!context.longRunning && timeoutOf(context) === undefined)
      throw badRequest("invalid timeout specified in the request URL: it must be a duration such as 30s");
  }

  async #fail(context: RequestContext, error: unknown): Promise<void> {
    const { edges } = this.#options;
    const status = toStatusError(error);
    if (status.code >= 500 && status.cause !== undefined) {
      const { cause } = status;
      edges.log.error("request failed", {
        auditId: context.auditId,
        method: context.request.method,
        path: context.rawPath,
        reason: messageOf(cause),
        stack: cause instanceof Error ? cause.stack : undefined,
      });
    }
    context.annotations["kapi/outcome"] = status.reason;
    const { response } = context;
    try {
      if (response.headersSent) return void response.destroy();
      const retry = status.details?.retryAfterSeconds;
      if (retry !== undefined && retry > 0) response.setHeader("retry-after", String(retry));
      if (status.code === 404 && status.reason === "" && !context.info.isResource)
        return await sendText(context, 404, `${status.message}\n`);
      if (status.code === 413 && !endsSoon(context)) response.setHeader("connection", "close");
      await sendValue(context, status.code, status.toObject());
    } catch (again) {
      edges.log.warn("an answer could not be sent", { auditId: context.auditId, reason: messageOf(again) });
      response.destroy();
    }
  }
}

/** How long a client lets its request take (`?timeout=30s`), in ms, up to the server's own limit; `undefined` for no duration. */
function timeoutOf(context: RequestContext): number | undefined {
  if (!context.request.url.includes("timeout=")) return requestTimeoutMs;
  const text = context.parameter("timeout");
  if (text === undefined) return requestTimeoutMs;
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === undefined || nanoseconds < 0n) return undefined;
  const ms = Number(nanoseconds / 1_000_000n);
  return ms === 0 ? requestTimeoutMs : Math.min(ms, requestTimeoutMs);
}

/** Bodies up to this size are read to their end and dropped, so that the connection and the answer survive. */
const drainBytes = 32 * 1024 * 1024;

/** Whether the rest of a refused body is known to be short. HTTP/2 resets the stream alone, whatever its length. */
function endsSoon(context: RequestContext): boolean {
  if (context.inProcess || header(context.request, ":method") !== undefined) return true;
  const length = Number(header(context.request, "content-length") ?? Number.NaN);
  return length <= drainBytes;
}

async function authenticate(identity: Identity, context: RequestContext): Promise<void> {
  if (context.inProcess) return;
  if (context.refusedCertificate) throw unauthorized();
  context.user = await identity.authenticate(context);
}

async function authorize(access: Authorizer, context: RequestContext): Promise<void> {
  const attributes = attributesOf(context.user, context.info);
  const { decision, reason } = await access.authorize(attributes);
  context.annotations["authorization.k8s.io/decision"] = decision === "allow" ? "allow" : "forbid";
  if (reason !== "") context.annotations["authorization.k8s.io/reason"] = reason;
  if (decision !== "allow") throw accessDenied(attributes, decision === "deny" ? reason : "");
}
