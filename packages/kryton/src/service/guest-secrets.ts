/**
 * Guest secrets between acceptance and creation: sealed, and gone once the provider has them.
 */
import { z } from "zod";
import type { GuestSecrets } from "../model/dockur-options.ts";
import type { Documents } from "../store/documents.ts";
import { keys } from "../store/keyspace.ts";
import type { Sealer } from "../store/sealer.ts";

const sealedSchema = z.object({ sealed: z.string() });
const secretsSchema = z.object({ password: z.string().optional(), productKey: z.string().optional() });

/** The secrets kept for a machine; empty when there are none. */
export async function readSecrets(
  documents: Documents,
  sealer: Sealer,
  machineId: string,
): Promise<GuestSecrets> {
  const place = keys.secret(machineId);
  const stored = await documents.get(place, sealedSchema);
  if (!stored) return {};
  const { password, productKey } = secretsSchema.parse(JSON.parse(sealer.open(stored.value.sealed, place)));
  return { ...(password ? { password } : {}), ...(productKey ? { productKey } : {}) };
}
