/**
 * The store of a process: the hub's own, or, in a zone, the hub's through its etcd face.
 */
import { CodedError, type Edges } from "@kontinuum/std";
import { openStore, type Store } from "@kontinuum/storage";
import type { Config } from "../config/config.ts";
import { hubTarget, openHubStore } from "../relay/hub-store.ts";

/** Opens the store. A hub must not be given another hub's face, and a zone nothing else. */
export async function openProcessStore(config: Config, edges: Edges): Promise<Store> {
  const url = config.values.KONTINUUM_SERVER_STORAGE;
  const target = hubTarget(url);
  if (config.placement && !target) {
    throw new CodedError(
      "invalid_argument",
      "KONTINUUM_SERVER_STORAGE of a zone must be grpc://<zone>@<host>:<port>: a zone has no store of its own",
    );
  }
  return target ? openHubStore(target, config, edges) : openStore(url, edges);
}
