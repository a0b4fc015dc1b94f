/**
 * A zone's identity: an Ed25519 key in a self-signed certificate that names the Zone object.
 *
 * The private half goes to the zone's own cluster and nowhere else; the hub keeps the certificate. The certificate
 * practically never expires: what bounds an intercepted credential is the short life of the tokens it signs.
 */
import "reflect-metadata";
import { createHash, generateKeyPairSync, webcrypto, X509Certificate, type KeyObject } from "node:crypto";
import { CodedError, type Edges } from "@kontinuum/std";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto);

/** A new identity, both halves as PEM. */
export interface ZoneIdentity {
  /** `CERTIFICATE` */
  readonly certificatePem: string;
  /** PKCS#8, `PRIVATE KEY` */
  readonly privateKeyPem: string;
}

const hourMs = 3_600_000;
const yearMs = 365 * 24 * hourMs;

/** Makes an identity for the Zone object `zone`. */
export async function generateIdentity(
  zone: string,
  edges: Pick<Edges, "clock" | "random">,
): Promise<ZoneIdentity> {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const now = edges.clock.now();
  const algorithm = { name: "Ed25519" };
  const serial = Buffer.from(edges.random.bytes(16));
  serial[0] = (serial[0] ?? 0) & 0x7f;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [zone] }],
    keys: {
      privateKey: privateKey.toCryptoKey(algorithm, true, ["sign"]),
      publicKey: publicKey.toCryptoKey(algorithm, true, ["verify"]),
    },
    serialNumber: serial.toString("hex"),
    notBefore: new Date(now - hourMs),
    notAfter: new Date(now + 100 * yearMs),
    signingAlgorithm: algorithm,
    extensions: [new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true)],
  });
  return {
    certificatePem: `${certificate.toString("pem").trimEnd()}\n`,
    privateKeyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** The certificate, checked to hold an Ed25519 key. Fails with `invalid_argument`. */
export function parseIdentityCertificate(pem: string): X509Certificate {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch (cause) {
    throw new CodedError("invalid_argument", "the zone's certificate is not a PEM certificate", { cause });
  }
  if (certificate.publicKey.asymmetricKeyType !== "ed25519") {
    throw new CodedError("invalid_argument", "the zone's certificate holds no Ed25519 key");
  }
  return certificate;
}

/** SHA-256 of the certificate's DER, upper-case hexadecimal with colons. */
export function thumbprint(certificatePem: string): string {
  const digest = createHash("sha256")
    .update(parseIdentityCertificate(certificatePem).raw)
    .digest("hex")
    .toUpperCase();
  return digest.match(/../g)?.join(":") ?? "";
}

/** Whether the private key and the certificate belong together. */
export function isPair(privateKey: KeyObject, certificatePem: string): boolean {
  return parseIdentityCertificate(certificatePem).checkPrivateKey(privateKey);
}
