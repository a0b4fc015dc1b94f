/**
 * The seam to whoever really runs something for a simulated pod.
 *
 * Nothing in a pod's spec is ever executed: a runner is code of the embedder, chosen by the image's name. What
 * it gets is data, prepared by the simulated kubelet.
 */

/** A pod that is to run. */
export interface RunnablePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly nodeName: string;
  /** The container and its image. */
  readonly container: string;
  readonly image: string;
  /** Environment of the container, resolved from values, config maps, secrets and the pod's own fields. */
  readonly env: Readonly<Record<string, string>>;
  /** Folder on this machine for each mount path. Secret and config map volumes are filled. */
  readonly mounts: Readonly<Record<string, string>>;
  /** A folder of this pod alone, mode 0700; removed with the pod. */
  readonly privateDir: string;
  /** The pod's own address in 127/8: listen here. */
  readonly address: string;
  readonly ports: readonly { readonly name?: string | undefined; readonly port: number }[];
}

/** A pod that runs. */
export interface PodProcess {
  /** Ends it; resolves when it has ended. */
  stop(): Promise<void>;
  /** Resolves when it has ended by itself or by {@link stop}. Never rejects. */
  readonly exited: Promise<{ readonly code: number; readonly reason?: string }>;
  /** Resolves when it serves. Absent: at once. */
  readonly ready?: Promise<void>;
}

/** Runs the pods of one image. */
export interface PodRunner {
  /** Matched against the image as the pod names it. */
  readonly image: RegExp;
  /** Fails when it can't start; the kubelet tries again with a back-off. */
  start(pod: RunnablePod): Promise<PodProcess>;
}
