/**
 * The probing step: ask the candidate addresses one after the other until one answers as Talos in
 * maintenance mode.
 *
 * What failed is told in words that stay the same from try to try, because a message that changes on every
 * attempt would write the object, and so wake its own controller, for ever.
 */
import { isCoded, type Edges } from "@kontinuum/std";
import { probe as probeTalos, type ProbeResult } from "@kontinuum/talos";
import type { Cidr } from "../../config/cidr.ts";
import type { InstanceSpec, InstanceStatus } from "../../kinds/index.ts";
import { mayDial } from "./dial-policy.ts";

/** What a machine in maintenance mode told. */
export interface ProbeAnswer {
  /** Talos version tag; empty when the machine does not tell. */
  readonly talosVersion: string;
  readonly interfaces: NonNullable<InstanceStatus["interfaces"]>;
  /** SHA-256 of the public key of its certificate, base64. */
  readonly certificateKey: string;
  /** SMBIOS system UUID; empty when the machine has none. */
  readonly uuid: string;
  /** What it is made of, as far as it tells. */
  readonly hardware?: NonNullable<InstanceStatus["hardware"]>;
}

/** Most disks of a machine that are kept. */
const maxDisks = 64;

/** Asks one address. Fails with a coded error when it does not answer as a machine in maintenance mode. */
export type Probe = (
  address: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
) => Promise<ProbeAnswer>;

/** The real probe, over the Talos API. */
export function talosProbe(edges: Edges): Probe {
  return async (address, options) => {
    const seen = await probeTalos(address, { edges, ...options });
    return {
      talosVersion: seen.version,
      interfaces: seen.interfaces.map(({ name, mac, addresses }) => ({
        name,
        macAddress: mac,
        addresses: [...addresses],
      })),
      certificateKey: seen.fingerprint,
      uuid: seen.uuid ?? "",
      hardware: hardwareOf(seen),
    };
  };
}

function hardwareOf({ system, cpus, memory, disks }: ProbeResult): NonNullable<InstanceStatus["hardware"]> {
  return {
    ...(system
      ? {
          manufacturer: system.manufacturer,
          productName: system.productName,
          serialNumber: system.serialNumber,
        }
      : {}),
    ...(cpus.length > 0 ? { cpuCores: cpus.reduce((sum, { coreCount }) => sum + coreCount, 0) } : {}),
    ...(memory ? { memoryBytes: memory.totalBytes } : {}),
    disks: disks
      .filter((disk) => !disk.readonly && !disk.cdrom)
      .slice(0, maxDisks)
      .map(({ name, sizeBytes, model, serial, transport }) => ({
        name,
        sizeBytes,
        model,
        serial,
        transport,
      })),
  };
}

/** How a round of probing ended. */
export type ProbeOutcome =
  | { readonly result: "no-interfaces" }
  | { readonly result: "found"; readonly address: string; readonly answer: ProbeAnswer }
  | { readonly result: "failed"; readonly message: string };

/** Most candidates that are tried in one round. */
export const maxCandidates = 16;

/** Probes the candidates of `spec` in order. */
export async function probeCandidates(
  spec: InstanceSpec,
  probe: Probe,
  options: { readonly allowed: readonly Cidr[]; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<ProbeOutcome> {
  const candidates = (spec.interfaces ?? []).slice(0, maxCandidates);
  if (candidates.length === 0) return { result: "no-interfaces" };
  let last = "";
  for (const address of candidates) {
    if (!mayDial(address, options.allowed)) {
      last = `${address} is not an address discovery may dial`;
      continue;
    }
    try {
      return { result: "found", address, answer: await probe(address, options) };
    } catch (error) {
      options.signal.throwIfAborted();
      last = `${address} ${describe(error)}`;
    }
  }
  return { result: "failed", message: `none of ${candidates.length} addresses answered; last: ${last}` };
}

function describe(error: unknown): string {
  if (!isCoded(error)) return "answered in a way that is not understood";
  switch (error.code) {
    case "deadline_exceeded":
      return "did not answer in time";
    case "unavailable":
      return "is not reachable";
    case "unauthenticated":
    case "permission_denied":
      return "demands credentials: the machine is configured already";
    default:
      return "did not answer as a machine in maintenance mode";
  }
}
