/**
 * Waiting for a zone to get somewhere, with a line for people about where it is.
 */
import { findCondition, type Client, type Condition } from "@kontinuum/controller";
import { CodedError, type Clock } from "@kontinuum/std";
import { systemNamespace, zoneKind, type Zone } from "../../kinds/index.ts";

/** Options of {@link waitForZone}. */
export interface WaitOptions {
  readonly clock: Clock;
  readonly condition: "Installed" | "Ready";
  readonly timeoutMs: number;
  readonly pollMs: number;
  readonly signal: AbortSignal;
  /** Told of every new line. */
  readonly onProgress: (line: string) => void;
}

/**
 * Resolves when the condition is True. Fails with `deadline_exceeded`, naming the last line, or as soon as
 * the server answers with an error.
 */
export async function waitForZone(client: Client, name: string, options: WaitOptions): Promise<void> {
  const { clock, signal } = options;
  const until = clock.monotonic() + options.timeoutMs;
  let shown = "";
  for (;;) {
    const zone = await client.find(zoneKind.resource, { namespace: systemNamespace, name }, { signal });
    const line = describeZone(zone);
    if (line !== shown) options.onProgress(line);
    shown = line;
    if (findCondition(zone?.status?.conditions, options.condition)?.status === "True") return;
    if (clock.monotonic() >= until) {
      throw new CodedError(
        "deadline_exceeded",
        `zone ${name} is not ${options.condition} after ${Math.round(options.timeoutMs / 1000)} s; last seen: ${line}`,
      );
    }
    await clock.sleep(options.pollMs, signal);
  }
}

/** One line on where a zone is: its newest condition, because that is what just happened. */
export function describeZone(zone: Zone | undefined): string {
  if (!zone) return "waiting for the zone to appear";
  const conditions = zone.status?.conditions ?? [];
  const newest = conditions.reduce<Condition | undefined>(
    (best, one) => (best && best.lastTransitionTime >= one.lastTransitionTime ? best : one),
    undefined,
  );
  if (!newest) return "waiting for the first status";
  const { type, status, reason, message } = newest;
  return `${type}=${status} (${reason})${message === "" ? "" : `: ${message}`}`;
}
