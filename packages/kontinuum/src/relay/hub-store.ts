/**
 * A zone's way to the hub's store: the etcd face of the hub, reached over TLS with short-lived tokens that the
 * zone signs with its own key.
 *
 * The key file is read again whenever a token is made, so a replaced key is picked up without a restart. No local
 * socket stands in between: the store is used by this process only.
 */
import { createPrivateKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { getCACertificates } from "node:tls";
import { CodedError, isDnsSubdomain, messageOf, type Edges } from "@kontinuum/std";
import { connectEtcd, type Store } from "@kontinuum/storage";
import type { Config } from "../config/config.ts";
import { hostOf, isLoopback } from "../config/listen-address.ts";
import { signZoneToken } from "../identity/zone-token.ts";

/** How long one token is used, milliseconds: well below its life, so that clocks may differ. */
const tokenUseMs = 60_000;

/** Where the hub is and as which zone to speak to it. */
export interface HubTarget {
  /** Name of the Zone object. */
  readonly zone: string;
  /** `host:port` */
  readonly endpoint: string;
}

/** Reads `grpc://<zone>@<host:port>`; `undefined` for any other storage string. A password is ignored. */
export function hubTarget(storage: string): HubTarget | undefined {
  const match = /^grpc:\/\/([^:@/]+)(?::[^@/]*)?@([^@/?#]+:\d{1,5})\/?$/.exec(storage);
  const [, zone = "", endpoint = ""] = match ?? [];
  return match && isDnsSubdomain(zone) ? { zone, endpoint } : undefined;
}

/** Opens the store. The connection is made on first use; the key must be readable now. */
export async function openHubStore(target: HubTarget, config: Config, edges: Edges): Promise<Store> {
  if (config.grpc.plaintext && !isLoopback(hostOf(target.endpoint))) {
    throw new CodedError(
      "invalid_argument",
      `KONTINUUM_SERVER_GRPC_INSECURE_PLAINTEXT=true is refused for ${target.endpoint}: the zone's token would cross the network in clear text; unset it`,
    );
  }
  const folder = config.values.KONTINUUM_SERVER_IDENTITY_DIR;
  const ca = await hubAuthorities(config, folder);
  const tokens = new ZoneTokens(target.zone, path.join(folder, "tls.key"), edges);
  await tokens.current();
  return connectEtcd(
    {
      endpoints: [target.endpoint],
      ...(config.grpc.plaintext
        ? {}
        : { tls: { rejectUnauthorized: !config.grpc.skipVerify, ...(ca === undefined ? {} : { ca }) } }),
      headers: async () => ({ authorization: `Bearer ${await tokens.current()}` }),
    },
    edges,
    "grpc",
  );
}

/**
 * What to trust: only the file the operator named; else the system's authorities, for a hub behind a proxy with a
 * public certificate, and the hub's own, which came with the identity.
 */
async function hubAuthorities({ grpc }: Config, folder: string): Promise<string | undefined> {
  if (grpc.caFile !== "") return readIdentityFile(grpc.caFile);
  const own = await readFile(path.join(folder, "ca.crt"), "utf8").catch(() => undefined);
  return own === undefined ? undefined : [...getCACertificates("default"), own].join("\n");
}

/** Signs tokens and keeps the newest for a while. */
class ZoneTokens {
  readonly #zone: string;
  readonly #keyFile: string;
  readonly #edges: Edges;
  #token = "";
  #signedAtMs = Number.NEGATIVE_INFINITY;

  constructor(zone: string, keyFile: string, edges: Edges) {
    this.#zone = zone;
    this.#keyFile = keyFile;
    this.#edges = edges;
  }

  async current(): Promise<string> {
    const now = this.#edges.clock.monotonic();
    if (now - this.#signedAtMs < tokenUseMs) return this.#token;
    this.#token = await signZoneToken(this.#zone, await this.#readKey(), this.#edges.clock);
    this.#signedAtMs = now;
    return this.#token;
  }

  async #readKey(): Promise<KeyObject> {
    const pem = await readIdentityFile(this.#keyFile);
    let key: KeyObject;
    try {
      key = createPrivateKey(pem);
    } catch {
      throw new CodedError("invalid_argument", `${this.#keyFile} is not a private key in PEM`);
    }
    if (key.asymmetricKeyType !== "ed25519") {
      throw new CodedError("invalid_argument", `${this.#keyFile} holds no Ed25519 key`);
    }
    return key;
  }
}

async function readIdentityFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `the zone's identity can't be read from ${file}: ${messageOf(error)}; set KONTINUUM_SERVER_IDENTITY_DIR when it is mounted elsewhere`,
    );
  }
}
