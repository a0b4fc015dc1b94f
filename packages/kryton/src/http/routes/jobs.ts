/**
 * Routes of jobs.
 */
import { z } from "zod";
import { goldenJob, jobSchema, machineJob, storageJob, type Job } from "../../jobs/jobs.ts";
import { KrytonError } from "../../model/errors.ts";
import { hasProject, hasRole, type Principal } from "../../model/principal.ts";
import { ok } from "../reply.ts";
import { route, type Route } from "../route.ts";
import type { Services } from "../services.ts";
import { idOf } from "./machines.ts";

/** Jobs: list and read. */
export function jobRoutes(services: Services): Route[] {
  return [
    route(
      {
        method: "GET",
        path: "/api/v1/jobs",
        group: "jobs",
        summary: "Long work under way, newest update first.",
        access: { kind: "any" },
        answers: {
          200: {
            description: "Visible jobs.",
            schema: z.object({ items: z.array(jobSchema) }).meta({ id: "JobList" }),
          },
        },
      },
      async ({ principal }) => ok({ items: await visibleJobs(services, principal) }),
    ),
    route(
      {
        method: "GET",
        path: "/api/v1/jobs/{id}",
        group: "jobs",
        summary: "A job.",
        access: { kind: "any" },
        answers: { 200: { description: "The job.", schema: jobSchema } },
      },
      async (call) => {
        const id = idOf(call);
        const job = (await visibleJobs(services, call.principal)).find((candidate) => candidate.id === id);
        if (!job) throw new KrytonError("not_found", `no job ${JSON.stringify(id.slice(0, 200))}`);
        return ok(job);
      },
    ),
  ];
}

async function visibleJobs(services: Services, principal: Principal): Promise<Job[]> {
  const { machines, operations, golden, provider, edges } = services;
  const now = edges.clock.now();
  const jobs: (Job | undefined)[] = [];
  if (provider.name !== "demo") {
    for (const project of services.projects().filter((candidate) => hasProject(principal, candidate))) {
      for await (const machine of machines.each(project)) {
        if (!machineJob(machine, undefined, now)) continue;
        const [newest] = await operations.ofMachine(machine.id);
        jobs.push(machineJob(machine, newest?.state === "running" ? newest : undefined, now));
      }
    }
  }
  // A builder's log tells paths and commands of its host.
  const admin = hasRole(principal, "admin");
  for (const build of await golden.list()) {
    if (goldenJob(build, [], now)) jobs.push(goldenJob(build, admin ? await golden.log(build.id) : [], now));
  }
  const record = await services.setup?.current();
  if (record) jobs.push(storageJob(record, admin, now));
  return jobs
    .flatMap((job) => (job ? [job] : []))
    .sort((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt));
}
