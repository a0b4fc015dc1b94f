/**
 * PEM as Talos writes it.
 *
 * Talos labels an Ed25519 key `ED25519 PRIVATE KEY` around ordinary PKCS#8 bytes, which OpenSSL and
 * Node do not know; relabelling is all it takes. ECDSA keys are SEC1 (`EC PRIVATE KEY`), RSA keys
 * PKCS#1 (`RSA PRIVATE KEY`). PKCS#8 (`PRIVATE KEY`) is accepted for any of them.
 */
import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { CodedError } from "@kontinuum/std";

/** The private key labels Talos reads. */
export const privateKeyLabels = [
  "ED25519 PRIVATE KEY",
  "EC PRIVATE KEY",
  "RSA PRIVATE KEY",
  "PRIVATE KEY",
] as const;

/** Largest PEM text that is looked at, in characters. */
const pemMax = 64 * 1024;

/** DER bytes as a PEM block: 64 characters a line, one newline at the end. */
export function pemBlock(label: string, der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString("base64")
    .match(/.{1,64}/g);
  return `-----BEGIN ${label}-----\n${(lines ?? []).join("\n")}\n-----END ${label}-----\n`;
}

/** The label of the first PEM block, or `undefined`. */
export function pemLabel(pem: string): string | undefined {
  return /-----BEGIN ([A-Z0-9 ]+)-----/.exec(pem.slice(0, pemMax))?.[1];
}

/** A key in Talos' labels as OpenSSL reads it. */
export function openSslPem(pem: string): string {
  return pem.replaceAll("ED25519 PRIVATE KEY-----", "PRIVATE KEY-----");
}

/** A private key of Talos. Fails with `invalid_argument` naming `what`, never showing the key. */
export function parsePrivateKey(pem: string, what: string): KeyObject {
  const label = pemLabel(pem);
  if (pem.length > pemMax || !privateKeyLabels.some((known) => known === label)) {
    throw new CodedError(
      "invalid_argument",
      `${what} is not a private key in PEM: expected one of the labels ${privateKeyLabels.join(", ")}`,
    );
  }
  try {
    return createPrivateKey(openSslPem(pem));
  } catch {
    // The cause is dropped on purpose: OpenSSL's text may quote the input.
    throw new CodedError("invalid_argument", `${what} is not a readable private key`);
  }
}

/** A private key in the label and encoding Talos writes for its algorithm. */
export function talosKeyPem(key: KeyObject): string {
  switch (key.asymmetricKeyType) {
    case "ed25519":
      return pemBlock("ED25519 PRIVATE KEY", key.export({ type: "pkcs8", format: "der" }));
    case "ec":
      return pemBlock("EC PRIVATE KEY", key.export({ type: "sec1", format: "der" }));
    case "rsa":
      return pemBlock("RSA PRIVATE KEY", key.export({ type: "pkcs1", format: "der" }));
    default:
      throw new CodedError("unsupported", `Talos has no key of type ${key.asymmetricKeyType ?? "unknown"}`);
  }
}

/** The first certificate of a PEM text. Fails with `invalid_argument` naming `what`. */
export function parseCertificate(pem: string, what: string): X509Certificate {
  if (pem.length > pemMax || pemLabel(pem) !== "CERTIFICATE") {
    throw new CodedError("invalid_argument", `${what} is not a certificate in PEM`);
  }
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new CodedError("invalid_argument", `${what} is not a readable certificate`, { cause });
  }
}
