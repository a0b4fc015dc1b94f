/**
 * The Secret with a cluster's keys. It is made once and never again: losing the answer to its creation is
 * harmless, because the next pass finds it under the same name.
 *
 * It lies in the system namespace whatever the cluster's own, so that nobody who may read a tenant's Secrets
 * holds the keys of its machines. Its name tells the cluster's namespace, and it carries the cluster's UID: a
 * new cluster of an old name never takes over the old one's keys.
 */
import {
  secrets,
  secretText,
  setControllerReference,
  type CachedClient,
  type Secret,
} from "@kontinuum/controller";
import { CodedError, isCoded } from "@kontinuum/std";
import { annotations, systemNamespace, talosClusterKind, type TalosCluster } from "../../kinds/index.ts";
import { ensureNamespace } from "../ensure.ts";

const bundleKey = "secrets-bundle";
const kubeconfigKey = "kubeconfig";

/** Name of the Secret of a cluster. */
export function clusterSecretName({ metadata }: TalosCluster): string {
  const inSystem = metadata.namespace === systemNamespace;
  return inSystem
    ? `taloscluster-${metadata.name}`
    : `taloscluster-${metadata.namespace ?? ""}.${metadata.name}`;
}

/** The Secret, or `undefined` when there is none of this very cluster. */
export async function findClusterSecret(
  client: CachedClient,
  cluster: TalosCluster,
): Promise<Secret | undefined> {
  const secret = await client.live.find(secrets, {
    namespace: systemNamespace,
    name: clusterSecretName(cluster),
  });
  return secret && belongsTo(secret, cluster) ? secret : undefined;
}

/** The Secret, made with `newBundle` when there is none. Fails with `conflict` while a former cluster's is still there. */
export async function ensureClusterSecret(
  client: CachedClient,
  cluster: TalosCluster,
  newBundle: () => Promise<string>,
): Promise<Secret> {
  const ref = { namespace: systemNamespace, name: clusterSecretName(cluster) };
  const present = await client.live.find(secrets, ref);
  if (present) return checked(present, cluster);
  const secret: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...ref, annotations: { [annotations.clusterUid]: cluster.metadata.uid ?? "" } },
    type: "Opaque",
    data: { [bundleKey]: encode(await newBundle()) },
  };
  if (cluster.metadata.namespace === systemNamespace) {
    setControllerReference(secret, cluster, talosClusterKind.resource);
  }
  await ensureNamespace(client, systemNamespace);
  try {
    return await client.live.create(secrets, secret);
  } catch (error) {
    if (!isCoded(error, "already_exists")) throw error;
    return checked(await client.live.get(secrets, ref), cluster);
  }
}

/** Stores the kubeconfig, when it differs. */
export async function storeKubeconfig(
  client: CachedClient,
  secret: Secret,
  kubeconfig: string,
): Promise<Secret> {
  if (secretText(secret, kubeconfigKey) === kubeconfig) return secret;
  return client.live.update(secrets, {
    ...secret,
    data: { ...secret.data, [kubeconfigKey]: encode(kubeconfig) },
  });
}

/** The bundle's text. Fails with `data_loss` when it is missing. */
export function bundleText(secret: Secret): string {
  const text = secretText(secret, bundleKey);
  if (!text)
    throw new CodedError(
      "data_loss",
      `Secret ${secret.metadata.name} has no ${bundleKey}: restore it from a backup`,
    );
  return text;
}

/** The stored kubeconfig, or `undefined` before the cluster has one. */
export const kubeconfigText = (secret: Secret): string | undefined =>
  secretText(secret, kubeconfigKey) || undefined;

function checked(secret: Secret, cluster: TalosCluster): Secret {
  if (belongsTo(secret, cluster)) return secret;
  throw new CodedError(
    "conflict",
    `Secret ${secret.metadata.name} holds the keys of another cluster of this name; it goes with that cluster's deletion`,
  );
}

const belongsTo = ({ metadata }: Secret, cluster: TalosCluster): boolean =>
  metadata.annotations?.[annotations.clusterUid] === cluster.metadata.uid;

const encode = (text: string): string => Buffer.from(text, "utf8").toString("base64");
