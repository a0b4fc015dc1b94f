/**
 * Encrypted system volumes. STATE opened by a KMS needs a network that works without the machine
 * configuration, because the configuration lies on STATE.
 */
import { CodedError, type JsonObject } from "@kontinuum/std";
import { parseKmsEndpoint } from "../kms/kms-endpoint.ts";
import type { ConfigDocument } from "./config-document.ts";
import type { DiskKeyOptions, EncryptionOptions } from "./machine-config-options.ts";
import { document } from "./network-documents.ts";

/**
 * VolumeConfig documents of the encrypted volumes. `ephemeral` holds further fields of EPHEMERAL,
 * which is written even when it is not encrypted if there are any.
 */
export function volumeDocuments(
  encryption: EncryptionOptions | undefined,
  ephemeral: JsonObject = {},
): ConfigDocument[] {
  const documents: ConfigDocument[] = [];
  if (encryption?.state) {
    documents.push(document("VolumeConfig", { name: "STATE", encryption: luks(encryption.state) }));
  }
  if (encryption?.ephemeral || Object.keys(ephemeral).length > 0) {
    documents.push(
      document("VolumeConfig", {
        name: "EPHEMERAL",
        ...(encryption?.ephemeral ? { encryption: luks(encryption.ephemeral) } : {}),
        ...ephemeral,
      }),
    );
  }
  return documents;
}

function luks(keys: readonly DiskKeyOptions[]): JsonObject {
  if (keys.length === 0) {
    throw new CodedError("invalid_argument", "an encrypted volume needs at least one key");
  }
  return { provider: "luks2", keys: keys.map((key, slot) => ({ slot, ...keyFields(key) })) };
}

function keyFields(key: DiskKeyOptions): JsonObject {
  switch (key.kind) {
    case "kms":
      parseKmsEndpoint(key.endpoint);
      return { kms: { endpoint: key.endpoint } };
    case "tpm":
      return { tpm: {} };
    case "nodeID":
      return { nodeID: {} };
    case "static":
      return { static: { passphrase: key.passphrase } };
  }
}
