/**
 * What the simulated kubelet runs for a zone's workload: a real second process of this program.
 *
 * The process gets the pod's environment and mounts and nothing of this process's own environment. Three things
 * differ from a real pod and are told by variables: it listens on the pod's loopback address, its identity lies
 * in the pod's folder, and its host name is the pod's. It ends with this process, however that ends.
 */
import { spawn } from "node:child_process";
import { open } from "node:fs/promises";
import path from "node:path";
import { type Edges } from "@kontinuum/std";
import type { PodProcess, PodRunner, RunnablePod } from "@kontinuum/talos";
import { identityMountPath } from "../kinds/index.ts";

const program = path.resolve(import.meta.dirname, "../../bin/kontinuum.ts");
/** Port of the zone's server in its pod. */
const serverPort = 8080;
/** Time to end by itself before it is killed, milliseconds. */
const stopMs = 12_000;
const readyPollMs = 200;

/** Runs pods of the image `…/kontinuum` as processes of this program. */
export function kontinuumZoneRunner(edges: Edges): PodRunner {
  return { image: /(^|\/)kontinuum([:@]|$)/, start: (pod) => startServer(pod, edges) };
}

async function startServer(pod: RunnablePod, edges: Edges): Promise<PodProcess> {
  const log = await open(path.join(pod.privateDir, "server.log"), "a", 0o600);
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, "serve"], {
    cwd: pod.privateDir,
    env: serverEnvironment(pod),
    // Over the channel the child notices that this process is gone, even when it was killed.
    stdio: ["ignore", log.fd, log.fd, "ipc"],
  });
  let isRunning = true;
  const exited = new Promise<{ code: number; reason?: string }>((resolve) => {
    child.once("error", (error) => resolve({ code: 128, reason: error.message }));
    child.once("exit", (code, signal) =>
      resolve({ code: code ?? 137, ...(signal ? { reason: signal } : {}) }),
    );
  });
  void exited.then(() => {
    isRunning = false;
    return log.close();
  });
  return {
    exited,
    ready: whenServing(pod.address, edges, () => isRunning),
    async stop() {
      child.kill("SIGTERM");
      const timer = edges.clock.timer(stopMs, () => child.kill("SIGKILL"));
      await exited;
      timer.clear();
    },
  };
}

/** The pod's own environment, and what stands in for its network and mounts. */
export function serverEnvironment(
  pod: Pick<RunnablePod, "env" | "mounts" | "privateDir" | "address" | "name">,
): Record<string, string> {
  const identity = pod.mounts[identityMountPath] ?? identityMountPath;
  const authorities = pod.env["KONTINUUM_SERVER_GRPC_CA_FILE"];
  return {
    HOME: pod.privateDir,
    PATH: "/usr/bin:/bin",
    ...pod.env,
    ...(authorities
      ? { KONTINUUM_SERVER_GRPC_CA_FILE: path.join(identity, path.basename(authorities)) }
      : {}),
    TMPDIR: pod.mounts["/tmp"] ?? pod.privateDir,
    KONTINUUM_SERVER_ADDR: `${pod.address}:${serverPort}`,
    KONTINUUM_SERVER_IDENTITY_DIR: identity,
    KONTINUUM_SERVER_NAME: pod.name,
  };
}

async function whenServing(address: string, edges: Edges, isRunning: () => boolean): Promise<void> {
  while (isRunning()) {
    try {
      const connection = await edges.network.dial({ host: address, port: serverPort, timeoutMs: 1000 });
      connection.destroy();
      return;
    } catch {
      await edges.clock.sleep(readyPollMs);
    }
  }
}
