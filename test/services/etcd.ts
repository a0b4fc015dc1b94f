/**
 * A private etcd in a temporary folder.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { findProgram, freePort, start, waitFor, type Missing, type Running, Hopeless } from "./service.ts";

/** A running etcd. */
export interface Etcd {
  /** `etcd://127.0.0.1:port` */
  readonly url: string;
  readonly endpoint: string;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Path of `etcd`, or what is missing. */
export const findEtcd = (): Promise<string | Missing> => findProgram("etcd", "etcd-server");
/** Path of `etcdctl`, or what is missing. */
export const findEtcdctl = (): Promise<string | Missing> => findProgram("etcdctl", "etcd-client");

/** Starts a private single-member etcd. */
export async function startEtcd(): Promise<Etcd> {
  const program = await findEtcd();
  if (typeof program !== "string") throw new Error(program.missing);
  // etcd flushes before every answer: on a disk that others write to, that alone makes it miss its own deadlines.
  const base = existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir();
  const folder = await mkdtemp(path.join(base, "etcd-"));
  const [client, peer] = await Promise.all([freePort(), freePort()]);
  const clientUrl = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  let server: Running;
  const boot = async (): Promise<void> => {
    server = start(
      program,
      [
        "--name=test",
        `--data-dir=${path.join(folder, "data")}`,
        `--listen-client-urls=${clientUrl}`,
        `--advertise-client-urls=${clientUrl}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=test=${peerUrl}`,
      ],
      { env: { PATH: process.env["PATH"] ?? "", ETCD_UNSUPPORTED_ARCH: process.arch } },
    );
    await waitFor("etcd to be healthy", async () => {
      if (server.child.exitCode !== null) throw new Hopeless(server.output());
      const answer = await fetch(`${clientUrl}/health`);
      return answer.ok && /true/.test(await answer.text());
    });
  };
  await boot();
  return {
    url: `etcd://127.0.0.1:${client}`,
    endpoint: `127.0.0.1:${client}`,
    kill: () => server.stop("SIGKILL"),
    restart: boot,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
