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
  const [member] = await startEtcdCluster(1);
  if (!member) throw new Error("a cluster of one has a member");
  return member;
}

/** Starts a private cluster of `size` members. Each is stopped by itself. */
export async function startEtcdCluster(size: number): Promise<Etcd[]> {
  const program = await findEtcd();
  if (typeof program !== "string") throw new Error(program.missing);
  const ports = await Promise.all(Array.from({ length: 2 * size }, freePort));
  const members = Array.from({ length: size }, (_, i) => ({
    name: `m${i}`,
    client: `http://127.0.0.1:${ports[2 * i]}`,
    peer: `http://127.0.0.1:${ports[2 * i + 1]}`,
  }));
  const cluster = members.map(({ name, peer }) => `${name}=${peer}`).join(",");
  return Promise.all(members.map((member) => startMember(program, member, cluster)));
}

async function startMember(
  program: string,
  { name, client, peer }: { readonly name: string; readonly client: string; readonly peer: string },
  cluster: string,
): Promise<Etcd> {
  // etcd flushes before every answer: on a disk that others write to, that alone makes it miss its own deadlines.
  const base = existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir();
  const folder = await mkdtemp(path.join(base, "etcd-"));
  let server: Running;
  const boot = async (): Promise<void> => {
    server = start(
      program,
      [
        `--name=${name}`,
        `--data-dir=${path.join(folder, "data")}`,
        `--listen-client-urls=${client}`,
        `--advertise-client-urls=${client}`,
        `--listen-peer-urls=${peer}`,
        `--initial-advertise-peer-urls=${peer}`,
        `--initial-cluster=${cluster}`,
      ],
      { env: { PATH: process.env["PATH"] ?? "", ETCD_UNSUPPORTED_ARCH: process.arch } },
    );
    await waitFor("etcd to be healthy", async () => {
      if (server.child.exitCode !== null) throw new Hopeless(server.output());
      const answer = await fetch(`${client}/health`);
      return answer.ok && /true/.test(await answer.text());
    });
  };
  await boot();
  const endpoint = client.slice("http://".length);
  return {
    url: `etcd://${endpoint}`,
    endpoint,
    kill: () => server.stop("SIGKILL"),
    restart: boot,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
