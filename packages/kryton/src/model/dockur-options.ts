/**
 * Options of machines that the dockur provider installs. Stored with the machine for every provider;
 * the guest's password and product key are taken out before anything is stored (`splitSecrets`).
 */
import { z } from "zod";
import { boundedText } from "./bytes.ts";

/** The `dockur` block of a create body. `password` and `productKey` are write-only. */
export const dockurOptionsSchema = z
  .strictObject({
    username: boundedText(64).optional(),
    password: boundedText(128).meta({ writeOnly: true }).optional(),
    hostname: boundedText(63).optional(),
    language: boundedText(64).optional(),
    region: boundedText(32).optional(),
    keyboard: boundedText(32).optional(),
    productKey: boundedText(64).meta({ writeOnly: true }).optional(),
    domain: boundedText(253).optional(),
    domainOu: boundedText(512).optional(),
    edition: boundedText(256).optional(),
    command: boundedText(4096).optional(),
    autologin: z.boolean().optional(),
    audio: z.boolean().optional(),
    secureBoot: z.boolean().optional(),
    sharedDir: boundedText(1024).optional(),
    oemDir: boundedText(1024).optional(),
    customIso: boundedText(2048).optional(),
    extraDisksGiB: z.array(z.int().min(1).max(65536)).max(3).optional(),
  })
  .meta({ id: "DockurOptions" });

/** See {@link dockurOptionsSchema}. */
export type DockurOptions = z.infer<typeof dockurOptionsSchema>;

/** What a provider needs at creation and nobody may read back. */
export interface GuestSecrets {
  readonly password?: string;
  readonly productKey?: string;
}

/** The options without the secrets, and the secrets. */
export function splitSecrets(options: DockurOptions): { open: DockurOptions; secrets: GuestSecrets } {
  const { password, productKey, ...open } = options;
  return { open, secrets: { ...(password ? { password } : {}), ...(productKey ? { productKey } : {}) } };
}
