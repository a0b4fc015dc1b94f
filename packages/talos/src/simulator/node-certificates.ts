/**
 * The certificates a node shows: one that proves nothing in maintenance mode, one of its cluster after.
 */
import type { Clock, Edges } from "@kontinuum/std";
import { generateAuthority, issueServerCertificate, type CertificateAndKey } from "../pki/certificates.ts";
import { linkAddresses } from "./hardware-resources.ts";
import type { MachineSpec } from "./machine-spec.ts";
import type { NodeConfig } from "./node-config.ts";

/** A maintenance certificate: signed by a CA of this boot that nobody else will ever see. */
export async function maintenanceCertificate(
  spec: MachineSpec,
  hostname: string,
  edges: Pick<Edges, "clock" | "random">,
): Promise<CertificateAndKey> {
  const ca = await generateAuthority({ algorithm: "ed25519", edges });
  const { crt, key } = await issueServerCertificate({
    ca,
    edges,
    commonName: "maintenance-service.talos.dev",
    names: nodeNames(spec, hostname),
  });
  return { crt, key };
}

/** The server certificate of a control-plane node, made from the CA in its own configuration. */
export async function controlPlaneCertificate(
  spec: MachineSpec,
  hostname: string,
  config: NodeConfig,
  edges: Pick<Edges, "clock" | "random">,
): Promise<CertificateAndKey> {
  return issueServerCertificate({
    ca: config.osCa,
    edges,
    commonName: hostname,
    names: [...new Set([...config.facts.certSans, ...nodeNames(spec, hostname)])],
  });
}

/** A certificate that fits the node and was signed by nobody its clients know. */
export async function foreignCertificate(
  spec: MachineSpec,
  hostname: string,
  edges: Pick<Edges, "clock" | "random">,
): Promise<CertificateAndKey> {
  const ca = await generateAuthority({ organization: "talos", algorithm: "ed25519", edges });
  return issueServerCertificate({ ca, edges, commonName: hostname, names: nodeNames(spec, hostname) });
}

/** Every name and address a node answers to. */
export function nodeNames(spec: MachineSpec, hostname: string): string[] {
  const own = linkAddresses(spec)
    .map(({ address }) => address)
    .filter((address) => !address.startsWith("fe80"));
  return [...new Set([...own, "127.0.0.1", hostname])];
}

/** A clock that is off by what `skewMs` says at each reading. */
export function skewedClock(clock: Clock, skewMs: () => number): Clock {
  return {
    now: () => clock.now() + skewMs(),
    monotonic: () => clock.monotonic(),
    timer: (delayMs, callback) => clock.timer(delayMs, callback),
    sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
  };
}
