/**
 * Console tickets: ten minutes of one machine's console, for a browser that cannot send a header.
 *
 * A ticket names the machine, the project, the caller and whether it may type; it is signed with a
 * stored, rotating key. It counts only on the console paths of that machine, only for GET and HEAD, and
 * only when no `Authorization` header is sent.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Edges } from "@kontinuum/std";
import { formatTime } from "../model/bytes.ts";
import { KrytonError } from "../model/errors.ts";
import { hasRole, roles, type Principal, type Role } from "../model/principal.ts";
import type { TicketKeys } from "./ticket-keys.ts";

/** Life of a ticket, seconds. */
export const ticketSeconds = 600;
/** Name of the cookie that carries a ticket. */
export const ticketCookie = "kryton_console";
/** Name of the query parameter that carries a ticket. */
export const ticketParameter = "console_ticket";

const version = "v2";
const consolePath = /^\/api\/v1\/machines\/([^/]+)\/(?:console(?:\/.*)?|vnc)$/;

/** The ticket of a page in a sandbox, which can send no cookie. */
const pathTicket = /\/console\/~([^/]+)/;

/** Which machine a ticket opens, and how far. */
export interface TicketSubject {
  readonly project: string;
  readonly machineId: string;
  readonly principal: Principal;
}

/** What tickets are made with. */
export interface TicketsOptions {
  readonly edges: Edges;
  readonly keys: TicketKeys;
  /** True when browsers reach the API over https. */
  secure(incoming: IncomingMessage): boolean;
  /** False once the caller who asked for a ticket has lost what made it possible. */
  holds(issuer: Principal): boolean;
}

/** Sets a header of the answer; absent where there is no ordinary answer (an upgrade). */
export type CookieSetter = ((value: string) => void) | undefined;

/** The role behind a ticket's principal: `viewer` may watch, `operator` may type. */
export type TicketRole = Extract<Role, "viewer" | "operator">;

/** See the module comment. */
export class Tickets {
  readonly #options: TicketsOptions;

  constructor(options: TicketsOptions) {
    this.#options = options;
  }

  /** Issues a ticket and sets its cookie. */
  async issue(
    subject: TicketSubject,
    incoming: IncomingMessage,
    setCookie: CookieSetter,
  ): Promise<{ ticket: string; expiresAt: string }> {
    const key = await this.#options.keys.signing();
    const expires = Math.floor(this.#options.edges.clock.now() / 1000) + ticketSeconds;
    const issuer = subject.principal.issuer ?? subject.principal;
    const fields = [
      version,
      key.id,
      String(expires),
      subject.project,
      subject.machineId,
      issuer.role,
      issuer.projects.join(","),
      issuer.name,
    ];
    const payload = Buffer.from(fields.map(encodeURIComponent).join("|"), "utf8").toString("base64url");
    const ticket = `${payload}.${sign(payload, key.secret)}`;
    setCookie?.(this.#cookie(ticket, subject.machineId, incoming));
    return { ticket, expiresAt: formatTime(expires * 1000) };
  }

  /**
   * The principal of the request's ticket; `undefined` when it carries none or is not a console request.
   * Throws `UNAUTHORIZED` when it carries only bad ones.
   */
  async admit(
    incoming: IncomingMessage,
    query: URLSearchParams,
    setCookie: CookieSetter,
  ): Promise<Principal | undefined> {
    const path = (incoming.url ?? "").split("?", 1)[0] ?? "";
    const machineId = consolePath.exec(path)?.[1];
    if (machineId === undefined || !(incoming.method === "GET" || incoming.method === "HEAD"))
      return undefined;
    const fromQuery = query.get(ticketParameter);
    const fromCookie = cookieOf(incoming);
    let reason: string | undefined;
    for (const ticket of [fromQuery, pathTicket.exec(path)?.[1], fromCookie]) {
      if (!ticket) continue;
      const checked = await this.#check(ticket, machineId);
      if (typeof checked === "string") {
        reason ??= checked;
        continue;
      }
      if (ticket === fromQuery && ticket !== fromCookie) {
        setCookie?.(this.#cookie(ticket, machineId, incoming));
      }
      return checked;
    }
    if (reason === undefined) return undefined;
    throw new KrytonError("UNAUTHORIZED", `unauthorized: ${reason}`, {
      hint: "Ask for a new console ticket.",
    });
  }

  async #check(ticket: string, machineId: string): Promise<Principal | string> {
    const [payload = "", signature = "", ...rest] = ticket.split(".");
    const fields = Buffer.from(payload, "base64url").toString("utf8").split("|").map(decode);
    const [form, keyId, expires, project, machine, role, projects, name] = fields;
    if (rest.length > 0 || fields.length !== 8 || form !== version) return "not a console ticket";
    const key = keyId === undefined ? undefined : await this.#options.keys.verifying(keyId);
    if (!key) return "the ticket was signed with an unknown key";
    if (!equal(sign(payload, key.secret), signature)) return "the ticket's signature is wrong";
    if (this.#options.edges.clock.now() >= Number(expires) * 1000) return "the ticket is expired";
    if (machine !== machineId) return "the ticket is for another machine";
    const issuerRole = roles.find((known) => known === role);
    if (project === undefined || name === undefined || projects === undefined || !issuerRole) {
      return "not a console ticket";
    }
    const issuer: Principal = { name, role: issuerRole, projects: projects.split(",") };
    if (!this.#options.holds(issuer)) return "the caller who asked for the ticket has no access any more";
    const typing: TicketRole = hasRole(issuer, "operator") ? "operator" : "viewer";
    return { name: `${name} (console)`, role: typing, projects: [project], issuer };
  }

  #cookie(ticket: string, machineId: string, incoming: IncomingMessage): string {
    const secure = this.#options.secure(incoming) ? "; Secure" : "";
    const path = `/api/v1/machines/${encodeURIComponent(machineId)}/`;
    return `${ticketCookie}=${ticket}; Path=${path}; Max-Age=${ticketSeconds}; HttpOnly; SameSite=Strict${secure}`;
  }
}

function sign(payload: string, secret: Buffer): string {
  return createHmac("sha256", secret).update(payload, "utf8").digest("base64url");
}

function equal(a: string, b: string): boolean {
  const left = Buffer.from(a, "utf8");
  const right = Buffer.from(b, "utf8");
  return left.length === right.length && timingSafeEqual(left, right);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function cookieOf(incoming: IncomingMessage): string | undefined {
  for (const part of (incoming.headers.cookie ?? "").split(";")) {
    const [name, value] = part.trim().split("=", 2);
    if (name === ticketCookie) return value;
  }
  return undefined;
}
