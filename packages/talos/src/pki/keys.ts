/**
 * Private keys: made in the thread pool, because an RSA key takes up to seconds, and turned into what
 * the certificate library signs with. Node's key objects are the one form they have in between.
 */
import { createPublicKey, generateKeyPair, type KeyObject, type webcrypto } from "node:crypto";
import { CodedError } from "@kontinuum/std";

/** The key algorithms of Talos: `p256` is ECDSA P-256, `rsa4096` the service-account key. */
export type KeyAlgorithm = "ed25519" | "p256" | "rsa4096";

/** A fresh private key. RSA takes up to some seconds, in the thread pool. */
export function generateKey(algorithm: KeyAlgorithm): Promise<KeyObject> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, _publicKey: KeyObject, privateKey: KeyObject): void =>
      error ? reject(error) : resolve(privateKey);
    switch (algorithm) {
      case "ed25519":
        return generateKeyPair("ed25519", undefined, done);
      case "p256":
        return generateKeyPair("ec", { namedCurve: "P-256" }, done);
      case "rsa4096":
        return generateKeyPair("rsa", { modulusLength: 4096 }, done);
    }
  });
}

/** The algorithm of a leaf under a CA with this key: Ed25519 under Ed25519, else ECDSA P-256. */
export function leafAlgorithm(caKey: KeyObject): KeyAlgorithm {
  return caKey.asymmetricKeyType === "ed25519" ? "ed25519" : "p256";
}

/** Key and signature algorithm names of WebCrypto for a key of ours. */
function signingAlgorithm(
  key: KeyObject,
): webcrypto.EcKeyImportParams | webcrypto.RsaHashedImportParams | { name: "Ed25519" } {
  switch (key.asymmetricKeyType) {
    case "ed25519":
      return { name: "Ed25519" };
    case "ec": {
      const curve = key.asymmetricKeyDetails?.namedCurve;
      if (curve === "prime256v1") return { name: "ECDSA", namedCurve: "P-256" };
      if (curve === "secp384r1") return { name: "ECDSA", namedCurve: "P-384" };
      break;
    }
    case "rsa":
      return { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  }
  throw new CodedError("unsupported", `cannot sign with a key of type ${key.asymmetricKeyType ?? "unknown"}`);
}

/** The private key for WebCrypto. */
export function cryptoPrivateKey(key: KeyObject): webcrypto.CryptoKey {
  return key.toCryptoKey(signingAlgorithm(key), true, ["sign"]);
}

/** The public half of a private key for WebCrypto. */
export function cryptoPublicKey(privateKey: KeyObject): webcrypto.CryptoKey {
  return createPublicKey(privateKey).toCryptoKey(signingAlgorithm(privateKey), true, ["verify"]);
}
