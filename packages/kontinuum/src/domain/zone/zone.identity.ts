/**
 * The identity of a zone: its private half in the zone's cluster, its public half on the hub.
 *
 * The zone's cluster is written first and is the truth: if the hub dies in between, the next pass takes the
 * certificate found there. A rotation is best effort; an old key stays good until a new one took its place.
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
  const known = readAuth(hubSecret);
  const present = await downstream.client.find(secrets, downstreamRef);
  const certificate = present && secretText(present, "tls.crt");
  if (!present || !certificate || !isCertificate(certificate)) {
    return issue(context, zone, hubSecret, undefined, present);
  }
  if (!known || known.current.certificatePem !== certificate) {
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
  const secret: Secret = present ?? {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: systemNamespace, name },
    type: "Opaque",
  };
  // A removed zone of the same name left its Secret behind; the collector takes it, this zone comes back then.
  const owner = secret.metadata.ownerReferences?.[0];
  if (owner && owner.uid !== zone.metadata.uid) {
    throw new CodedError("conflict", `Secret ${name} still belongs to a removed zone of this name`);
  }
  setControllerReference(secret, zone, zoneKind.resource);
  secret.data = formatAuthSecret(auth);
  if (present) await client.live.update(secrets, secret);
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
