/**
 * Reporting a machine's membership on its Instance.
 */
import { isDeepStrictEqual } from "node:util";
import { removeCondition, setCondition, type CachedClient, type Condition } from "@kontinuum/controller";
import type { Clock } from "@kontinuum/std";
import { instanceKind, memberConditions, type Instance, type InstanceStatus } from "../../kinds/index.ts";

/** One condition to set. */
export interface MemberReport {
  readonly type: (typeof memberConditions)[number] | "Discovered";
  readonly holds: boolean;
  readonly reason: string;
  readonly message: string;
}

/** Writes the reports, when they change anything; returns the Instance as it is now. */
export async function reportMember(
  client: CachedClient,
  instance: Instance,
  reports: readonly MemberReport[],
  clock: Clock,
  facts: Pick<InstanceStatus, "talos"> = {},
): Promise<Instance> {
  const conditions: Condition[] = structuredClone(instance.status?.conditions ?? []);
  for (const { type, holds, reason, message } of reports) {
    const observedGeneration = instance.metadata.generation ?? 0;
    setCondition(
      conditions,
      { type, status: holds ? "True" : "False", reason, message, observedGeneration },
      clock,
    );
  }
  return write(client, instance, { ...instance.status, ...facts, conditions });
}

/** Removes what says that the machine is in a cluster, and says why it is not discovered now. */
export async function forgetMembership(
  client: CachedClient,
  instance: Instance,
  undiscovered: { readonly reason: string; readonly message: string } | undefined,
  clock: Clock,
): Promise<Instance> {
  const conditions: Condition[] = structuredClone(instance.status?.conditions ?? []);
  for (const type of memberConditions) removeCondition(conditions, type);
  if (undiscovered) {
    const observedGeneration = instance.metadata.generation ?? 0;
    setCondition(
      conditions,
      { type: "Discovered", status: "False", observedGeneration, ...undiscovered },
      clock,
    );
  }
  return write(client, instance, { ...instance.status, conditions });
}

async function write(client: CachedClient, instance: Instance, status: InstanceStatus): Promise<Instance> {
  if (isDeepStrictEqual(instance.status ?? {}, status)) return instance;
  return client.updateStatus(instanceKind.resource, { ...instance, status });
}
