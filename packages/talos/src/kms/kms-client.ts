/**
 * The node's side of network key management: seal once, unseal at every boot.
 *
 * TLS is verified against the trusted roots. What comes back from an unseal may be noise; only
 * opening the volume tells.
 */
import net from "node:net";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Edges } from "@kontinuum/std";
import { Caller, type CallOptions } from "../client/call.ts";
import { GrpcSession } from "../client/grpc-session.ts";
import { KMSService } from "../gen/sidero/kms/kms_pb.ts";
import { parseKmsEndpoint } from "./kms-endpoint.ts";

/** How long a node waits for one operation, in milliseconds. */
export const kmsTimeoutMs = 10_000;
/** Largest answer taken, in bytes. */
const answerBytesMax = 4 * 1024;

/** A client of one service. */
export interface KmsClient {
  /** Seals 32 bytes for a node. */
  seal(nodeUuid: string, data: Uint8Array, options?: CallOptions): Promise<Uint8Array>;
  /** What was sealed; random bytes when the service will not say. */
  unseal(nodeUuid: string, sealed: Uint8Array, options?: CallOptions): Promise<Uint8Array>;
  close(): void;
}

/** A client; nothing is dialled before the first call. Calls fail with a `TalosError`. */
export function connectKms(options: {
  readonly endpoint: string;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: string;
  readonly edges: Pick<Edges, "clock" | "network">;
}): KmsClient {
  const { host, port, secure } = parseKmsEndpoint(options.endpoint);
  const tls = {
    host,
    ...(net.isIP(host) ? {} : { servername: host }),
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  };
  const session = new GrpcSession({ address: host, port, edges: options.edges, ...(secure ? { tls } : {}) });
  const caller = new Caller(session, options.edges, `${host}:${port}`, undefined);
  const client = createClient(
    KMSService,
    createGrpcTransport({
      baseUrl: session.authority,
      sessionManager: session,
      readMaxBytes: answerBytesMax,
      acceptCompression: [],
    }),
  );
  const call = async (
    method: "seal" | "unseal",
    nodeUuid: string,
    data: Uint8Array,
    more: CallOptions = {},
  ): Promise<Uint8Array> => {
    const name = method === "seal" ? "Seal" : "Unseal";
    const reply = await caller.unary(name, { timeoutMs: kmsTimeoutMs, ...more }, (wire) =>
      client[method]({ nodeUuid, data }, wire),
    );
    return reply.data;
  };
  return {
    seal: (nodeUuid, data, more) => call("seal", nodeUuid, data, more),
    unseal: (nodeUuid, sealed, more) => call("unseal", nodeUuid, sealed, more),
    close: () => session.close(),
  };
}
