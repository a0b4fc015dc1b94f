/**
 * Talking to the machines of one cluster: as nobody while they wait for a configuration, as administrator
 * with credentials made from the cluster's own keys once they have it.
 */
import { isCoded, type Edges } from "@kontinuum/std";
import {
  adminCredentials,
  connectTalos,
  isTalosError,
  type AdminCredentials,
  type SecretsBundle,
  type TalosClient,
} from "@kontinuum/talos";

/** How long administrator credentials made for one pass are valid, milliseconds. */
const credentialValidityMs = 60 * 60_000;

/** Access to the machines of one cluster. */
export interface TalosAccess {
  /** Runs `work` with an administrator's client of `address`, routed to `node` when given. */
  asAdmin<T>(address: string, work: (client: TalosClient) => Promise<T>, node?: string): Promise<T>;
  /** Runs `work` with a client of a machine in maintenance mode whose certificate has the key `fingerprint`. */
  inMaintenance<T>(
    address: string,
    fingerprint: string,
    work: (client: TalosClient) => Promise<T>,
  ): Promise<T>;
}

/** Opens access with a cluster's keys. Credentials are made on first use and end with the pass. */
export function talosAccess(bundle: SecretsBundle, edges: Edges): TalosAccess {
  let credentials: Promise<AdminCredentials> | undefined;
  return {
    async asAdmin(address, work, node) {
      credentials ??= adminCredentials({ bundle, edges, validityMs: credentialValidityMs });
      const options = { address, credentials: await credentials, edges };
      using client = connectTalos(node === undefined ? options : { ...options, node });
      return await work(client);
    },
    async inMaintenance(address, fingerprint, work) {
      using client = connectTalos({ address, credentials: { kind: "maintenance", fingerprint }, edges });
      return await work(client);
    },
  };
}

/** A failure in words that stay the same from try to try, for conditions. */
export function describeTalosFailure(error: unknown): string {
  if (isTalosError(error)) return texts[error.reason] ?? "the machine's Talos API failed";
  if (isCoded(error)) return error.message;
  return "the machine's Talos API failed in a way that is not understood";
}

const texts: Partial<Record<string, string>> = {
  unreachable: "the machine is not reachable",
  timeout: "the machine did not answer in time",
  certificate_required: "the machine demands credentials: it is configured already",
  untrusted_certificate: "the machine does not know this cluster's keys",
  identity_changed: "the machine is not the one that was discovered",
  not_ready: "the machine is not ready for this yet",
  refused: "the machine refused the request",
  denied: "the machine denied access",
  unsupported: "the machine's Talos does not support this",
  failed: "the machine reported a failure",
  protocol: "the machine's answer is not understood",
};
