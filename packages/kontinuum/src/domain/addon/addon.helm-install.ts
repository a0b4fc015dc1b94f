/**
 * The installing step with helm releases: a new revision only when chart or values changed, and a way out of
 * a release that an aborted helm left in the middle.
 */
import { createHash } from "node:crypto";
import { CodedError, type Clock, type JsonObject } from "@kontinuum/std";
import type { ChartSource } from "./chart-source.ts";
import type { Helm, HelmCall, Release, ReleaseTarget } from "./helm.ts";

/** What to do about a release, decided from what helm says of it. */
export type ReleaseDecision = "upgrade" | "unchanged" | "wait" | "recover";

/**
 * Decides. `description` names chart and values wanted; a pending release younger than `busyMs` may still
 * have a helm at work, which did not end with the process that started it.
 */
export function decideRelease(
  release: Release | undefined,
  description: string,
  nowMs: number,
  busyMs: number,
): ReleaseDecision {
  if (!release) return "upgrade";
  if (release.status.startsWith("pending-")) {
    const since = Date.parse(release.lastDeployed);
    return !Number.isNaN(since) && nowMs - since < busyMs ? "wait" : "recover";
  }
  return release.status === "deployed" && release.description === description ? "unchanged" : "upgrade";
}

/** Text that changes exactly when chart or values do; it is kept as the release's description. */
export function releaseDescription(chart: ChartSource, values: JsonObject): string {
  const text = JSON.stringify([chart.digest, sorted(values)]);
  return `kontinuum ${createHash("sha256").update(text).digest("hex")}`;
}

/** Installs, upgrades or leaves alone. True when something was done. */
export async function helmInstall(
  helm: Helm,
  target: ReleaseTarget,
  chart: ChartSource,
  values: JsonObject,
  options: { readonly description: string; readonly call: HelmCall; readonly clock: Clock },
): Promise<boolean> {
  const { description, call, clock } = options;
  const release = await helm.status(target, call);
  switch (decideRelease(release, description, clock.now(), call.timeoutMs)) {
    case "unchanged":
      return false;
    case "wait":
      throw new CodedError("unavailable", "another helm is at work on this release");
    case "recover":
      await recover(helm, target, call);
      break;
    case "upgrade":
      break;
  }
  await helm.upgrade(target, chart, values, description, call);
  return true;
}

/** Back to the last revision that worked; without one, everything half-made goes. */
async function recover(helm: Helm, target: ReleaseTarget, call: HelmCall): Promise<void> {
  const history = await helm.history(target, call);
  const good = history.filter(({ status }) => status === "deployed" || status === "superseded").at(-1);
  if (good) await helm.rollback(target, good.revision, call);
  else await helm.uninstall(target, call);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  );
}
