/**
 * A worker asking trustd on a control-plane node for its server certificate.
 */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Edges } from "@kontinuum/std";
import { SecurityService } from "../gen/securityapi/security_pb.ts";
import { createServerRequest, type CertificateAndKey } from "../pki/certificates.ts";
import type { MachineSpec } from "./machine-spec.ts";
import { nodeNames } from "./node-certificates.ts";
import { endpointHost, type NodeConfig } from "./node-config.ts";

/** What trustd gives, with the key that was made for it. */
export interface TrustdAnswer extends CertificateAndKey {
  /** Whose client certificates the node accepts from now on. */
  readonly ca: string;
}

/** How long one try may take, milliseconds. */
const timeoutMs = 10_000;

/** Asks trustd behind the cluster's endpoint. Fails when it does not answer or refuses the token. */
export async function requestCertificate(options: {
  readonly config: NodeConfig;
  readonly hostname: string;
  readonly spec: MachineSpec;
  readonly port: number;
  readonly edges: Edges;
  readonly signal: AbortSignal;
}): Promise<TrustdAnswer> {
  const { config, hostname, spec, port, signal } = options;
  const { csr, key } = await createServerRequest({ commonName: hostname, names: nodeNames(spec, hostname) });
  const host = endpointHost(config.facts.endpoint);
  const transport = createGrpcTransport({
    baseUrl: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    nodeOptions: { ca: config.osCa.crt },
    defaultTimeoutMs: timeoutMs,
    idleConnectionTimeoutMs: 1,
  });
  const answer = await createClient(SecurityService, transport).certificate(
    { csr: Buffer.from(csr) },
    { signal, headers: { token: config.facts.machineToken } },
  );
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");
  return { ca: text(answer.ca), crt: text(answer.crt), key };
}
