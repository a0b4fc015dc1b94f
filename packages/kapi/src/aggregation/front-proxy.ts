/**
 * The server's identity towards aggregated APIs: a client certificate of its own authority, shared by all replicas
 * through a Secret, and the ConfigMap backends read to trust it.
 */
import { webcrypto } from "node:crypto";
import type { Transport } from "@kontinuum/controller";
import { stringAt, type Clock } from "@kontinuum/std";
import { remoteHeaders } from "../auth/authenticators.ts";
import { call, failedWith } from "../controllers/call.ts";

/** Name of the Secret with the certificate, its key and the authority. */
export const frontProxySecret = "kapi-front-proxy";
const configMap = "extension-apiserver-authentication";
const commonName = "front-proxy-client";
const validMs = 10 * 365 * 24 * 3600 * 1000;
const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** PEM texts. */
export interface FrontProxyIdentity {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Loads the identity, or makes it; whichever replica is first wins. */
export async function frontProxyIdentity(
  transport: Transport,
  namespace: string,
  clock: Clock,
): Promise<FrontProxyIdentity> {
  const collection = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
  const read = async (): Promise<FrontProxyIdentity | undefined> => {
    try {
      const secret = await call(transport, "GET", `${collection}/${frontProxySecret}`);
      const text = (key: string): string =>
        Buffer.from(stringAt(secret, "data", key) ?? "", "base64").toString("utf8");
      return { cert: text("tls.crt"), key: text("tls.key"), ca: text("ca.crt") };
    } catch (error) {
      if (failedWith(error, 404)) return undefined;
      throw error;
    }
  };
  const present = await read();
  if (present) return present;
  const made = await makeIdentity(clock.now());
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  try {
    await call(transport, "POST", collection, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: frontProxySecret, namespace },
      type: "kubernetes.io/tls",
      data: { "tls.crt": encode(made.cert), "tls.key": encode(made.key), "ca.crt": encode(made.ca) },
    });
    return made;
  } catch (error) {
    if (!failedWith(error, 409)) throw error;
    return (await read()) ?? made;
  }
}

async function makeIdentity(now: number): Promise<FrontProxyIdentity> {
  // Needed once in the life of a cluster: not worth the memory of every start.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  x509.cryptoProvider.set(webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0]);
  const notBefore = new Date(now - 3600_000);
  const notAfter = new Date(now + validMs);
  const authorityKeys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=kapi-front-proxy-ca",
    notBefore,
    notAfter,
    keys: authorityKeys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  const certificate = await x509.X509CertificateGenerator.create({
    subject: `CN=${commonName}`,
    issuer: authority.subject,
    notBefore,
    notAfter,
    publicKey: keys.publicKey,
    signingKey: authorityKeys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  return {
    cert: certificate.toString("pem"),
    key: `-----BEGIN PRIVATE KEY-----\n${pkcs8.match(/.{1,64}/g)?.join("\n") ?? ""}\n-----END PRIVATE KEY-----\n`,
    ca: authority.toString("pem"),
  };
}

/** Publishes what backends need to trust this server's word about users. */
export async function publishFrontProxy(
  transport: Transport,
  identity: FrontProxyIdentity,
  clientCa: string | undefined,
): Promise<void> {
  const data = {
    ...(clientCa === undefined ? {} : { "client-ca-file": clientCa }),
    "requestheader-client-ca-file": identity.ca,
    "requestheader-allowed-names": JSON.stringify([commonName]),
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
  };
  const collection = "/api/v1/namespaces/kube-system/configmaps";
  try {
    await call(transport, "POST", collection, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: configMap, namespace: "kube-system" },
      data,
    });
  } catch (error) {
    if (!failedWith(error, 409)) throw error;
    await call(transport, "PATCH", `${collection}/${configMap}`, { data });
  }
}

/** Headers that a client must not set for itself: the server says who a user is. */
export function isIdentityHeader(name: string): boolean {
  return name === "authorization" || name.startsWith("x-remote-") || name.startsWith("impersonate-");
}

/** Header names by which users are named to backends. */
export const identityHeaders = remoteHeaders;
