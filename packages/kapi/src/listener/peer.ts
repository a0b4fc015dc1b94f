/**
 * The client certificate of a connection, checked against the configured authorities.
 */
import { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { PeerCertificate } from "../wire/request.ts";

/** What a connection proves: a certificate, nothing, or something that did not verify. */
export type Peer = { readonly certificate?: PeerCertificate; readonly refused?: boolean };

/** Authorities that client certificates are checked against, as PEM. */
export interface PeerAuthorities {
  readonly client: string | undefined;
  readonly requestHeader: string | undefined;
}

const nothing: Peer = {};

/** Reads attributes of a subject in Node's multi-line form (`CN=a\nO=b\nO=c`). */
function attributes(subject: string, name: string): readonly string[] {
  return subject
    .split("\n")
    .filter((line) => line.startsWith(`${name}=`))
    .map((line) => line.slice(name.length + 1));
}

function splitPem(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/** Makes the reader of a listener's peers; answers are kept per connection. */
export function peerReader(authorities: PeerAuthorities): (socket: TLSSocket) => Peer {
  const proxies = authorities.requestHeader === undefined ? [] : splitPem(authorities.requestHeader);
  const known = new WeakMap<TLSSocket, Peer>();
  return (socket) => {
    const present = known.get(socket);
    if (present) return present;
    const peer = read(socket, proxies);
    known.set(socket, peer);
    return peer;
  };
}

function read(socket: TLSSocket, proxies: readonly X509Certificate[]): Peer {
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return nothing;
  if (!socket.authorized) return { refused: true };
  const { subject } = certificate;
  const byProxy = proxies.some(
    (authority) => certificate.checkIssued(authority) && certificate.verify(authority.publicKey),
  );
  return {
    certificate: {
      commonName: attributes(subject, "CN")[0] ?? "",
      organizations: attributes(subject, "O"),
      fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
      issuer: byProxy ? "requestheader" : "client",
    },
  };
}
