/**
 * What the hub remembers of a zone's identity: the Secret `<zone>-etcd-auth`, public halves only.
 *
 * The current key is valid until it is replaced or the Secret goes away; nothing expires by itself, so a zone that
 * was offline for a week rejoins. After a rotation the previous key stays valid for {@link overlapMs}, so that
 * a server that still holds it can finish.
 */
import { secretText, type Secret } from "@kontinuum/controller";
import { CodedError } from "@kontinuum/std";
import { parseIdentityCertificate } from "./zone-identity.ts";

/** How often an identity is replaced, best effort. */
export const rotationIntervalMs = 6 * 3_600_000;
/** How long the previous key stays valid after a rotation. */
export const overlapMs = 5 * 60_000;

/** One certificate and when it was issued. */
export interface IssuedCertificate {
  readonly certificatePem: string;
  /** Milliseconds since the epoch. */
  readonly issuedAtMs: number;
}

/** The content of the Secret. On first issue both entries are the same. */
export interface ZoneAuth {
  readonly current: IssuedCertificate;
  readonly previous: IssuedCertificate;
}

/** `data` of the Secret, base64. */
export function formatAuthSecret(auth: ZoneAuth): Record<string, string> {
  const encode = (text: string): string => Buffer.from(text, "utf8").toString("base64");
  return {
    "current-tls.crt": encode(auth.current.certificatePem),
    "current-issued-at": encode(formatNanos(auth.current.issuedAtMs)),
    "previous-tls.crt": encode(auth.previous.certificatePem),
    "previous-issued-at": encode(formatNanos(auth.previous.issuedAtMs)),
  };
}

/** Reads the Secret. Fails with `invalid_argument` naming the key that is missing or malformed. */
export function parseAuthSecret(secret: Secret): ZoneAuth {
  const entry = (prefix: "current" | "previous"): IssuedCertificate => {
    const certificatePem = secretText(secret, `${prefix}-tls.crt`);
    const issued = secretText(secret, `${prefix}-issued-at`);
    const name = secret.metadata.name;
    if (certificatePem === undefined)
      throw new CodedError("invalid_argument", `secret ${name} has no ${prefix}-tls.crt`);
    parseIdentityCertificate(certificatePem);
    const issuedAtMs = issued === undefined ? Number.NaN : Date.parse(issued);
    if (Number.isNaN(issuedAtMs))
      throw new CodedError("invalid_argument", `secret ${name} has no valid ${prefix}-issued-at`);
    return { certificatePem, issuedAtMs };
  };
  return { current: entry("current"), previous: entry("previous") };
}

/** Whether it is time to replace the key. */
export function rotationDue(auth: ZoneAuth, nowMs: number): boolean {
  return nowMs >= auth.current.issuedAtMs + rotationIntervalMs;
}

/** The certificates whose keys may sign now, current first. */
export function acceptedCertificates(auth: ZoneAuth, nowMs: number): readonly string[] {
  const { current, previous } = auth;
  if (previous.certificatePem === current.certificatePem) return [current.certificatePem];
  return nowMs < current.issuedAtMs + overlapMs
    ? [current.certificatePem, previous.certificatePem]
    : [current.certificatePem];
}

/** The auth after a new certificate took the place of the current one. */
export function rotated(auth: ZoneAuth | undefined, certificatePem: string, nowMs: number): ZoneAuth {
  const current = { certificatePem, issuedAtMs: nowMs };
  return { current, previous: auth?.current ?? current };
}

function formatNanos(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000000Z");
}
