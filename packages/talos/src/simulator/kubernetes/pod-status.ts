/**
 * What the kubelet says of a pod.
 */
import { formatTime } from "@kontinuum/controller";
import type { Clock, JsonObject } from "@kontinuum/std";
import { withCondition } from "./conditions.ts";
import type { BuiltinCondition, Container, Pod } from "./kinds.ts";
import type { PodPlacement } from "./pod-environment.ts";

/** State of the one container that a runner stands for; without a runner all are simply running. */
export type ContainerState =
  | { readonly kind: "running"; readonly ready: boolean; readonly startedAt: number }
  | { readonly kind: "waiting"; readonly reason: string; readonly message: string }
  | { readonly kind: "ended"; readonly code: number; readonly startedAt: number; readonly endedAt: number };

/** What is to be told. */
export interface PodObservation {
  readonly placement: PodPlacement;
  readonly state: ContainerState;
  readonly restartCount: number;
}

/** The status of a pod. */
export function podStatus(
  pod: Pod,
  { placement, state, restartCount }: PodObservation,
  clock: Clock,
): NonNullable<Pod["status"]> {
  const isEnded = state.kind === "ended";
  const phase = isEnded
    ? state.code === 0
      ? "Succeeded"
      : "Failed"
    : state.kind === "waiting" && restartCount === 0
      ? "Pending"
      : "Running";
  const isReady = state.kind === "running" && state.ready;
  const present = pod.status?.conditions ?? [];
  const { spec } = pod;
  return {
    ...pod.status,
    phase,
    hostIP: placement.hostIP,
    hostIPs: [{ ip: placement.hostIP }],
    podIP: placement.podIP,
    podIPs: [{ ip: placement.podIP }],
    startTime: pod.status?.startTime ?? formatTime(clock.now()),
    conditions: conditions(present, isReady, isEnded, clock),
    containerStatuses: spec.containers.map((container) =>
      containerStatus(container, state, restartCount, isReady),
    ),
    ...(spec.initContainers
      ? { initContainerStatuses: spec.initContainers.map((container) => initStatus(container, clock)) }
      : {}),
    qosClass: "BestEffort",
  };
}

function conditions(
  present: readonly BuiltinCondition[],
  isReady: boolean,
  isEnded: boolean,
  clock: Clock,
): BuiltinCondition[] {
  const notReady = isEnded ? { reason: "PodCompleted" } : { reason: "ContainersNotReady" };
  const readiness = isReady ? { status: "True" as const } : { status: "False" as const, ...notReady };
  return [
    { type: "PodReadyToStartContainers", status: isEnded ? ("False" as const) : ("True" as const) },
    { type: "Initialized", status: "True" as const },
    { type: "Ready", ...readiness },
    { type: "ContainersReady", ...readiness },
    { type: "PodScheduled", status: "True" as const },
  ].reduce((all: BuiltinCondition[], condition) => withCondition(all, condition, clock), [...present]);
}

function containerStatus(
  container: Container,
  state: ContainerState,
  restartCount: number,
  ready: boolean,
): JsonObject {
  const common = {
    name: container.name,
    image: container.image ?? "",
    imageID: "",
    restartCount,
    ready,
    started: state.kind === "running",
  };
  switch (state.kind) {
    case "running":
      return {
        ...common,
        containerID: `simulated://${container.name}`,
        state: { running: { startedAt: formatTime(state.startedAt) } },
      };
    case "waiting":
      return { ...common, state: { waiting: { reason: state.reason, message: state.message } } };
    case "ended":
      return {
        ...common,
        state: {
          terminated: {
            exitCode: state.code,
            reason: state.code === 0 ? "Completed" : "Error",
            startedAt: formatTime(state.startedAt),
            finishedAt: formatTime(state.endedAt),
          },
        },
      };
  }
}

/** Init containers have always succeeded. */
function initStatus(container: Container, clock: Clock): JsonObject {
  const at = formatTime(clock.now());
  return {
    name: container.name,
    image: container.image ?? "",
    imageID: "",
    restartCount: 0,
    ready: true,
    started: false,
    state: { terminated: { exitCode: 0, reason: "Completed", startedAt: at, finishedAt: at } },
  };
}
