/**
 * Secrets in the store are sealed: AES-256-GCM under a key that is not in the store.
 *
 * Sealed text is `v1.<nonce>.<ciphertext and tag>`, both unpadded base64url, bound to the key of the store
 * it is kept under, so that a value moved elsewhere does not open.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { CodedError, type Random } from "@kontinuum/std";

/** Seals and opens short secrets. */
export interface Sealer {
  seal(text: string, place: string): string;
  /** Fails with `data_loss` when the text was sealed under another key or place. */
  open(sealed: string, place: string): string;
}

/** Bytes of a sealing key. */
export const sealKeyBytes = 32;

/** A sealer with one key of {@link sealKeyBytes} bytes. */
export function createSealer(key: Uint8Array, random: Random): Sealer {
  if (key.length !== sealKeyBytes) {
    throw new CodedError("invalid_argument", `the encryption key must be ${sealKeyBytes} bytes`);
  }
  return {
    seal(text, place) {
      const nonce = random.bytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(place, "utf8"));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `v1.${Buffer.from(nonce).toString("base64url")}.${body.toString("base64url")}`;
    },
    open(sealed, place) {
      const [version, nonceText = "", bodyText = ""] = sealed.split(".");
      const nonce = Buffer.from(nonceText, "base64url");
      const body = Buffer.from(bodyText, "base64url");
      try {
        if (version !== "v1" || body.length < 16) throw new RangeError("not a sealed value");
        const decipher = createDecipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(place, "utf8"));
        decipher.setAuthTag(body.subarray(-16));
        return Buffer.concat([decipher.update(body.subarray(0, -16)), decipher.final()]).toString("utf8");
      } catch (cause) {
        throw new CodedError(
          "data_loss",
          "a stored secret cannot be opened: it was sealed with another encryption key",
          { cause },
        );
      }
    },
  };
}
