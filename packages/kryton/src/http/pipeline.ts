/**
 * The life of a request under `/api/`: loopback guard, console ticket, failed sign-ins, authentication,
 * rate limit, body, project and role, broken rules, idempotency, handler, answer. One straight line.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf, type Edges } from "@kontinuum/std";
import { credentialDigest, type Authenticator, type AuthRequest } from "../auth/authenticator.ts";
import type { FailureLimit } from "../auth/failure-limit.ts";
import type { CookieSetter, Tickets } from "../auth/tickets.ts";
import { invalidRequest, KrytonError } from "../model/errors.ts";
import { allowed, hasRole, type Principal, type Role } from "../model/principal.ts";
import type { AcceptedChange, Asking } from "../service/asking.ts";
import { readBody } from "./decode.ts";
import { fingerprintOf, type Idempotency, type Keyed } from "./idempotency.ts";
import { guardLoopback } from "./loopback-guard.ts";
import { pathOf } from "./prelude.ts";
import type { RateLimit } from "./rate-limit.ts";
import { alreadySent, errorReply, type Reply } from "./reply.ts";
import type { Call, Opened, Outcome, Route } from "./route.ts";

/** What the pipeline is made from. */
export interface PipelineOptions {
  readonly edges: Edges;
  readonly authenticator: Authenticator;
  readonly tickets: Tickets;
  readonly failures: FailureLimit;
  readonly rateLimit: RateLimit;
  readonly idempotency: Idempotency;
  /** Names beside localhost that callers may use while authentication is off. */
  readonly allowedHosts: readonly string[];
  projects(): readonly string[];
  defaultProject(): string;
  /** Answers a repeat of an accepted change whose first answer was lost. */
  replay(route: Route, project: string, accepted: AcceptedChange): Promise<Reply>;
}

/** One request on its way. */
export interface Request {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
}

/** What is known of a caller by the time a request is answered; empty while it is not. */
interface Asker {
  name: string;
  role: string;
  project: string;
}

/** See the module comment. */
export class Pipeline {
  readonly #options: PipelineOptions;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Serves a route; failures become the error envelope. */
  async serve(route: Route, request: Request): Promise<Outcome> {
    const asker: Asker = { name: "", role: "", project: "" };
    let outcome: Outcome;
    try {
      outcome = await this.#serve(route, request, asker);
    } catch (thrown) {
      outcome = this.failed(thrown, request);
    }
    if (route.method !== "GET") this.#audit(route, request, asker, outcome);
    return outcome;
  }

  /** One line for every request that could change something: who asked for what, and what came of it. */
  #audit({ method, path }: Route, request: Request, asker: Asker, outcome: Outcome): void {
    const status = outcome === alreadySent ? request.outgoing.statusCode : outcome.status;
    this.#options.edges.log.info("audit", {
      user: asker.name,
      role: asker.role,
      project: asker.project,
      action: `${method} ${path}`,
      ...Object.fromEntries(
        Object.entries(request.params).map(([name, value]) => [name, value.slice(0, 128)]),
      ),
      status,
      address: request.incoming.socket.remoteAddress ?? "",
      request_id: request.requestId,
    });
  }

  /** The answer to a failure; what nobody expected is logged with its cause. */
  failed(thrown: unknown, request: Request): Reply {
    const { reply, error } = errorReply(thrown, request.requestId);
    const fields = {
      request_id: request.requestId,
      code: error.kryton,
      status: error.status,
      problem: error.message,
      ...(error.cause === undefined ? {} : { cause: messageOf(error.cause) }),
      ...(error.status === 500 && error.cause instanceof Error ? { stack: error.cause.stack } : {}),
    };
    if (error.status >= 500) this.#options.edges.log.error("request failed", fields);
    else this.#options.edges.log.info("request refused", fields);
    return reply;
  }

  /** Everything before routing that also holds for unknown paths: who is it, and may they ask at all. */
  async admit({ incoming, outgoing, requestId }: Omit<Request, "params">): Promise<Principal> {
    return this.#admit(incoming, requestId, (cookie) => outgoing.setHeader("Set-Cookie", cookie));
  }

  /** As {@link Pipeline.admit}, for an upgrade. */
  admitSocket(incoming: IncomingMessage, requestId: string): Promise<Principal> {
    return this.#admit(incoming, requestId, undefined);
  }

  /** The project a caller means; throws when it is not configured or not the caller's. */
  projectFor(principal: Principal, role: Role, given: unknown): string {
    const fallback = principal.issuer ? principal.projects[0] : undefined;
    const project =
      typeof given === "string" && given !== "" ? given : (fallback ?? this.#options.defaultProject());
    if (!this.#options.projects().includes(project)) {
      throw invalidRequest(`project ${JSON.stringify(project.slice(0, 80))} is not configured`);
    }
    if (!hasRole(principal, role)) throw tooLow(role);
    if (!allowed(principal, role, project)) {
      throw new KrytonError("FORBIDDEN", `project ${project} is not among the caller's projects`);
    }
    return project;
  }

  async #admit(incoming: IncomingMessage, requestId: string, setCookie: CookieSetter): Promise<Principal> {
    const { authenticator, failures, rateLimit, allowedHosts, edges, tickets } = this.#options;
    const isOff = authenticator.mode === "disabled";
    if (isOff) guardLoopback(incoming, allowedHosts);
    const address = incoming.socket.remoteAddress ?? "";
    const asked = authRequest(incoming);
    const credential = isOff ? "" : credentialDigest(asked);
    let principal: Principal | undefined;
    if (incoming.headers.authorization === undefined) {
      principal = await tickets.admit(incoming, queryOf(incoming), setCookie);
    }
    if (!principal) {
      const wait = failures.waitMs(address, credential);
      if (wait > 0) {
        throw new KrytonError("RATE_LIMITED", "too many failed sign-ins from this address", {
          retryAfterMs: wait,
        });
      }
      principal = await authenticator.authenticate(asked);
      if (principal && credential !== "") failures.worked(credential);
    }
    if (!principal) {
      // Asking without credentials is no guess; presenting wrong ones is, where there are right ones.
      if (credential !== "") failures.failed(address, credential);
      edges.log.warn("sign-in failed", { request_id: requestId, address, path: pathOf(incoming) });
      throw new KrytonError("UNAUTHORIZED", "unauthorized", {
        hint: isOff
          ? "Authentication is off here: send no credentials, or set KRYTON_AUTH_MODE to have them checked."
          : "Send Authorization: Bearer with a valid API key.",
      });
    }
    const caller = isOff ? address : principal.name;
    const retryAfterMs = rateLimit.take(caller || address);
    if (retryAfterMs > 0) {
      throw new KrytonError("RATE_LIMITED", "too many requests", {
        retryAfterMs,
        hint: "Wait for Retry-After.",
      });
    }
    return principal;
  }

  async #serve(route: Route, request: Request, asker: Asker): Promise<Outcome> {
    const { incoming } = request;
    if (route.access.kind === "public") {
      return route.open(Buffer.alloc(0)).run(this.#call(request, nobody, "", { requestedBy: "" }));
    }
    const principal = await this.admit(request);
    asker.name = principal.name;
    asker.role = principal.role;
    const body = route.takesBody ? await readBody(incoming, request.outgoing) : Buffer.alloc(0);
    const opened = route.open(body);
    const project = this.#authorize(route, principal, request, opened);
    asker.project = project;
    const key = incoming.headers["idempotency-key"];
    // What lies behind a console has its own idea of repeats.
    if (typeof key === "string" && route.method !== "GET" && route.access.kind !== "console") {
      const target = incoming.url ?? "";
      const fingerprint = fingerprintOf(route.method, target, body);
      return this.#once(route, request, principal, project, opened, {
        caller: principal.name,
        key,
        fingerprint,
      });
    }
    return opened.run(this.#call(request, principal, project, { requestedBy: principal.name }));
  }

  async #once(
    route: Route,
    request: Request,
    principal: Principal,
    project: string,
    opened: Opened,
    keyed: Keyed,
  ): Promise<Outcome> {
    const { idempotency, replay } = this.#options;
    const reservation = await idempotency.reserve(keyed);
    if (reservation.kind !== "new") {
      request.outgoing.setHeader("Idempotency-Replayed", "true");
      return reservation.kind === "done" ? reservation.reply : replay(route, project, reservation.accepted);
    }
    const asking: Asking = { requestedBy: principal.name, record: reservation.record };
    let outcome: Outcome;
    try {
      outcome = await opened.run(this.#call(request, principal, project, asking));
    } catch (thrown) {
      outcome = this.failed(thrown, request);
    }
    if (outcome !== alreadySent) await idempotency.finish(reservation, keyed, outcome);
    return outcome;
  }

  #authorize(route: Route, principal: Principal, request: Request, opened: Opened): string {
    const { access } = route;
    switch (access.kind) {
      case "public":
      case "any":
        return "";
      case "global":
        if (!hasRole(principal, access.role)) throw tooLow(access.role);
        return "";
      case "project":
      case "console": {
        const given =
          access.kind === "project" && access.from === "body"
            ? opened.raw["project"]
            : queryOf(request.incoming).get("project");
        return this.projectFor(principal, access.role, given);
      }
    }
  }

  #call(
    request: Request,
    principal: Principal,
    project: string,
    asking: Asking,
  ): Omit<Call<undefined>, "body"> {
    const { incoming, outgoing, requestId, params } = request;
    return { principal, project, params, query: queryOf(incoming), requestId, asking, incoming, outgoing };
  }
}

const nobody: Principal = { name: "", role: "viewer", projects: [] };

function tooLow(role: string): KrytonError {
  return new KrytonError("FORBIDDEN", `this needs the role ${role}`, {
    hint: "Ask an administrator for it.",
  });
}

function queryOf(incoming: IncomingMessage): URLSearchParams {
  const url = incoming.url ?? "";
  const mark = url.indexOf("?");
  return new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1));
}

function authRequest(incoming: IncomingMessage): AuthRequest {
  return {
    remoteAddress: incoming.socket.remoteAddress ?? "",
    header(name) {
      const value = incoming.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    },
  };
}
