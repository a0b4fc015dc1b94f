/**
 * Who is calling? One small interface, one implementation per mode.
 *
 * `undefined` means "not authenticated" and is always answered 401: invalid credentials never fall back
 * to anything else.
 */
import { createHash } from "node:crypto";
import type { Principal } from "../model/principal.ts";

/** What an authenticator may look at. */
export interface AuthRequest {
  header(name: string): string | undefined;
  /** The peer's address. */
  readonly remoteAddress: string;
}

/** Somebody who has a credential of a list that this authenticator knows. */
export interface Holder extends Pick<Principal, "name" | "role" | "projects"> {
  /** RFC 3339. */
  readonly expiresAt?: string;
}

/** Recognises callers. */
export interface Authenticator {
  /** Shown in discovery: `disabled`, `apikey`, `proxy`, or what the embedding program calls it. */
  readonly mode: string;
  authenticate(request: AuthRequest): Promise<Principal | undefined>;
  /** False once what made this principal was revoked or reduced: its streams and consoles are cut. */
  stillValid(principal: Principal): boolean;
  /** Calls back whenever `stillValid` may have changed. */
  onChange?(listener: () => void): void;
  /** Calls back with the holder's name whenever a listed credential was used. */
  onUse?(listener: (name: string) => void): void;
  /** Everybody on the list, where there is one. */
  holders?(): readonly Holder[];
  close?(): void;
}

/** Whether a caller shows who it is, rightly or wrongly: then a failure is never taken for nobody's request. */
export function presentsCredentials(request: AuthRequest): boolean {
  return (
    request.header("authorization") !== undefined || request.header("x-kryton-proxy-secret") !== undefined
  );
}

/** A digest of what a caller shows, to know it again; it cannot be turned back. Empty when it shows nothing. */
export function credentialDigest(request: AuthRequest): string {
  if (!presentsCredentials(request)) return "";
  const shown = [request.header("authorization"), request.header("x-kryton-proxy-secret")];
  return createHash("sha256").update(JSON.stringify(shown)).digest("base64");
}

/** The token of an `Authorization: Bearer` header, or `undefined`. */
export function bearerToken(request: AuthRequest): string | undefined {
  const header = request.header("authorization");
  if (!header?.startsWith("Bearer ")) return undefined;
  const token = header.slice("Bearer ".length).trim();
  return token === "" ? undefined : token;
}
