/**
 * The identity of a zone: its private half in the zone's cluster, its public half on the hub.
 *
 * The zone's cluster is written first and is the truth: if the hub dies in between, the next pass takes the
 * certificate found there. A rotation is best effort; an old key stays good until a new one took its place.
 * What a removed zone of the same name left behind is neither taken over nor waited for: it is removed, and the new
 * zone gets a key of its own.
 */
import {
  secrets,
  secretText,
  setControllerReference,
  type CachedClient,
  type Secret,
} from "@kontinuum/controller";
import { CodedError, isCoded, type Edges } from "@kontinuum/std";
import {
  formatAuthSecret,
  parseAuthSecret,
  rotated,
  rotationDue,
  type ZoneAuth,
} from "../../identity/auth-secret.ts";
import { generateIdentity, parseIdentityCertificate } from "../../identity/zone-identity.ts";
import {
  identitySecretName,
  systemNamespace,
  zoneAuthSecretName,
  zoneKind,
  type Zone,
} from "../../kinds/index.ts";
import type { Downstream } from "../downstream/downstream.ts";

/** What the step works with. */
export interface IdentityContext {
  /** Of the hub. */
  readonly client: CachedClient;
  readonly downstream: Downstream;
  readonly edges: Edges;
  /** PEM authorities the zone must trust to reach the hub; empty: the system's. */
  readonly hubAuthorities: string;
}

const downstreamRef = { namespace: systemNamespace, name: identitySecretName };

/** Makes sure that both halves are there and fit, and replaces the key when it is due. True when it was replaced. */
export async function ensureIdentity(context: IdentityContext, zone: Zone): Promise<boolean> {
  const { client, downstream, edges, hubAuthorities } = context;
  const hubSecret = await client.live.find(secrets, {
    namespace: systemNamespace,
    name: zoneAuthSecretName(zone.metadata.name),
  });
  const present = await downstream.client.find(secrets, downstreamRef);
  // The removed zone's key may still lie in the cluster: it was revoked with that zone and stays so.
  if (hubSecret && (await isLeftBehind(client, hubSecret, zone)))
    return issue(context, zone, hubSecret, undefined, present);
  const known = readAuth(hubSecret);
  const certificate = present && secretText(present, "tls.crt");
  if (!present || !certificate || !isCertificate(certificate)) {
    return issue(context, zone, hubSecret, undefined, present);
  }
  const isOurs = hubSecret !== undefined && isOwnedBy(hubSecret, zone);
  if (!known || !isOurs || known.current.certificatePem !== certificate) {
    await writeHub(client, zone, hubSecret, rotated(known, certificate, edges.clock.now()));
    return false;
  }
  if (rotationDue(known, edges.clock.now())) return issue(context, zone, hubSecret, known, present);
  if ((secretText(present, "ca.crt") ?? "") !== hubAuthorities) {
    const data = { ...present.data, ...encoded({ "ca.crt": hubAuthorities }) };
    await downstream.client.update(secrets, { ...present, data });
  }
  return false;
}

/**
 * Whether the hub's half was left behind by a removed zone. Fails with `conflict` when it belongs to something else that
 * is still there.
 */
async function isLeftBehind(client: CachedClient, secret: Secret, zone: Zone): Promise<boolean> {
  const { namespace, name } = secret.metadata;
  const owners = secret.metadata.ownerReferences ?? [];
  if (owners.length === 0 || isOwnedBy(secret, zone)) return false;
  for (const owner of owners) {
    const isZone = owner.kind === "Zone" && owner.apiVersion.startsWith(`${zoneKind.resource.group}/`);
    const present = isZone
      ? await client.live.find(zoneKind.resource, { namespace, name: owner.name })
      : undefined;
    if (isZone && present?.metadata.uid !== owner.uid) continue;
    throw new CodedError(
      "conflict",
      `Secret ${name} belongs to ${owner.kind} ${owner.name}, not to this zone: remove that owner, or the Secret ` +
        `(kubectl delete secret ${name} -n ${systemNamespace}); this zone then goes on by itself`,
    );
  }
  return true;
}

const isOwnedBy = (secret: Secret, zone: Zone): boolean =>
  secret.metadata.ownerReferences?.some(({ uid }) => uid === zone.metadata.uid) === true;

async function issue(
  { client, downstream, edges, hubAuthorities }: IdentityContext,
  zone: Zone,
  hubSecret: Secret | undefined,
  known: ZoneAuth | undefined,
  present: Secret | undefined,
): Promise<boolean> {
  const { certificatePem, privateKeyPem } = await generateIdentity(zone.metadata.name, edges);
  const data = encoded({ "tls.crt": certificatePem, "tls.key": privateKeyPem, "ca.crt": hubAuthorities });
  const secret: Secret = {
    ...(present ?? { apiVersion: "v1", kind: "Secret", metadata: { ...downstreamRef } }),
    type: "kubernetes.io/tls",
    data,
  };
  if (present) await downstream.client.update(secrets, secret);
  else await downstream.client.create(secrets, secret);
  await writeHub(client, zone, hubSecret, rotated(known, certificatePem, edges.clock.now()));
  return known !== undefined;
}

async function writeHub(
  client: CachedClient,
  zone: Zone,
  present: Secret | undefined,
  auth: ZoneAuth,
): Promise<void> {
  const name = zoneAuthSecretName(zone.metadata.name);
  const ref = { namespace: systemNamespace, name };
  const isKept =
    present !== undefined && (isOwnedBy(present, zone) || !present.metadata.ownerReferences?.length);
  if (present && !isKept) {
    const { uid } = present.metadata;
    await client.live.deleteIfExists(secrets, ref, uid === undefined ? {} : { preconditions: { uid } });
  }
  const secret: Secret = isKept
    ? present
    : { apiVersion: "v1", kind: "Secret", metadata: ref, type: "Opaque" };
  setControllerReference(secret, zone, zoneKind.resource);
  secret.data = formatAuthSecret(auth);
  if (isKept) await client.live.update(secrets, secret);
  else await client.live.create(secrets, secret);
}

function readAuth(secret: Secret | undefined): ZoneAuth | undefined {
  if (!secret) return undefined;
  try {
    return parseAuthSecret(secret);
  } catch (error) {
    // Unreadable is as good as lost: the certificate in the zone's cluster restores it.
    if (isCoded(error)) return undefined;
    throw error;
  }
}

function isCertificate(pem: string): boolean {
  try {
    parseIdentityCertificate(pem);
    return true;
  } catch {
    return false;
  }
}

function encoded(entries: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entries)
      .filter(([, value]) => value !== "")
      .map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );
}
