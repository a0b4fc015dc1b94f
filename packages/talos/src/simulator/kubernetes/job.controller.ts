/**
 * Jobs: pods until enough of them have succeeded, or too many have failed.
 */
import { isDeepStrictEqual } from "node:util";
import {
  defineController,
  formatTime,
  isDeleting,
  ownerKeys,
  parseKey,
  watchOf,
  type DefinedController,
} from "@kontinuum/controller";
import { isTrue, withCondition } from "./conditions.ts";
import { jobs, pods } from "./kinds.ts";
import { isActive, podFrom, podIndexes, podsOf } from "./pod-set.ts";

/** See the module's comment. */
export function jobController(): DefinedController {
  return defineController({
    name: "job",
    watches: [watchOf(jobs), watchOf(pods, { map: ownerKeys("Job", "batch"), indexes: podIndexes })],
    async reconcile(key, { client, edges }) {
      const job = await client.find(jobs, parseKey(key));
      if (!job || isDeleting(job)) return;
      const done = isTrue(job.status?.conditions, "Complete") || isTrue(job.status?.conditions, "Failed");
      if (done || job.spec.suspend === true) return;
      const own = podsOf(client, job);
      const succeeded = own.filter((pod) => pod.status?.phase === "Succeeded").length;
      const failed = own.filter((pod) => pod.status?.phase === "Failed").length;
      const active = own.filter(isActive);
      const completions = job.spec.completions ?? 1;
      const isFailed = failed > (job.spec.backoffLimit ?? 6);
      const isComplete = !isFailed && succeeded >= completions;
      const wanted =
        isFailed || isComplete ? 0 : Math.min(job.spec.parallelism ?? 1, completions - succeeded);
      for (let i = active.length; i < wanted; i++) {
        const labels = {
          "batch.kubernetes.io/job-name": job.metadata.name,
          "job-name": job.metadata.name,
          "batch.kubernetes.io/controller-uid": job.metadata.uid ?? "",
          "controller-uid": job.metadata.uid ?? "",
        };
        const template = job.spec.template;
        await client.create(
          pods,
          podFrom({ template, owner: job, ownerResource: jobs, name: `${job.metadata.name}-`, labels }),
        );
      }
      for (const pod of active.slice(wanted)) await client.deleteIfExists(pods, pod.metadata);
      const startTime = job.status?.startTime ?? formatTime(edges.clock.now());
      const present = job.status?.conditions ?? [];
      const ended = isFailed ? "Failed" : isComplete ? "Complete" : undefined;
      // Kubernetes wants the pods of an ended job counted before it says so: first that it will end, then that it has.
      const announced = isFailed ? "FailureTarget" : "SuccessCriteriaMet";
      const reason = isFailed ? "BackoffLimitExceeded" : "CompletionsReached";
      const conditions =
        ended === undefined
          ? present
          : [announced, ended].reduce(
              (all, type) =>
                withCondition(
                  all,
                  {
                    type,
                    status: "True",
                    reason,
                    message:
                      ended === "Failed"
                        ? "Job has reached the specified backoff limit"
                        : "Reached expected number of succeeded pods",
                  },
                  edges.clock,
                ),
              present,
            );
      const status = {
        ...job.status,
        startTime,
        conditions,
        active: ended === undefined ? Math.max(active.length, wanted) : 0,
        ready: 0,
        terminating: 0,
        succeeded,
        failed,
        uncountedTerminatedPods: {},
        ...(isComplete ? { completionTime: formatTime(edges.clock.now()) } : {}),
      };
      if (!isDeepStrictEqual(status, job.status)) await client.updateStatus(jobs, { ...job, status });
    },
  });
}
