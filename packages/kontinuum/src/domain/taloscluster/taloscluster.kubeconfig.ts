/**
 * The hub's own way into a cluster: a kubeconfig minted from the cluster's CA, renewed at half of its life.
 *
 * It is not asked of a machine: what a machine hands out would be its word, and would run out after a year
 * with nobody to fetch a new one.
 */
import { X509Certificate } from "node:crypto";
import { readKubeconfig } from "@kontinuum/controller";
import type { Edges } from "@kontinuum/std";
import { generateAdminKubeconfig, type SecretsBundle } from "@kontinuum/talos";

/** The stored kubeconfig while it is good, else a new one. */
export async function currentKubeconfig(
  stored: string | undefined,
  options: {
    readonly bundle: SecretsBundle;
    readonly endpoint: string;
    readonly clusterName: string;
    readonly edges: Pick<Edges, "clock" | "random">;
  },
): Promise<string> {
  if (stored !== undefined && isGood(stored, options.endpoint, options.edges.clock.now())) return stored;
  return generateAdminKubeconfig(options);
}

function isGood(text: string, endpoint: string, nowMs: number): boolean {
  try {
    const { server, cert } = readKubeconfig(text);
    if (server !== endpoint || cert === undefined) return false;
    const { validFromDate, validToDate } = new X509Certificate(cert);
    return nowMs < (validFromDate.getTime() + validToDate.getTime()) / 2;
  } catch {
    // Somebody wrote something else there: a new one repairs it.
    return false;
  }
}
