/**
 * The simulated kubelet of all nodes of a cluster: it brings up the pods that are bound to nodes that are up.
 *
 * A pod whose image a runner claims is that runner's; its readiness, exit and restarts follow the process. Any
 * other pod is simply running and ready, and one of a Job has simply succeeded. What runs is known to this process
 * only: after its start, pods that are said to run are started again.
 */
import { chmod, mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  controllerOf,
  defineController,
  exponential,
  isDeleting,
  keyOf,
  parseKey,
  watchOf,
  type CachedClient,
  type DefinedController,
  type ReconcileContext,
} from "@kontinuum/controller";
import { messageOf, type Clock, type Log } from "@kontinuum/std";
import type { SimulatedNode } from "../node.ts";
import { pods, type Container, type Pod } from "./kinds.ts";
import type { PodAddresses } from "./pod-address.ts";
import {
  containerEnvironment,
  containerMounts,
  MissingReference,
  prepareVolumes,
  type PodPlacement,
} from "./pod-environment.ts";
import type { PodProcess, PodRunner } from "./pod-runner.ts";
import { podStatus, type ContainerState } from "./pod-status.ts";

/** Options of a {@link Kubelet}. */
export interface KubeletOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly runners: readonly PodRunner[];
  readonly addresses: PodAddresses;
  /** Private folders of pods are made here. */
  readonly podFolder: () => Promise<string>;
  /** The node of that name, when it is up. */
  readonly nodeOf: (name: string) => SimulatedNode | undefined;
}

interface LocalPod {
  readonly key: string;
  readonly uid: string;
  readonly placement: PodPlacement;
  readonly ownsAddress: boolean;
  state: ContainerState;
  restartCount: number;
  process: PodProcess | undefined;
  privateDir: string | undefined;
  /** When a failed container may be started again, on the monotonic clock. */
  retryAt: number;
}

/** Waits between restarts of a failing container (kubelet: 10 s doubling to 5 min; shorter here, for a demonstration). */
const restartBackoff = { baseMs: 1_000, maxMs: 60_000 };
/** Wait for a config map or secret that is missing. */
const missingRetryMs = 1_000;

/** See the module's comment. */
export class Kubelet {
  readonly #options: KubeletOptions;
  readonly #local = new Map<string, LocalPod>();
  #requeue: (key: string) => void = () => {};

  constructor(options: KubeletOptions) {
    this.#options = options;
  }

  /** The controller that drives it. */
  controller(): DefinedController {
    const source = watchOf(pods, { map: (pod) => (pod.spec.nodeName ? [keyOf(pod)] : []) });
    return defineController({
      name: "kubelet",
      concurrency: 8,
      watches: [
        {
          resource: source.resource,
          connect: (informers, add) => {
            this.#requeue = add;
            return source.connect(informers, add);
          },
        },
      ],
      reconcile: (key, context) => this.#reconcile(key, context),
    });
  }

  /** A node has come up: its pods are due. */
  wake(client: CachedClient, nodeName: string): Promise<void> {
    return client.list(pods).then(({ items }) => {
      for (const pod of items) if (pod.spec.nodeName === nodeName) this.#requeue(keyOf(pod));
    });
  }

  /** A node is off: what ran there ends. */
  async stopNode(nodeName: string): Promise<void> {
    await Promise.all(
      [...this.#local.values()]
        .filter(({ placement }) => placement.nodeName === nodeName)
        .map((pod) => this.#forget(pod)),
    );
  }

  /** Ends everything. */
  async close(): Promise<void> {
    await Promise.all([...this.#local.values()].map((pod) => this.#forget(pod)));
  }

  async #reconcile(
    key: string,
    context: ReconcileContext,
  ): Promise<{ requeueAfterMs?: number | undefined } | undefined> {
    const { client } = context;
    const pod = await client.find(pods, parseKey(key));
    for (const local of this.#local.values()) {
      if (local.key === key && local.uid !== pod?.metadata.uid)
        await this.#forget(local, { removeFolder: true });
    }
    if (!pod?.spec.nodeName) return undefined;
    const node = this.#options.nodeOf(pod.spec.nodeName);
    if (!node) return undefined;
    const uid = pod.metadata.uid ?? "";
    if (isDeleting(pod)) {
      const local = this.#local.get(uid);
      if (local) await this.#forget(local, { removeFolder: true });
      await client.deleteIfExists(pods, pod.metadata, { gracePeriodSeconds: 0, preconditions: { uid } });
      return undefined;
    }
    if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") return undefined;
    const local = this.#local.get(uid) ?? this.#admit(pod, node);
    const requeueAfterMs = await this.#run(pod, local, client);
    const status = podStatus(pod, local, this.#options.clock);
    if (!isDeepStrictEqual(status, pod.status)) await client.updateStatus(pods, { ...pod, status });
    return { requeueAfterMs };
  }

  #admit(pod: Pod, node: SimulatedNode): LocalPod {
    const { addresses, clock } = this.#options;
    const hostIP = node.spec.address;
    const isHost = pod.spec.hostNetwork === true;
    const kept = pod.status?.podIP;
    if (kept && !isHost) addresses.reserve(kept);
    const local: LocalPod = {
      key: keyOf(pod),
      uid: pod.metadata.uid ?? "",
      placement: {
        podIP: isHost ? hostIP : (kept ?? addresses.take()),
        hostIP,
        nodeName: pod.spec.nodeName ?? "",
      },
      ownsAddress: !isHost,
      state: { kind: "waiting", reason: "ContainerCreating", message: "" },
      restartCount: 0,
      process: undefined,
      privateDir: undefined,
      retryAt: clock.monotonic(),
    };
    this.#local.set(local.uid, local);
    return local;
  }

  /** Starts what is due. Returns when to look again. */
  async #run(pod: Pod, local: LocalPod, client: CachedClient): Promise<number | undefined> {
    const { clock, runners } = this.#options;
    if (local.state.kind !== "waiting") return undefined;
    const found = claimed(pod, runners);
    if (!found) {
      const at = clock.now();
      const isJob = controllerOf(pod)?.kind === "Job";
      local.state = isJob
        ? { kind: "ended", code: 0, startedAt: at, endedAt: at }
        : { kind: "running", ready: true, startedAt: at };
      return undefined;
    }
    const wait = local.retryAt - clock.monotonic();
    if (wait > 0) return wait;
    try {
      await this.#start(pod, local, found, client);
      return undefined;
    } catch (error) {
      if (error instanceof MissingReference) {
        local.state = { kind: "waiting", reason: "CreateContainerConfigError", message: error.message };
        return missingRetryMs;
      }
      this.#options.log.warn("a pod's runner could not start it", {
        pod: local.key,
        reason: messageOf(error),
      });
      return this.#backOff(local, "RunContainerError", messageOf(error));
    }
  }

  async #start(
    pod: Pod,
    local: LocalPod,
    { container, runner }: { container: Container; runner: PodRunner },
    client: CachedClient,
  ): Promise<void> {
    const privateDir = path.join(await this.#options.podFolder(), local.uid);
    await mkdir(privateDir, { recursive: true, mode: 0o700 });
    await chmod(privateDir, 0o700);
    local.privateDir = privateDir;
    const folders = await prepareVolumes(client.live, pod, privateDir);
    const process = await runner.start({
      namespace: pod.metadata.namespace ?? "",
      name: pod.metadata.name,
      uid: local.uid,
      nodeName: local.placement.nodeName,
      container: container.name,
      image: container.image ?? "",
      env: await containerEnvironment(client.live, pod, container, local.placement),
      mounts: containerMounts(container, folders),
      privateDir,
      address: local.placement.podIP,
      ports: (container.ports ?? []).map(({ name, containerPort }) => ({ name, port: containerPort })),
    });
    if (this.#local.get(local.uid) !== local) return process.stop();
    local.process = process;
    const startedAt = this.#options.clock.now();
    local.state = { kind: "running", ready: process.ready === undefined, startedAt };
    void process.ready?.then(
      () => {
        if (local.process !== process || local.state.kind !== "running") return;
        local.state = { ...local.state, ready: true };
        this.#requeue(local.key);
      },
      () => {},
    );
    void process.exited.then(({ code, reason }) => this.#exited(pod, local, process, code, reason));
  }

  #exited(pod: Pod, local: LocalPod, process: PodProcess, code: number, reason: string | undefined): void {
    if (local.process !== process) return;
    local.process = undefined;
    const policy = pod.spec.restartPolicy ?? "Always";
    const { clock } = this.#options;
    if (policy === "Never" || (policy === "OnFailure" && code === 0)) {
      const startedAt = local.state.kind === "running" ? local.state.startedAt : clock.now();
      local.state = { kind: "ended", code, startedAt, endedAt: clock.now() };
    } else {
      this.#backOff(
        local,
        "CrashLoopBackOff",
        `the container ended with status ${code}${reason === undefined ? "" : `: ${reason}`}`,
      );
    }
    this.#requeue(local.key);
  }

  #backOff(local: LocalPod, reason: string, message: string): number {
    const wait = exponential(restartBackoff, local.restartCount);
    local.restartCount++;
    local.retryAt = this.#options.clock.monotonic() + wait;
    local.state = { kind: "waiting", reason, message };
    return wait;
  }

  async #forget(local: LocalPod, options: { readonly removeFolder?: boolean } = {}): Promise<void> {
    if (this.#local.get(local.uid) === local) this.#local.delete(local.uid);
    const { process, privateDir } = local;
    local.process = undefined;
    await process?.stop();
    if (local.ownsAddress && options.removeFolder === true)
      this.#options.addresses.release(local.placement.podIP);
    if (options.removeFolder === true && privateDir !== undefined)
      await rm(privateDir, { recursive: true, force: true });
  }
}

/** The first container that a runner claims. */
function claimed(
  pod: Pod,
  runners: readonly PodRunner[],
): { container: Container; runner: PodRunner } | undefined {
  for (const container of pod.spec.containers) {
    const runner = runners.find(({ image }) => image.test(container.image ?? ""));
    if (runner) return { container, runner };
  }
  return undefined;
}
