/**
 * The decision about a machine that is claimed, or was: what its reset needs now. Pure.
 */
import { findCondition, hasFinalizer, isDeleting } from "@kontinuum/controller";
import {
  annotations,
  finalizers,
  labels,
  memberConditions,
  type Instance,
  type TalosCluster,
} from "../../kinds/index.ts";
import { needsReset } from "../instancepool/instancepool.claim.ts";
import { poolNames } from "../taloscluster/members.ts";

/** What to do about one machine. */
export type ResetPlan =
  | { readonly step: "nothing" }
  /** Make sure that its deletion waits for the reset. */
  | { readonly step: "guard"; readonly cluster: TalosCluster }
  /** Conditions of a former membership are left over. */
  | { readonly step: "forget-membership" }
  /** Free it: nothing of a cluster is on it, or nobody is left who could reset it. */
  | { readonly step: "finish" }
  /** Reset it, then free it; after `deadlineMs` free it anyway. */
  | { readonly step: "reset"; readonly cluster: TalosCluster; readonly deadlineMs: number };

/**
 * Decides for `instance` among the clusters of its namespace. A machine leaves when it is deleted or its pool
 * marked it; it then has `teardownMs` to be reset.
 */
export function planReset(
  instance: Instance,
  clusters: readonly TalosCluster[],
  teardownMs: number,
): ResetPlan {
  const pool = instance.metadata.labels?.[labels.claimedBy];
  const since = leavingSince(instance);
  if (pool === undefined) {
    if (since !== undefined && (isGuarded(instance) || isMarked(instance))) return { step: "finish" };
    return hasMembership(instance) ? { step: "forget-membership" } : { step: "nothing" };
  }
  const cluster = clusters.find((one) => poolNames(one).includes(pool));
  if (since === undefined) return cluster ? { step: "guard", cluster } : { step: "nothing" };
  if (isDeleting(instance) && !isGuarded(instance)) return { step: "nothing" };
  if (!cluster || !needsReset(instance)) return { step: "finish" };
  return { step: "reset", cluster, deadlineMs: since + teardownMs };
}

/** Since when the machine is leaving, in milliseconds since the epoch, or `undefined`. */
function leavingSince({ metadata }: Instance): number | undefined {
  const text = metadata.deletionTimestamp ?? metadata.annotations?.[annotations.release];
  if (text === undefined) return undefined;
  const since = Date.parse(text);
  // A mark that somebody wrote by hand, without a time, counts from the start of time: no waiting.
  return Number.isNaN(since) ? 0 : since;
}

const isGuarded = (instance: Instance): boolean => hasFinalizer(instance, finalizers.instance);
const isMarked = ({ metadata }: Instance): boolean =>
  metadata.annotations?.[annotations.release] !== undefined;
const hasMembership = ({ status }: Instance): boolean =>
  memberConditions.some((type) => findCondition(status?.conditions, type) !== undefined);
