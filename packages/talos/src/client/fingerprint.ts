/**
 * The fingerprint of a server: of its public key, so that a certificate renewed for the same key
 * keeps it. Two servers with one fingerprint hold the same private key.
 */
import { createHash, type X509Certificate } from "node:crypto";

/** Base64 of the SHA-256 of the DER public key: the form Talos prints on a node's console. */
export function fingerprintOf(certificate: X509Certificate): string {
  const key = certificate.publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(key).digest("base64");
}
