/**
 * Talking to the machines of one cluster: as nobody while they wait for a configuration, as administrator
 * with credentials made from the cluster's own keys once they have it.
 */
import { CodedError, isCoded, type Edges } from "@kontinuum/std";
import {
  adminCredentials,
  connectTalos,
  isTalosError,
  type AdminCredentials,
  type SecretsBundle,
  type TalosClient,
} from "@kontinuum/talos";

import type { Cidr } from "../../config/cidr.ts";
import { mayDial } from "../instance/dial-policy.ts";

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

/** Opens access with a cluster's keys. Special addresses are refused unless `allowed` names their range. Credentials are made on first use and end with the pass. */
export function talosAccess(bundle: SecretsBundle, edges: Edges, allowed: readonly Cidr[]): TalosAccess {
  let credentials: Promise<AdminCredentials> | undefined;
  // Addresses come from objects: what was checked at discovery may have been written over since.
  const check = (address: string): void => {
    if (mayDial(address, allowed)) return;
    throw new CodedError("permission_denied", `${address} is not an address machines may have here`);
  };
  return {
    async asAdmin(address, work, node) {
      check(address);
      credentials ??= adminCredentials({ bundle, edges, validityMs: credentialValidityMs });
      const options = { address, credentials: await credentials, edges };
      using client = connectTalos(node === undefined ? options : { ...options, node });
      return await work(client);
    },
    async inMaintenance(address, fingerprint, work) {
      check(address);
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
