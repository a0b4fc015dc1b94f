/**
 * Claiming and giving back one machine. Both are a single update that carries the version read: whoever
 * writes second loses, so no machine ever has two owners.
 */
import { findCondition, formatTime, type CachedClient } from "@kontinuum/controller";
import { isCoded, type Clock } from "@kontinuum/std";
import { annotations, instanceKind, labels, type Instance } from "../../kinds/index.ts";

/** Tries to claim `candidate` for `pool`. False when somebody else was faster or it is gone. */
export async function claim(client: CachedClient, candidate: Instance, pool: string): Promise<boolean> {
  return won(
    client.update(instanceKind.resource, {
      ...candidate,
      metadata: { ...candidate.metadata, labels: { ...candidate.metadata.labels, [labels.claimedBy]: pool } },
    }),
  );
}

/**
 * Whether a cluster's configuration was sent to the machine, or may have been: only a reset frees it. The
 * condition is written, as False, before the configuration is sent.
 */
export function needsReset(instance: Instance): boolean {
  return findCondition(instance.status?.conditions, "Configured") !== undefined;
}

/**
 * Gives a machine back. One that may carry a cluster's configuration keeps its claim and is marked: it is
 * free only after its reset, which is not done here. False when the object changed in between.
 */
export async function giveBack(client: CachedClient, instance: Instance, clock: Clock): Promise<boolean> {
  if (needsReset(instance))
    return won(client.update(instanceKind.resource, markedForRelease(instance, clock)));
  return won(client.update(instanceKind.resource, withoutClaim(instance)));
}

/** The machine without owner and without mark. */
export function withoutClaim(instance: Instance): Instance {
  const { [labels.claimedBy]: _claim, ...otherLabels } = instance.metadata.labels ?? {};
  const { [annotations.release]: _mark, ...otherAnnotations } = instance.metadata.annotations ?? {};
  return {
    ...instance,
    metadata: { ...instance.metadata, labels: otherLabels, annotations: otherAnnotations },
  };
}

function markedForRelease(instance: Instance, clock: Clock): Instance {
  const mark = { [annotations.release]: formatTime(clock.now()) };
  return {
    ...instance,
    metadata: { ...instance.metadata, annotations: { ...instance.metadata.annotations, ...mark } },
  };
}

async function won(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (isCoded(error, "conflict") || isCoded(error, "not_found")) return false;
    throw error;
  }
}
