/**
 * API keys: a file of SHA-256 digests, reloaded when it changes.
 *
 * The raw token is never stored. The presented token is hashed and its digest compared in constant time
 * with every key, so the time taken says nothing about which one matched. A file that becomes bad
 * while running keeps the last good keys and says so; at the start it is fatal.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { CodedError, messageOf, type Edges, type Timer } from "@kontinuum/std";
import { z } from "zod";
import { roles, type Principal } from "../model/principal.ts";
import { formatTime } from "../model/bytes.ts";
import { bearerToken, type AuthRequest, type Authenticator, type Holder } from "./authenticator.ts";

/** How often the file is looked at, milliseconds. */
export const reloadEveryMs = 2_000;
/** Keys of one file. */
const maxKeys = 10_000;

const fileSchema = z.object({
  keys: z
    .array(
      z.object({
        name: z.string().min(1).max(256),
        sha256: z.string().regex(/^[0-9a-fA-F]{64}$/),
        role: z.enum(roles),
        projects: z.array(z.string().min(1)).min(1),
        expiresAt: z.iso.datetime({ offset: true }).optional(),
      }),
    )
    .min(1)
    .max(maxKeys),
});

interface ApiKey {
  readonly digest: Buffer;
  readonly principal: Principal;
  readonly expiresMs: number;
}

/** Parses a keys file; the error names the entry, never a digest. */
export function parseApiKeys(text: string, path: string): ApiKey[] {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    throw new CodedError("invalid_argument", `API keys file ${path} is not JSON`);
  }
  const parsed = fileSchema.safeParse(raw);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new CodedError(
      "invalid_argument",
      `API keys file ${path}: ${issue?.path.join(".") || "document"}: ${issue?.code === "invalid_format" ? "must be 64 hex digits or a time" : (issue?.message ?? "is not valid")}`,
    );
  }
  return parsed.data.keys.map((key) => ({
    digest: Buffer.from(key.sha256, "hex"),
    principal: { name: key.name, role: key.role, projects: [...new Set(key.projects)] },
    expiresMs: key.expiresAt === undefined ? Infinity : Date.parse(key.expiresAt),
  }));
}

/** Authenticates `Authorization: Bearer` tokens. */
export class ApiKeyAuthenticator implements Authenticator {
  readonly mode = "apikey";
  readonly #path: string;
  readonly #edges: Edges;
  readonly #listeners: (() => void)[] = [];
  #used: (name: string) => void = () => {};
  #keys: readonly ApiKey[];
  #stamp: string;
  #timer: Timer | undefined;
  #closed = false;

  private constructor(path: string, edges: Edges, keys: readonly ApiKey[], stamp: string) {
    this.#path = path;
    this.#edges = edges;
    this.#keys = keys;
    this.#stamp = stamp;
    this.#schedule();
  }

  /** Loads the file. Fails with `invalid_argument`. */
  static async open(path: string, edges: Edges): Promise<ApiKeyAuthenticator> {
    try {
      const { text, stamp } = await read(path);
      return new ApiKeyAuthenticator(path, edges, parseApiKeys(text, path), stamp);
    } catch (error) {
      if (error instanceof CodedError) throw error;
      throw new CodedError("invalid_argument", `API keys file ${path} cannot be read: ${messageOf(error)}`);
    }
  }

  authenticate(request: AuthRequest): Promise<Principal | undefined> {
    const token = bearerToken(request);
    if (token === undefined) return Promise.resolve(undefined);
    const digest = createHash("sha256").update(token, "utf8").digest();
    let found: ApiKey | undefined;
    for (const key of this.#keys) if (timingSafeEqual(key.digest, digest)) found ??= key;
    const live = found && found.expiresMs > this.#edges.clock.now();
    if (!live || !found) return Promise.resolve(undefined);
    this.#used(found.principal.name);
    return Promise.resolve(found.principal);
  }

  onUse(listener: (name: string) => void): void {
    this.#used = listener;
  }

  holders(): readonly Holder[] {
    return this.#keys.map(({ principal: { name, role, projects }, expiresMs }) => ({
      name,
      role,
      projects,
      ...(expiresMs === Infinity ? {} : { expiresAt: formatTime(expiresMs) }),
    }));
  }

  stillValid(principal: Principal): boolean {
    const now = this.#edges.clock.now();
    return this.#keys.some(
      ({ principal: current, expiresMs }) =>
        expiresMs > now &&
        current.name === principal.name &&
        current.role === principal.role &&
        current.projects.join() === principal.projects.join(),
    );
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Looks at the file now. */
  async reload(): Promise<void> {
    try {
      const { text, stamp } = await read(this.#path, this.#stamp);
      if (text === undefined) return;
      this.#stamp = stamp;
      this.#keys = parseApiKeys(text, this.#path);
      this.#edges.log.info("API keys were reloaded", { count: this.#keys.length });
      for (const listener of this.#listeners) listener();
    } catch (error) {
      this.#edges.log.error("API keys could not be reloaded; the last good ones stay", {
        problem: messageOf(error),
      });
    }
  }

  close(): void {
    this.#closed = true;
    this.#timer?.clear();
  }

  #schedule(): void {
    this.#timer = this.#edges.clock.timer(reloadEveryMs, () => {
      void this.reload().finally(() => {
        if (!this.#closed) this.#schedule();
      });
    });
  }
}

async function read(path: string): Promise<{ text: string; stamp: string }>;
async function read(path: string, known: string): Promise<{ text: string | undefined; stamp: string }>;
async function read(path: string, known?: string): Promise<{ text: string | undefined; stamp: string }> {
  const { mtimeMs, size, ino } = await stat(path);
  const stamp = `${mtimeMs}/${size}/${ino}`;
  if (stamp === known) return { text: undefined, stamp };
  return { text: await readFile(path, "utf8"), stamp };
}
