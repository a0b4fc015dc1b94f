/**
 * Network key management for disk encryption, as Talos' nodes use it (`sidero.kms.KMSService`).
 *
 * A node draws 32 random bytes, has them sealed, keeps only the sealed form on disk, and asks for
 * them back at every boot. Each node's key is derived from one root key and its SMBIOS UUID, so
 * nothing is stored and nothing is lost by a restart. Whoever is not allowed, and whatever was not
 * sealed here for this node, gets 32 random bytes after the same delay as a right answer takes: the
 * service cannot be asked whether a guess was right. The root key must live outside of whatever the
 * sealed disks hold.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import {
  Code,
  ConnectError,
  createContextKey,
  type ConnectRouter,
  type ServiceImpl,
} from "@connectrpc/connect";
import { CodedError, messageOf, type Edges } from "@kontinuum/std";
import { KMSService } from "../gen/sidero/kms/kms_pb.ts";

/** Bytes of the root key, of a node's key, and of what is sealed. */
export const kmsKeyBytes = 32;
/** Bytes of a sealed blob: 12 of nonce, 32 of ciphertext, 16 of tag (AES-256-GCM, no additional data). */
export const sealedBytes = 60;
const nonceBytes = 12;
const tagBytes = 16;
/** How long every unseal takes, in milliseconds, well inside a node's limit of 10 s. */
const unsealDelayMs = 1_000;
/** Most unseals that wait at once. */
const waitingMax = 1_000;

/** Who asks. */
export interface KmsCaller {
  /** SMBIOS UUID of the node, lower case. */
  readonly nodeUuid: string;
  /** IP address the request came from. */
  readonly address: string;
}

/** What the service is made from. */
export interface KmsOptions {
  /** 32 bytes. */
  readonly rootKey: Uint8Array;
  /** Root keys that were replaced; what they sealed can still be unsealed. */
  readonly previousRootKeys?: readonly Uint8Array[];
  /** Whether this node may use its key from this address. */
  allow(caller: KmsCaller): boolean | Promise<boolean>;
  readonly edges: Pick<Edges, "clock" | "random" | "log">;
  /** Default {@link unsealDelayMs}. */
  readonly delayMs?: number;
}

/** Where the server puts the address of the caller for {@link kmsService}. */
export const callerAddress = createContextKey<string>("", { description: "address of the caller" });

/** Registers the service on a router. The server must set {@link callerAddress}. */
export function kmsService(options: KmsOptions): (router: ConnectRouter) => void {
  const implementation = implement(options);
  return (router) => void router.service(KMSService, implementation);
}

/**
 * A service for development only: a root key in memory, lost when the process ends, and everybody is
 * allowed. `serveKms` serves it on loopback only.
 */
export function developmentKmsService(edges: KmsOptions["edges"]): (router: ConnectRouter) => void {
  return kmsService({ rootKey: edges.random.bytes(kmsKeyBytes), allow: () => true, edges, delayMs: 0 });
}

/** A root key from its text form: 32 bytes as base64 or hexadecimal. Fails with `invalid_argument`. */
export function parseKmsRootKey(text: string): Uint8Array {
  const trimmed = text.trim();
  const key = /^[0-9a-fA-F]{64}$/.test(trimmed)
    ? Buffer.from(trimmed, "hex")
    : Buffer.from(trimmed, "base64");
  if (key.length !== kmsKeyBytes || !/^[A-Za-z0-9+/=]+$/.test(trimmed)) {
    throw new CodedError(
      "invalid_argument",
      "the KMS root key is not 32 bytes in base64 or hexadecimal; make one with: openssl rand -base64 32",
    );
  }
  return key;
}

function implement(options: KmsOptions): ServiceImpl<typeof KMSService> {
  const { edges, rootKey, previousRootKeys = [] } = options;
  for (const key of [rootKey, ...previousRootKeys]) {
    if (key.length !== kmsKeyBytes) throw new CodedError("invalid_argument", "a KMS root key has 32 bytes");
  }
  const delayMs = options.delayMs ?? unsealDelayMs;
  let waiting = 0;

  const allowed = async (caller: KmsCaller): Promise<boolean> => {
    try {
      return await options.allow(caller);
    } catch (error) {
      edges.log.warn("whether a node may use the KMS could not be told", {
        nodeUuid: caller.nodeUuid,
        reason: messageOf(error),
      });
      return false;
    }
  };

  return {
    async seal({ nodeUuid, data }, context) {
      const caller = { nodeUuid: uuidOf(nodeUuid), address: context.values.get(callerAddress) };
      if (data.length !== kmsKeyBytes) {
        throw new ConnectError(
          `data to seal has ${data.length} bytes, not ${kmsKeyBytes}`,
          Code.InvalidArgument,
        );
      }
      if (!(await allowed(caller))) {
        edges.log.warn("a node was refused a sealed key", { ...caller });
        throw new ConnectError("this node may not use this service from this address", Code.PermissionDenied);
      }
      edges.log.debug("sealed a key", { ...caller });
      return { data: seal(nodeKey(rootKey, caller.nodeUuid), data, edges.random.bytes(nonceBytes)) };
    },

    async unseal({ nodeUuid, data }, context) {
      const started = edges.clock.monotonic();
      const caller = { nodeUuid: uuidOf(nodeUuid), address: context.values.get(callerAddress) };
      if (data.length !== sealedBytes) {
        throw new ConnectError(
          `a sealed key has ${sealedBytes} bytes, not ${data.length}`,
          Code.InvalidArgument,
        );
      }
      if (waiting >= waitingMax)
        throw new ConnectError("too many nodes unseal at once", Code.ResourceExhausted);
      waiting++;
      try {
        const permitted = await allowed(caller);
        // Opened in any case, so that a refusal costs the same work as an answer.
        const opened = [rootKey, ...previousRootKeys]
          .map((key) => open(nodeKey(key, caller.nodeUuid), data))
          .find((plain) => plain !== undefined);
        const wrong = edges.random.bytes(kmsKeyBytes);
        const succeeded = permitted && opened !== undefined;
        if (!succeeded) edges.log.warn("a node was answered with random bytes", { ...caller, permitted });
        const left = delayMs - (edges.clock.monotonic() - started);
        if (left > 0) await edges.clock.sleep(left, context.signal);
        return { data: succeeded ? opened : wrong };
      } finally {
        waiting--;
      }
    },
  };
}

function uuidOf(text: string): string {
  if (!/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/.test(text)) {
    throw new ConnectError("node_uuid is not a UUID", Code.InvalidArgument);
  }
  return text.toLowerCase();
}

/** A node's key: HKDF-SHA256 of the root key, bound to the node's UUID (RFC 5869). */
function nodeKey(rootKey: Uint8Array, nodeUuid: string): Uint8Array {
  return new Uint8Array(
    hkdfSync("sha256", rootKey, "", `talos disk encryption, node ${nodeUuid}`, kmsKeyBytes),
  );
}

function seal(key: Uint8Array, data: Uint8Array, nonce: Uint8Array): Uint8Array {
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  return Buffer.concat([nonce, cipher.update(data), cipher.final(), cipher.getAuthTag()]);
}

function open(key: Uint8Array, blob: Uint8Array): Uint8Array | undefined {
  const cipher = createDecipheriv("aes-256-gcm", key, blob.subarray(0, nonceBytes));
  cipher.setAuthTag(blob.subarray(blob.length - tagBytes));
  const plain = cipher.update(blob.subarray(nonceBytes, blob.length - tagBytes));
  try {
    cipher.final();
    return plain;
  } catch {
    return undefined;
  }
}
