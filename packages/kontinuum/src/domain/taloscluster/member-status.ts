/**
 * Reporting a machine's membership on its Instance.
 */
import { isDeepStrictEqual } from "node:util";
import { removeCondition, setCondition, type Condition } from "@kontinuum/controller";
import { instanceKind, memberConditions, type Instance, type InstanceStatus } from "../../kinds/index.ts";
import { writeStatus, type EventContext } from "../transition-events.ts";

/** One condition to set. */
export interface MemberReport {
  readonly type: (typeof memberConditions)[number] | "Discovered";
  readonly holds: boolean;
  readonly reason: string;
  readonly message: string;
}

/** Writes the reports, when they change anything; returns the Instance as it is now. */
export async function reportMember(
  context: EventContext,
  instance: Instance,
  reports: readonly MemberReport[],
  facts: Pick<InstanceStatus, "talos"> = {},
): Promise<Instance> {
  const conditions: Condition[] = structuredClone(instance.status?.conditions ?? []);
  for (const { type, holds, reason, message } of reports) {
    const observedGeneration = instance.metadata.generation ?? 0;
    setCondition(
      conditions,
      { type, status: holds ? "True" : "False", reason, message, observedGeneration },
      context.clock,
    );
  }
  return write(context, instance, { ...instance.status, ...facts, conditions });
}

/** Removes what says that the machine is in a cluster, and says why it is not discovered now. */
export async function forgetMembership(
  context: EventContext,
  instance: Instance,
  undiscovered: { readonly reason: string; readonly message: string } | undefined,
): Promise<Instance> {
  const conditions: Condition[] = structuredClone(instance.status?.conditions ?? []);
  for (const type of memberConditions) removeCondition(conditions, type);
  if (undiscovered) {
    const observedGeneration = instance.metadata.generation ?? 0;
    setCondition(
      conditions,
      { type: "Discovered", status: "False", observedGeneration, ...undiscovered },
      context.clock,
    );
  }
  return write(context, instance, { ...instance.status, conditions });
}

async function write(context: EventContext, instance: Instance, status: InstanceStatus): Promise<Instance> {
  if (isDeepStrictEqual(instance.status ?? {}, status)) return instance;
  return writeStatus(context, instanceKind.resource, instance, status);
}
