/**
 * Certificate authorities and leafs in the exact shapes Talos makes and checks.
 *
 * CA: subject holds only an organization, ten years, critical basic constraints without path length,
 * critical digitalSignature and keyCertSign, serverAuth and clientAuth, a random subject key
 * identifier, no authority key identifier. Leaf: organization before common name, no basic
 * constraints, authority key identifier of the CA, critical key usage, extended key usage exactly as
 * asked. A node refuses a client certificate whose usage is more than clientAuth.
 */
import { createPublicKey, type KeyObject, type webcrypto } from "node:crypto";
import net from "node:net";
import { CodedError, type Edges } from "@kontinuum/std";
import { cryptoPrivateKey, cryptoPublicKey, generateKey, leafAlgorithm, type KeyAlgorithm } from "./keys.ts";
import { parseCertificate, parsePrivateKey, talosKeyPem } from "./pem.ts";
import { x509 } from "./x509.ts";

/** A certificate and its private key, PEM in Talos' labels. */
export interface CertificateAndKey {
  readonly crt: string;
  readonly key: string;
}

/** Milliseconds of an hour and a day. */
const hourMs = 3_600_000;
/** Validity of a CA: 87,600 hours. */
export const caValidityMs = 87_600 * hourMs;
/** Validity of a server certificate. Nodes renew at half of it. */
export const serverValidityMs = 24 * hourMs;
/** Validity of a client certificate of an admin. */
export const adminValidityMs = 365 * 24 * hourMs;

const serverAuth = "1.3.6.1.5.5.7.3.1";
const clientAuth = "1.3.6.1.5.5.7.3.2";

/** A new self-signed CA. `organization` left out gives an empty subject. */
export async function generateAuthority(options: {
  readonly organization?: string;
  readonly algorithm: KeyAlgorithm;
  readonly edges: Pick<Edges, "clock" | "random">;
  readonly validityMs?: number;
  /** How far back it is valid, against clocks that run behind. Default 0. */
  readonly backdateMs?: number;
}): Promise<CertificateAndKey> {
  const { clock, random } = options.edges;
  const key = await generateKey(options.algorithm);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: options.organization === undefined ? [] : [{ O: [options.organization] }],
    keys: { privateKey: cryptoPrivateKey(key), publicKey: cryptoPublicKey(key) },
    serialNumber: serialOf(random.bytes(16)),
    notBefore: new Date(clock.now() - (options.backdateMs ?? 0)),
    notAfter: new Date(clock.now() + (options.validityMs ?? caValidityMs)),
    signingAlgorithm: signatureOf(key),
    extensions: [
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign, true),
      new x509.ExtendedKeyUsageExtension([serverAuth, clientAuth]),
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.SubjectKeyIdentifierExtension(Buffer.from(random.bytes(20)).toString("hex")),
    ],
  });
  return { crt: pemOf(certificate), key: talosKeyPem(key) };
}

/** Who a leaf is for and what it may do. */
export interface LeafOptions {
  readonly ca: CertificateAndKey;
  readonly edges: Pick<Edges, "clock" | "random">;
  /** One organization each; roles of a Talos client, groups of a Kubernetes client. */
  readonly organizations?: readonly string[];
  readonly commonName?: string;
  /** IP addresses and DNS names. */
  readonly names?: readonly string[];
  readonly usage: "server" | "client" | "both";
  /** Adds keyEncipherment, as Kubernetes' certificates have. Default false. */
  readonly keyEncipherment?: boolean;
  /** Default {@link serverValidityMs}. */
  readonly validityMs?: number;
  /** How far back it is valid, against clocks that run behind. Default 0. */
  readonly backdateMs?: number;
}

/** A leaf with a key of its own. */
export async function issueCertificate(options: LeafOptions): Promise<CertificateAndKey> {
  const caKey = parsePrivateKey(options.ca.key, "the CA's key");
  const key = await generateKey(leafAlgorithm(caKey));
  const crt = await signLeaf(options, caKey, cryptoPublicKey(key));
  return { crt, key: talosKeyPem(key) };
}

/** A Talos client certificate for these roles (default `os:admin`), valid a year. */
export function issueAdminCertificate(options: {
  readonly ca: CertificateAndKey;
  readonly edges: Pick<Edges, "clock" | "random">;
  readonly roles?: readonly string[];
  readonly validityMs?: number;
}): Promise<CertificateAndKey> {
  return issueCertificate({
    ca: options.ca,
    edges: options.edges,
    organizations: [...(options.roles ?? ["os:admin"])].sort(),
    usage: "client",
    validityMs: options.validityMs ?? adminValidityMs,
  });
}

/** A server certificate for these names; the first one that is no address is the common name. */
export function issueServerCertificate(options: {
  readonly ca: CertificateAndKey;
  readonly edges: Pick<Edges, "clock" | "random">;
  readonly commonName?: string;
  readonly names: readonly string[];
  readonly validityMs?: number;
  readonly keyEncipherment?: boolean;
}): Promise<CertificateAndKey> {
  const commonName = options.commonName ?? options.names.find((name) => net.isIP(name) === 0);
  return issueCertificate({
    ca: options.ca,
    edges: options.edges,
    names: options.names,
    usage: "server",
    ...(commonName === undefined ? {} : { commonName }),
    ...(options.validityMs === undefined ? {} : { validityMs: options.validityMs }),
    ...(options.keyEncipherment === undefined ? {} : { keyEncipherment: options.keyEncipherment }),
  });
}

/** The certificate in an admin kubeconfig: CN `admin`, O `system:masters`, valid a year. */
export function issueKubernetesAdminCertificate(options: {
  readonly ca: CertificateAndKey;
  readonly edges: Pick<Edges, "clock" | "random">;
  readonly validityMs?: number;
}): Promise<CertificateAndKey> {
  return issueCertificate({
    ca: options.ca,
    edges: options.edges,
    organizations: ["system:masters"],
    commonName: "admin",
    usage: "client",
    keyEncipherment: true,
    validityMs: options.validityMs ?? adminValidityMs,
    backdateMs: 10_000,
  });
}

/** A certificate request as a worker sends it to trustd, with its key. */
export async function createServerRequest(options: {
  readonly commonName: string;
  readonly names: readonly string[];
}): Promise<{ readonly csr: string; readonly key: string }> {
  const key = await generateKey("ed25519");
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ CN: [options.commonName] }],
    keys: { privateKey: cryptoPrivateKey(key), publicKey: cryptoPublicKey(key) },
    signingAlgorithm: signatureOf(key),
    extensions: [new x509.SubjectAlternativeNameExtension(sansOf(options.names))],
  });
  return { csr: `${request.toString("pem").trimEnd()}\n`, key: talosKeyPem(key) };
}

/** Largest certificate request taken, in characters. */
const requestMax = 16 * 1024;

/**
 * Signs a worker's request as trustd does: only its common name and names are taken, any
 * organization is dropped, usage is serverAuth. Fails with `invalid_argument` on a bad request.
 */
export async function signServerRequest(options: {
  readonly ca: CertificateAndKey;
  readonly csr: string;
  readonly edges: Pick<Edges, "clock" | "random">;
  readonly validityMs?: number;
}): Promise<string> {
  const refuse = (why: string): CodedError =>
    new CodedError("invalid_argument", `the certificate request ${why}`);
  if (options.csr.length > requestMax) throw refuse(`exceeds ${requestMax} characters`);
  let request: InstanceType<typeof x509.Pkcs10CertificateRequest>;
  let publicKey: webcrypto.CryptoKey;
  try {
    request = new x509.Pkcs10CertificateRequest(options.csr);
    publicKey = await request.publicKey.export();
  } catch {
    throw refuse("is not readable PKCS#10 in PEM");
  }
  if (!(await request.verify())) throw refuse("is not signed by its own key");
  const names =
    request.extensions.find((extension) => extension instanceof x509.SubjectAlternativeNameExtension)?.names
      .items ?? [];
  const commonName = request.subjectName.getField("CN")[0];
  const caKey = parsePrivateKey(options.ca.key, "the CA's key");
  return signLeaf(
    {
      ca: options.ca,
      edges: options.edges,
      usage: "server",
      names: names.filter(({ type }) => type === "dns" || type === "ip").map(({ value }) => value),
      ...(commonName === undefined ? {} : { commonName }),
      ...(options.validityMs === undefined ? {} : { validityMs: options.validityMs }),
    },
    caKey,
    publicKey,
  );
}

async function signLeaf(
  options: LeafOptions,
  caKey: KeyObject,
  publicKey: webcrypto.CryptoKey,
): Promise<string> {
  const { clock, random } = options.edges;
  const issuer = new x509.X509Certificate(options.ca.crt);
  const names = options.names ?? [];
  const caKeyId = issuer.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId;
  const flags = options.keyEncipherment
    ? x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment
    : x509.KeyUsageFlags.digitalSignature;
  const notBefore = clock.now() - (options.backdateMs ?? 0);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [
      ...(options.organizations ?? []).map((organization) => ({ O: [organization] })),
      ...(options.commonName === undefined ? [] : [{ CN: [options.commonName] }]),
    ],
    issuer: issuer.subjectName,
    publicKey,
    signingKey: cryptoPrivateKey(caKey),
    signingAlgorithm: signatureOf(caKey),
    serialNumber: serialOf(random.bytes(16)),
    notBefore: new Date(notBefore),
    notAfter: new Date(clock.now() + (options.validityMs ?? serverValidityMs)),
    extensions: [
      new x509.KeyUsagesExtension(flags, true),
      new x509.ExtendedKeyUsageExtension(usages[options.usage]),
      ...(caKeyId === undefined ? [] : [new x509.AuthorityKeyIdentifierExtension(caKeyId)]),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(sansOf(names))]),
    ],
  });
  return pemOf(certificate);
}

const usages = {
  server: [serverAuth],
  client: [clientAuth],
  both: [serverAuth, clientAuth],
};

function sansOf(names: readonly string[]): { type: "ip" | "dns"; value: string }[] {
  return names.map((value) => ({ type: net.isIP(value) ? "ip" : "dns", value }));
}

/** A positive DER integer: a leading zero keeps the top bit from being read as a sign. */
function serialOf(bytes: Uint8Array): string {
  return `00${Buffer.from(bytes).toString("hex")}`;
}

function signatureOf(key: KeyObject): { name: string; hash?: string } {
  switch (key.asymmetricKeyType) {
    case "ed25519":
      return { name: "Ed25519" };
    case "ec":
      return { name: "ECDSA", hash: "SHA-256" };
    default:
      return { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  }
}

function pemOf(certificate: InstanceType<typeof x509.X509Certificate>): string {
  return `${certificate.toString("pem").trimEnd()}\n`;
}

/** True when the certificate holds the public half of the key. Fails when either is unreadable. */
export function isPair({ crt, key }: CertificateAndKey, what: string): boolean {
  const publicKey = createPublicKey(parsePrivateKey(key, `${what}'s key`));
  return parseCertificate(crt, `${what}'s certificate`).publicKey.equals(publicKey);
}
