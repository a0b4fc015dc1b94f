/**
 * All rules of all families, in one table.
 */
import { admissionRules } from "./admission.ts";
import { autoscalingRules } from "./autoscaling.ts";
import { apiMachineryRules } from "./api-machinery.ts";
import { certificateRules } from "./certificate.ts";
import { deviceRules } from "./device.ts";
import { eventRules } from "./event.ts";
import { nodeRules } from "./node.ts";
import { quotaRules } from "./quota.ts";
import { configurationRules } from "./configuration.ts";
import { definitionRules } from "./definition.ts";
import { jobRules } from "./job.ts";
import { networkingRules } from "./networking.ts";
import { podRules } from "./pod.ts";
import { rbacRules } from "./rbac.ts";
import { noRules, type KindRules, type RuleTable } from "./kind-rules.ts";
import { serviceRules } from "./service.ts";
import { volumeRules } from "./volume.ts";
import { workloadRules } from "./workload.ts";

const table: RuleTable = {
  ...admissionRules,
  ...autoscalingRules,
  ...apiMachineryRules,
  ...certificateRules,
  ...deviceRules,
  ...eventRules,
  ...nodeRules,
  ...quotaRules,
  ...configurationRules,
  ...definitionRules,
  ...jobRules,
  ...networkingRules,
  ...podRules,
  ...rbacRules,
  ...serviceRules,
  ...volumeRules,
  ...workloadRules,
};

/** The rules of a kind. */
export const rulesOf = (apiVersion: string, kind: string): KindRules =>
  table[`${apiVersion}/${kind}`] ?? noRules;
