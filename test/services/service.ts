/**
 * Real services for tests: each is a private instance in a temporary folder on a free port, stopped and
 * removed when the test file ends.
 *
 * A service whose program is missing makes its suites skip with the name of the package that would bring
 * it; with `REQUIRE_SERVICES=1` (continuous integration) that is a failure instead.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { access, constants, readdir } from "node:fs/promises";
import net from "node:net";
import path from "node:path";

/** A program that is not on this machine. */
export interface Missing {
  readonly missing: string;
}

/** Whether a left-out service must fail the run. */
export const servicesRequired = process.env["REQUIRE_SERVICES"] === "1";

/**
 * The reason to skip a suite, or `false`. Use as `{ skip: skipUnless(await findProgram(...)) }`. Throws when
 * services are required.
 */
export function skipUnless(found: string | Missing): string | false {
  if (typeof found === "string") return false;
  if (servicesRequired) throw new Error(`required service: ${found.missing}`);
  return found.missing;
}

/** Finds an executable on PATH or in extra folders (globs of one `*` level are not supported; list them). */
export async function findProgram(
  name: string,
  debianPackage: string,
  extraFolders: readonly string[] = [],
): Promise<string | Missing> {
  const folders = [...extraFolders, ...(process.env["PATH"] ?? "").split(":")];
  for (const folder of folders) {
    const candidate = path.join(folder, name);
    try {
      await access(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Not here: look in the next folder.
    }
  }
  return { missing: `${name} is not installed (Debian package ${debianPackage})` };
}

/** Folders of PostgreSQL's server programs on Debian, newest first. */
export async function postgresFolders(): Promise<string[]> {
  const base = "/usr/lib/postgresql";
  const versions = await readdir(base).catch(() => []);
  return versions.sort((a, b) => Number(b) - Number(a)).map((version) => path.join(base, version, "bin"));
}

/** A TCP port of loopback that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === "object"
          ? resolve(address.port)
          : reject(new Error("no port")),
      );
    });
  });
}

/** Thrown inside {@link waitFor} when waiting on is of no use: the program ended, for example. */
export class Hopeless extends Error {}

/**
 * Polls until `check` gives something other than `undefined` or `false`, or fails with `what` after
 * `timeoutMs` (default 30 s). An exception of `check` (other than {@link Hopeless}) counts as "not yet" and is named at the end.
 */
export async function waitFor<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 30_000,
): Promise<T> {
  const until = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const result = await check();
      if (result !== undefined && result !== false) return result;
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      last = error;
    }
    if (performance.now() > until) {
      throw new Error(`waited ${timeoutMs} ms for ${what}${last === undefined ? "" : `: ${String(last)}`}`, {
        cause: last,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** A child process whose output is kept (the last 64 KiB) for the message of a failure. */
export interface Running {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** Ends it (SIGTERM, then SIGKILL after 5 s) and waits. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a program with an argument array; nothing passes through a shell. */
export function start(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; uid?: number; gid?: number } = {},
): Running {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let text = "";
  const keep = (chunk: Buffer): void => {
    text = (text + chunk.toString()).slice(-65_536);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", (error) => {
      text += String(error);
      resolve();
    });
  });
  return {
    child,
    output: () => text,
    async stop(signal = "SIGTERM") {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await exited;
      clearTimeout(timer);
    },
  };
}

/** Result of a program that ran to its end. */
export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end with optional standard input; killed after `timeoutMs` (default 60 s). */
export function run(
  command: string,
  args: readonly string[],
  options: {
    cwd?: string;
    env?: NodeJS.ProcessEnv;
    input?: string;
    timeoutMs?: number;
    uid?: number;
    gid?: number;
  } = {},
): Promise<Ran> {
  const { input, timeoutMs = 60_000, ...rest } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], ...rest });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() });
    });
    child.stdin.on("error", () => {
      // The program may end before it read everything; its exit code tells.
    });
    child.stdin.end(input ?? "");
  });
}
