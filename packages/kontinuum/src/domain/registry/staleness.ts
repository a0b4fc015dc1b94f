/**
 * When a registered process counts as gone.
 */
import type { Kontinuum } from "../../kinds/index.ts";

/** What to do about an entry: remove it, or look again later. */
export type StalenessDecision =
  | { readonly action: "remove" }
  | { readonly action: "recheck"; readonly afterMs: number };

/**
 * An entry whose last heartbeat (else creation) is `staleMs` ago or more is stale; so is one that lies as far ahead,
 * because a zone's word about the time is not trusted for longer than that, and one that says no time at all.
 */
export function decideStaleness(entry: Kontinuum, nowMs: number, staleMs: number): StalenessDecision {
  const reported = Date.parse(entry.status?.lastHeartbeatTime ?? "");
  const created = Date.parse(entry.metadata.creationTimestamp ?? "");
  const last = Number.isNaN(reported) ? created : reported;
  const age = nowMs - last;
  return Math.abs(age) < staleMs ? { action: "recheck", afterMs: staleMs - age } : { action: "remove" };
}
