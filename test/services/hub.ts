/**
 * A real `kontinuum serve` process on loopback, with its own folder and database.
 */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { freePort, start, waitFor, type Running, Hopeless } from "./service.ts";

/** A running hub. */
export interface Hub {
  readonly url: string;
  readonly port: number;
  /** Its working folder, removed on stop. */
  readonly folder: string;
  readonly output: () => string;
  /** SIGKILL, as a crash. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const program = path.resolve(import.meta.dirname, "../../bin/kontinuum");

/** Starts a hub; `env` adds to or replaces its variables. Anonymous on loopback unless told otherwise. */
export async function startHub(env: Readonly<Record<string, string>> = {}): Promise<Hub> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "hub-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let running: Running;
  const boot = async (): Promise<void> => {
    running = start(program, ["serve"], {
      cwd: folder,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: folder,
        TMPDIR: folder,
        KONTINUUM_SERVER_ADDR: `127.0.0.1:${port}`,
        KONTINUUM_SERVER_STORAGE: `sqlite://${path.join(folder, "kontinuum.db")}`,
        KONTINUUM_INSECURE_ALLOW_ANONYMOUS: env["KONTINUUM_OIDC_ISSUER_URL"] === undefined ? "true" : "",
        KONTINUUM_LOG_LEVEL: "info",
        ...env,
      },
    });
    await waitFor("the hub to be ready", async () => {
      if (running.child.exitCode !== null) throw new Hopeless(running.output());
      return (await fetch(`${url}/readyz`)).ok;
    });
  };
  await boot();
  return {
    url,
    port,
    folder,
    output: () => running.output(),
    kill: () => running.stop("SIGKILL"),
    restart: boot,
    async stop() {
      await running.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
