/**
 * What the outcome of a round of probing makes of an Instance's status.
 */
import { setCondition, type Condition } from "@kontinuum/controller";
import { type Clock } from "@kontinuum/std";
import { isDeepStrictEqual } from "node:util";
import type { Instance, InstanceStatus } from "../../kinds/index.ts";
import type { ProbeOutcome } from "./instance.probe.ts";

/** The status after `outcome`, or `undefined` when nothing changes. Facts of an earlier answer are kept. */
export function discoveredStatus(
  instance: Instance,
  outcome: ProbeOutcome,
  clock: Clock,
): InstanceStatus | undefined {
  const before = instance.status ?? {};
  const conditions: Condition[] = structuredClone(before.conditions ?? []);
  const status: InstanceStatus = { ...before, conditions };
  const report = (holds: boolean, reason: string, message: string): void => {
    setCondition(
      conditions,
      {
        type: "Discovered",
        status: holds ? "True" : "False",
        reason,
        message,
        observedGeneration: instance.metadata.generation ?? 0,
      },
      clock,
    );
  };
  switch (outcome.result) {
    case "no-interfaces":
      report(false, "NoInterfaces", "spec.interfaces names no address");
      break;
    case "failed":
      report(false, "ProbeFailed", outcome.message);
      break;
    case "found": {
      const { address, answer } = outcome;
      const known = before.identity?.uuid;
      if (known && answer.uuid && known !== answer.uuid) {
        report(
          false,
          "IdentityChanged",
          `another machine answers at ${address} (${answer.uuid}, was ${known}): delete this Instance and add it again to accept it`,
        );
        break;
      }
      status.talos = { version: answer.talosVersion };
      status.interfaces = answer.interfaces;
      if (answer.hardware) status.hardware = answer.hardware;
      status.identity = { address, uuid: answer.uuid, certificateKey: answer.certificateKey };
      report(true, "Discovered", `reached at ${address}`);
      break;
    }
  }
  return isDeepStrictEqual(before, status) ? undefined : status;
}
