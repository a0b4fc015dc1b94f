/**
 * Looking at an unclaimed machine: is there a Talos node in maintenance mode at this address, and
 * what is it?
 *
 * The answer carries what a later apply must find again, the certificate's key and the SMBIOS UUID:
 * an address alone identifies nothing. Version and hardware are best effort (Talos before 1.13
 * refuses `Version` in maintenance mode); links and addresses are required. Nothing is written.
 */
import type { Edges } from "@kontinuum/std";
import type { CallOptions } from "./call.ts";
import { connectTalos, type TalosClient } from "./client.ts";
import type { CpuFact, DiskFact, MemoryFact, SystemInformationFact } from "./facts.ts";
import { resourceKinds } from "./resource-kind.ts";
import { isTalosError } from "./talos-error.ts";

/** How long a whole probe may take, in milliseconds. */
export const probeTimeoutMs = 10_000;

/** A link with its addresses. */
export interface ProbedInterface {
  readonly name: string;
  readonly mac: string;
  /** CIDR texts, in the node's order. */
  readonly addresses: readonly string[];
}

/** What a probe saw. */
export interface ProbeResult {
  readonly address: string;
  /** Base64 SHA-256 of the certificate's public key: pin it in {@link MaintenanceCredentials}. */
  readonly fingerprint: string;
  /** SMBIOS UUID, lower case; `undefined` when the machine has none. */
  readonly uuid: string | undefined;
  /** Talos release such as `v1.13.0`; empty when the node does not tell. */
  readonly version: string;
  readonly interfaces: readonly ProbedInterface[];
  readonly system: SystemInformationFact | undefined;
  readonly disks: readonly DiskFact[];
  readonly memory: MemoryFact | undefined;
  readonly cpus: readonly CpuFact[];
}

/** Options of {@link probe}. */
export interface ProbeOptions {
  readonly edges: Edges;
  readonly port?: number;
  /** Default {@link probeTimeoutMs}, for the whole probe. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Probes one address. Fails with a `TalosError`: `unreachable` or `timeout` when nobody answers,
 * `certificate_required` when the node is configured already.
 */
export async function probe(address: string, options: ProbeOptions): Promise<ProbeResult> {
  const { edges } = options;
  const until = edges.clock.monotonic() + (options.timeoutMs ?? probeTimeoutMs);
  const client = connectTalos({
    address,
    credentials: { kind: "maintenance" },
    edges,
    ...(options.port === undefined ? {} : { port: options.port }),
  });
  const left = (): CallOptions => ({
    timeoutMs: Math.max(1, until - edges.clock.monotonic()),
    ...(options.signal ? { signal: options.signal } : {}),
  });
  try {
    const { fingerprint } = await client.connect(left());
    // The required reads come first, so that a configured node fails before the tolerant ones run.
    const links = await client.links(left());
    const addresses = await client.addresses(left());
    const version = await versionOf(client, left);
    const system = await bestEffort(client.systemInformation(left()), undefined);
    const [disks, memory, cpus] = await Promise.all([
      bestEffort(client.disks(left()), []),
      bestEffort(client.memory(left()), undefined),
      bestEffort(client.cpus(left()), []),
    ]);
    const interfaces = links.map(({ name, mac }) => ({
      name,
      mac,
      addresses: addresses.filter(({ link }) => link === name).map(({ cidr }) => cidr),
    }));
    return {
      address,
      fingerprint,
      uuid: system?.uuid || undefined,
      version,
      interfaces,
      system,
      disks,
      memory,
      cpus,
    };
  } finally {
    client.close();
  }
}

async function versionOf(client: TalosClient, left: () => CallOptions): Promise<string> {
  const { tag } = await bestEffort(client.version(left()), { tag: "" });
  if (tag) return tag;
  const resource = await bestEffort(client.state.get(resourceKinds.version, "version", left()), undefined);
  return resource?.spec.version ?? "";
}

/** The value, or `fallback` when the node answers that it will not say. Losing the node still fails. */
async function bestEffort<T, F>(value: Promise<T>, fallback: F): Promise<T | F> {
  try {
    return await value;
  } catch (error) {
    const refused =
      isTalosError(error, "unsupported") || isTalosError(error, "denied") || isTalosError(error, "not_found");
    if (refused) return fallback;
    throw error;
  }
}
