/**
 * Routes of golden builds.
 *
 * Building needs a host with a container runtime and KVM; where there is no builder the routes say so
 * and recorded builds stay readable.
 */
import { z } from "zod";
import { goldenBuildSchema, goldenIdPattern, type GoldenBuild } from "../../golden/build.ts";
import { boundedText } from "../../model/bytes.ts";
import { invalidRequest, KrytonError } from "../../model/errors.ts";
import { hasRole, type Principal } from "../../model/principal.ts";
import { ok } from "../reply.ts";
import { route, routeWithBody, type Route } from "../route.ts";
import type { Services } from "../services.ts";
import { projectParameter } from "../parameters.ts";
import { idOf } from "./machines.ts";

const group = "images";
const path = "/api/v1/golden";
const one = { description: "The build.", schema: goldenBuildSchema };
const startSchema = z
  .strictObject({
    imageId: boundedText(128).optional(),
    version: boundedText(64).optional(),
    auto: z.boolean().optional(),
  })
  .meta({ id: "StartGoldenBuild" });
const publishSchema = z.object({}).meta({ id: "PublishGoldenBuild" });

/** A build for a caller: where its files lie on the host is for administrators. */
function shown(build: GoldenBuild, principal: Principal): GoldenBuild {
  if (hasRole(principal, "admin")) return build;
  const { outputPath: _, passportPath: __, ...rest } = build;
  return rest;
}

/** Golden builds: list, start, read, evidence, publish. */
export function goldenRoutes({ golden, inventory }: Services): Route[] {
  const find = async (id: string): Promise<GoldenBuild> => {
    const build = goldenIdPattern.test(id) ? await golden.get(id) : undefined;
    if (!build) throw new KrytonError("not_found", `no golden build ${JSON.stringify(id.slice(0, 128))}`);
    return build;
  };
  return [
    route(
      {
        method: "GET",
        path,
        group,
        summary: "Golden builds, newest update first.",
        access: { kind: "any" },
        answers: {
          200: {
            description: "All builds.",
            schema: z.object({ items: z.array(goldenBuildSchema) }).meta({ id: "GoldenBuildList" }),
          },
        },
      },
      async ({ principal }) => ok({ items: (await golden.list()).map((build) => shown(build, principal)) }),
    ),
    routeWithBody(
      {
        method: "POST",
        path,
        group,
        summary: "Build a golden image.",
        access: { kind: "global", role: "admin" },
        query: [projectParameter],
        answers: { 202: one },
      },
      startSchema,
      ({ body }) => {
        const imageId = body.imageId || "windows-11-enterprise";
        const image = inventory.catalog.get(imageId);
        if (!image && !body.version)
          throw invalidRequest(`image ${JSON.stringify(imageId)} is not in the catalog`);
        if (image?.os === "linux")
          throw invalidRequest("golden builds are for Windows images; Linux images are fetched");
        throw new KrytonError("unavailable", "golden images cannot be built on this host", {
          hint: "A builder needs docker or podman and /dev/kvm.",
        });
      },
    ),
    route(
      {
        method: "GET",
        path: `${path}/{id}`,
        group,
        summary: "A golden build.",
        access: { kind: "any" },
        answers: { 200: one },
      },
      async (call) => ok(shown(await find(idOf(call)), call.principal)),
    ),
    route(
      {
        method: "GET",
        path: `${path}/{id}/passport`,
        group,
        summary: "The recorded evidence of a build.",
        access: { kind: "any" },
        answers: { 200: { description: "The passport, as it was recorded.", schema: z.unknown() } },
      },
      async (call) => {
        const text = await golden.passport((await find(idOf(call))).id);
        if (text === undefined)
          throw new KrytonError("not_found", `golden build ${idOf(call)} has no passport`);
        return { status: 200, content: { type: "application/json", body: text } };
      },
    ),
    routeWithBody(
      {
        method: "POST",
        path: `${path}/{id}/bootstrap`,
        group,
        summary: "Publish a finished build to the cluster.",
        access: { kind: "global", role: "admin" },
        query: [projectParameter],
        bodyOptional: true,
        answers: { 202: one },
      },
      publishSchema,
      async (call) => {
        const build = await find(idOf(call));
        if (build.state !== "ready")
          throw invalidRequest(`golden build ${build.id} is ${build.state}, not ready`);
        if (build.bootstrapState === "running") {
          throw new KrytonError("conflict", `golden build ${build.id} is being published already`);
        }
        throw new KrytonError("unavailable", "golden images cannot be published from this host", {
          hint: "Publishing needs the provider kubevirt.",
        });
      },
    ),
  ];
}
