/**
 * The cells of a pod: what `kubectl get pods` says of its life.
 */
import type { JsonObject } from "@kontinuum/std";
import { child, has, isTrue, items, number, text } from "../read.ts";
import { age, none } from "./format.ts";
import type { CellTable } from "./cell.ts";

interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly reason: string;
  readonly restarts: number;
  /** Milliseconds since the epoch; zero when nothing restarted. */
  readonly lastRestart: number;
}

const isSidecar = (container: JsonObject | undefined): boolean =>
  text(container, "restartPolicy") === "Always";

const lastEnd = (status: JsonObject): number => {
  const finished = Date.parse(text(status, "lastState", "terminated", "finishedAt"));
  return Number.isNaN(finished) ? 0 : finished;
};

/** `Signal:9`, `ExitCode:1` or the reason itself. */
function ended(terminated: JsonObject): string {
  const reason = text(terminated, "reason");
  if (reason !== "") return reason;
  const signal = number(terminated, "signal");
  return signal === 0 ? `ExitCode:${number(terminated, "exitCode")}` : `Signal:${signal}`;
}

const condition = (pod: JsonObject, type: string): JsonObject | undefined =>
  items(pod, "status", "conditions").find((item) => text(item, "type") === type);

interface InitSummary {
  readonly ready: number;
  /** What holds the pod up, or `undefined` when initialisation is over. */
  readonly reason: string | undefined;
  readonly restarts: number;
  readonly lastRestart: number;
  readonly sidecarRestarts: number;
  readonly lastSidecarRestart: number;
}

function summarizeInit(pod: JsonObject): InitSummary {
  const specs = new Map(
    items(pod, "spec", "initContainers").map((container) => [text(container, "name"), container]),
  );
  const statuses = items(pod, "status", "initContainerStatuses");
  let ready = 0;
  let reason: string | undefined;
  let restarts = 0;
  let lastRestart = 0;
  let sidecarRestarts = 0;
  let lastSidecarRestart = 0;
  for (const [index, status] of statuses.entries()) {
    const sidecar = isSidecar(specs.get(text(status, "name")));
    restarts += number(status, "restartCount");
    lastRestart = Math.max(lastRestart, lastEnd(status));
    if (sidecar) {
      sidecarRestarts += number(status, "restartCount");
      lastSidecarRestart = Math.max(lastSidecarRestart, lastEnd(status));
    }
    const terminated = child(status, "state", "terminated");
    const waiting = text(status, "state", "waiting", "reason");
    if (terminated !== undefined && number(terminated, "exitCode") === 0) continue;
    if (sidecar && isTrue(status, "started")) {
      if (isTrue(status, "ready")) ready++;
      continue;
    }
    if (terminated !== undefined) reason = `Init:${ended(terminated)}`;
    else if (waiting !== "" && waiting !== "PodInitializing") reason = `Init:${waiting}`;
    else reason = `Init:${index}/${items(pod, "spec", "initContainers").length}`;
    break;
  }
  return { ready, reason, restarts, lastRestart, sidecarRestarts, lastSidecarRestart };
}

function summarize(pod: JsonObject): PodSummary {
  const initSpecs = items(pod, "spec", "initContainers");
  const total = items(pod, "spec", "containers").length + initSpecs.filter(isSidecar).length;
  const init = summarizeInit(pod);
  let { ready, restarts, lastRestart } = init;
  let reason = text(pod, "status", "reason") || text(pod, "status", "phase");
  if (text(condition(pod, "PodScheduled"), "reason") === "SchedulingGated") reason = "SchedulingGated";
  if (init.reason !== undefined) reason = init.reason;
  if (init.reason === undefined || text(condition(pod, "Initialized"), "status") === "True") {
    restarts = init.sidecarRestarts;
    lastRestart = init.lastSidecarRestart;
    let running = false;
    for (const status of items(pod, "status", "containerStatuses").toReversed()) {
      restarts += number(status, "restartCount");
      lastRestart = Math.max(lastRestart, lastEnd(status));
      const waiting = text(status, "state", "waiting", "reason");
      const terminated = child(status, "state", "terminated");
      if (waiting !== "") reason = waiting;
      else if (terminated !== undefined) reason = ended(terminated);
      else if (isTrue(status, "ready") && has(status, "state", "running")) {
        running = true;
        ready++;
      }
    }
    if (reason === "Completed" && running) {
      reason = text(condition(pod, "Ready"), "status") === "True" ? "Running" : "NotReady";
    }
  }
  const phase = text(pod, "status", "phase");
  if (has(pod, "metadata", "deletionTimestamp")) {
    if (text(pod, "status", "reason") === "NodeLost") reason = "Unknown";
    else if (phase !== "Succeeded" && phase !== "Failed") reason = "Terminating";
  }
  return { ready, total, reason, restarts, lastRestart };
}

function readinessGates(pod: JsonObject): string {
  const gates = items(pod, "spec", "readinessGates");
  if (gates.length === 0) return none;
  const passed = gates.filter(
    (gate) => text(condition(pod, text(gate, "conditionType")), "status") === "True",
  );
  return `${passed.length}/${gates.length}`;
}

/** Cells of pods. */
export const podCells: CellTable = {
  "v1/Pod": {
    Ready: (pod) => {
      const { ready, total } = summarize(pod);
      return `${ready}/${total}`;
    },
    Status: (pod) => summarize(pod).reason,
    Restarts: (pod, now) => {
      const { restarts, lastRestart } = summarize(pod);
      if (restarts === 0 || lastRestart === 0) return String(restarts);
      return `${restarts} (${age(new Date(lastRestart).toISOString(), now)} ago)`;
    },
    IP: (pod) => text(pod, "status", "podIPs", 0, "ip") || text(pod, "status", "podIP") || none,
    Node: (pod) => text(pod, "spec", "nodeName") || none,
    "Nominated Node": (pod) => text(pod, "status", "nominatedNodeName") || none,
    "Readiness Gates": readinessGates,
  },
};

/** What tables say of a finished pod's row. */
export function podRowConditions(pod: JsonObject): readonly JsonObject[] {
  switch (text(pod, "status", "phase")) {
    case "Succeeded":
      return [
        {
          type: "Completed",
          status: "True",
          reason: "Succeeded",
          message: "The pod has completed successfully.",
        },
      ];
    case "Failed":
      return [{ type: "Completed", status: "True", reason: "Failed", message: "The pod failed." }];
    default:
      return [];
  }
}
