/**
 * A golden build: a Windows image installed once, generalized and captured, as it is recorded.
 */
import { z } from "zod";

/** Ids of builds: plain directory names. */
export const goldenIdPattern = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,128}$/;

/** A build in answers and in its status file. */
export const goldenBuildSchema = z
  .object({
    id: z.string().regex(goldenIdPattern),
    version: z.string(),
    imageId: z.string(),
    state: z.enum(["idle", "starting", "installing", "sysprep", "capturing", "ready", "failed"]),
    phase: z.string().optional(),
    progressPercent: z.int(),
    message: z.string(),
    consoleUrl: z.string().optional(),
    outputPath: z.string().optional(),
    sha256: z.string().optional(),
    startedAt: z.string(),
    updatedAt: z.string(),
    error: z.string().optional(),
    bootstrapState: z.enum(["running", "ready", "failed"]).optional(),
    bootstrapMessage: z.string().optional(),
    dataSource: z.string().optional(),
    certified: z.boolean().optional(),
    validationScore: z.number().min(0).max(100).optional(),
    passportPath: z.string().optional(),
  })
  .meta({ id: "GoldenBuild" });
/** See {@link goldenBuildSchema}. */
export type GoldenBuild = z.infer<typeof goldenBuildSchema>;
