/**
 * An image of the catalog: what a machine can be made from, and what it needs.
 */
import { z } from "zod";

/** An image with its availability on this host. */
export const imageSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    version: z.string(),
    family: z.string(),
    description: z.string(),
    os: z.enum(["windows", "linux"]).optional(),
    architecture: z.string().optional(),
    firmware: z.enum(["efi", "bios"]).optional(),
    defaultUser: z.string().optional(),
    sourceUrl: z.string().optional(),
    providers: z.array(z.string()).optional(),
    minCpu: z.int(),
    minMemoryMiB: z.int(),
    defaultDiskGiB: z.int(),
    dockurVersion: z.string().optional(),
    tags: z.array(z.string()).optional(),
    availability: z.enum(["stored", "on-demand", "catalog"]).optional(),
    storageSource: z.enum(["cdi", "dockur", "golden", "demo", "verified"]).optional(),
    storageNamespace: z.string().optional(),
    storagePath: z.string().optional(),
    ready: z.boolean(),
    certified: z.boolean().optional(),
    validationScore: z.number().optional(),
    passportBuildId: z.string().optional(),
  })
  .meta({ id: "Image" });

/** See {@link imageSchema}. */
export type Image = z.infer<typeof imageSchema>;

/** A catalog entry, before anybody asked whether it can be used here. */
export type CatalogImage = Omit<
  Image,
  | "ready"
  | "availability"
  | "storageSource"
  | "storageNamespace"
  | "storagePath"
  | "certified"
  | "validationScore"
  | "passportBuildId"
>;
