/**
 * Behind a proxy that has authenticated the caller and says who it is in headers.
 *
 * The proxy proves itself with a shared secret; without it the headers count for nothing. It must strip
 * `X-Kryton-*` from what comes in.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { CodedError, messageOf } from "@kontinuum/std";
import { roles, type Principal } from "../model/principal.ts";
import type { AuthRequest, Authenticator } from "./authenticator.ts";

const maxProjects = 1_000;

/** Reads the secret's file. Fails with `invalid_argument` when it cannot be read or is empty. */
export async function openProxyAuthenticator(secretFile: string): Promise<Authenticator> {
  let secret: string;
  try {
    secret = (await readFile(secretFile, "utf8")).trim();
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `proxy secret file ${secretFile} cannot be read: ${messageOf(error)}`,
    );
  }
  if (secret === "") throw new CodedError("invalid_argument", `proxy secret file ${secretFile} is empty`);
  return proxyAuthenticator(secret);
}

/** Trusts the headers of whoever knows `secret`. */
export function proxyAuthenticator(secret: string): Authenticator {
  const expected = sha256(secret);
  return {
    mode: "proxy",
    authenticate: (request) => Promise.resolve(principalOf(request, expected)),
    stillValid: () => true,
  };
}

function principalOf(request: AuthRequest, expected: Buffer): Principal | undefined {
  const presented = request.header("x-kryton-proxy-secret")?.trim() ?? "";
  if (!timingSafeEqual(sha256(presented), expected)) return undefined;
  const name = request.header("x-kryton-user")?.trim();
  const wanted = request.header("x-kryton-role")?.trim().toLowerCase();
  const role = roles.find((candidate) => candidate === wanted);
  const projects = (request.header("x-kryton-projects") ?? "")
    .split(",")
    .map((project) => project.trim())
    .filter((project) => project !== "");
  if (!name || !role || projects.length === 0 || projects.length > maxProjects) return undefined;
  return { name, role, projects: [...new Set(projects)] };
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
