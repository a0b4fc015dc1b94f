/**
 * Encrypted volumes of a node whose keys a key management service keeps.
 *
 * At installation the node makes a random key for each such volume and has it sealed; only the sealed form and a
 * digest stay on the disk. At every boot it has them unsealed, and does not get past a key that is not the one it
 * made: a service that will not tell answers with other bytes.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { CodedError, stringAt, type Edges } from "@kontinuum/std";
import { documentsOfKind } from "../config/machine-config-facts.ts";
import { connectKms } from "../kms/kms-client.ts";
import { kmsKeyBytes } from "../kms/kms-service.ts";
import type { NodeConfig } from "./node-config.ts";

/** What the disk keeps of a volume's key. */
export interface SealedKey {
  readonly volume: string;
  readonly endpoint: string;
  /** Base64. */
  readonly sealed: string;
  /** Base64 SHA-256 of the key, which stands for a header that only the key opens. */
  readonly digest: string;
}

/** Makes and seals a key for each volume that wants one. Fails when the service does not answer. */
export async function sealVolumeKeys(config: NodeConfig, uuid: string, edges: Edges): Promise<SealedKey[]> {
  const wanted = config.facts.volumes.flatMap(({ name, keys }) => {
    const endpoint = keys.find(({ kind }) => kind === "kms")?.endpoint ?? "";
    return endpoint === "" ? [] : [{ volume: name, endpoint }];
  });
  const sealed: SealedKey[] = [];
  for (const { volume, endpoint } of wanted) {
    const key = edges.random.bytes(kmsKeyBytes);
    const client = connectKms({ endpoint, edges, ...trustedRoots(config) });
    try {
      const blob = await client.seal(uuid, key);
      sealed.push({
        volume,
        endpoint,
        sealed: Buffer.from(blob).toString("base64"),
        digest: digestOf(key).toString("base64"),
      });
    } finally {
      client.close();
    }
  }
  return sealed;
}

/** Has every key unsealed. Fails with `permission_denied` for a key that is another one. */
export async function unsealVolumeKeys(
  keys: readonly SealedKey[],
  config: NodeConfig,
  uuid: string,
  edges: Edges,
): Promise<void> {
  for (const { volume, endpoint, sealed, digest } of keys) {
    const client = connectKms({ endpoint, edges, ...trustedRoots(config) });
    try {
      const key = await client.unseal(uuid, Buffer.from(sealed, "base64"));
      if (timingSafeEqual(digestOf(key), Buffer.from(digest, "base64"))) continue;
      throw new CodedError(
        "permission_denied",
        `volume ${volume} does not open with the key that ${endpoint} gave`,
      );
    } finally {
      client.close();
    }
  }
}

function digestOf(key: Uint8Array): Buffer {
  return createHash("sha256").update(key).digest();
}

function trustedRoots({ documents }: NodeConfig): { ca?: string } {
  const roots = documentsOfKind(documents, "TrustedRootsConfig").map(
    (document) => stringAt(document, "certificates") ?? "",
  );
  return roots.length === 0 ? {} : { ca: roots.join("\n") };
}
