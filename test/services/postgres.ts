/**
 * A private PostgreSQL in a temporary folder.
 */
import { chown, mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import {
  findProgram,
  freePort,
  postgresFolders,
  run,
  start,
  Hopeless,
  waitFor,
  type Missing,
  type Running,
} from "./service.ts";

/** A running PostgreSQL. */
export interface Postgres {
  /** Connection string of a superuser on loopback. */
  readonly url: string;
  readonly port: number;
  /** Stops the server at once, as a crash would (SIGKILL of the postmaster). */
  kill(): Promise<void>;
  /** Starts it again after {@link Postgres.kill}, on the same port and data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Path of the `postgres` program, or what is missing. */
export const findPostgres = async (): Promise<string | Missing> =>
  findProgram("postgres", "postgresql", await postgresFolders());

/** Starts a private server. PostgreSQL refuses to run as root, so a root caller becomes `postgres`. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<Postgres> {
  return startFilled(settings, (data) => ({
    program: "initdb",
    args: ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"],
  }));
}

/**
 * Starts a standby that follows `primary` under the name `standby`: `synchronous_standby_names = 'standby'` on the primary makes
 * each commit wait for it, `SELECT pg_promote()` on the standby makes it the primary.
 */
export async function startStandby(primary: Postgres): Promise<Postgres> {
  const source = `host=127.0.0.1 port=${primary.port} user=postgres application_name=standby`;
  return startFilled({}, (data) => ({
    program: "pg_basebackup",
    args: [
      "-D",
      data,
      "-d",
      source,
      "--write-recovery-conf",
      "--wal-method=stream",
      "--no-sync",
      "-c",
      "fast",
    ],
  }));
}

/** Starts a server on a data folder that a program fills first. */
async function startFilled(
  settings: Readonly<Record<string, string>>,
  fill: (data: string) => { readonly program: string; readonly args: readonly string[] },
): Promise<Postgres> {
  const program = await findPostgres();
  if (typeof program !== "string") throw new Error(program.missing);
  const folder = await mkdtemp(path.join(os.tmpdir(), "postgres-"));
  const identity = await unprivileged();
  if (identity) await chown(folder, identity.uid, identity.gid);
  const data = path.join(folder, "data");
  const env = { PATH: process.env["PATH"] ?? "", LC_ALL: "C" };
  const filling = fill(data);
  const filled = await run(path.join(path.dirname(program), filling.program), filling.args, {
    env,
    ...identity,
  });
  if (filled.code !== 0) throw new Error(`${filling.program} failed: ${filled.stderr}`);
  const port = await freePort();
  const options = Object.entries({
    listen_addresses: "127.0.0.1",
    unix_socket_directories: folder,
    ...settings,
  });
  const args = [
    "-D",
    data,
    "-p",
    String(port),
    ...options.flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let server: Running;
  const boot = async (): Promise<void> => {
    server = start(program, args, { env, cwd: folder, ...identity });
    await waitFor("PostgreSQL to accept connections", () => {
      if (server.child.exitCode !== null) throw new Hopeless(server.output());
      return /ready to accept (read-only )?connections/.test(server.output());
    });
  };
  await boot();
  return {
    url,
    port,
    async kill() {
      // The postmaster's children would go on serving without it: a crash of the machine ends them, too.
      const pid = server.child.pid;
      const children = pid === undefined ? [] : await childrenOf(pid);
      await Promise.all([server.stop("SIGKILL"), ...children.map(endProcess)]);
    },
    restart: boot,
    async stop() {
      await server.stop("SIGINT");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await run("ps", ["-o", "pid=", "--ppid", String(pid)]);
  return stdout
    .split("\n")
    .map(Number)
    .filter((child) => child > 0);
}

async function endProcess(pid: number): Promise<void> {
  await waitFor(`process ${pid} to end`, () => {
    try {
      process.kill(pid, "SIGKILL");
      return false;
    } catch {
      return true;
    }
  });
}

async function unprivileged(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all(["-u", "-g"].map((flag) => run("id", [flag, "postgres"])));
  return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
}
