/**
 * How far a rolling update may go in one step (Kubernetes, Deployments: `maxSurge` and `maxUnavailable`).
 */

/** A ReplicaSet in numbers. */
export interface SetSize {
  /** Pods it was told to have. */
  readonly replicas: number;
  readonly ready: number;
}

/** The limits of a rolling update, in pods. */
export interface RolloutLimits {
  /** Pods beyond the wanted ones. */
  readonly surge: number;
  /** Pods that may be missing of the wanted ones. */
  readonly unavailable: number;
}

/** Limits as a Deployment writes them: a number, or percent of the wanted pods; a quarter unless told. */
export function rolloutLimits(wanted: number, maxSurge: unknown, maxUnavailable: unknown): RolloutLimits {
  const surge = podsOf(maxSurge, wanted, Math.ceil);
  const unavailable = podsOf(maxUnavailable, wanted, Math.floor);
  // Nothing could ever move between two limits of zero.
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

function podsOf(value: unknown, wanted: number, round: (pods: number) => number): number {
  if (typeof value === "number" && value >= 0) return value;
  const percent = /^(\d{1,3})%$/.exec(typeof value === "string" ? value : "25%")?.[1];
  return percent === undefined ? 0 : round((Number(percent) * wanted) / 100);
}

/** What each set shall have next; `old` is oldest first. */
export function nextSizes(
  wanted: number,
  { surge, unavailable }: RolloutLimits,
  current: SetSize,
  old: readonly SetSize[],
): { readonly current: number; readonly old: readonly number[] } {
  const oldReplicas = old.reduce((sum, { replicas }) => sum + replicas, 0);
  if (oldReplicas === 0) return { current: wanted, old: old.map(() => 0) };
  const room = Math.max(0, wanted + surge - current.replicas - oldReplicas);
  const next = Math.min(wanted, current.replicas + room);
  // Pods of the new set that are not ready count as missing already.
  const missing = current.replicas - Math.min(current.ready, current.replicas);
  let removable = Math.max(0, current.replicas + oldReplicas - (wanted - unavailable) - missing);
  const sizes = old.map(({ replicas }) => {
    const removed = Math.min(replicas, removable);
    removable -= removed;
    return replicas - removed;
  });
  return { current: next, old: sizes };
}
