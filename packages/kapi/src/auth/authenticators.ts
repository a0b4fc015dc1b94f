/**
 * Authenticators that need nothing but what they are given: static tokens, client certificates, trusted proxies.
 */
import { hash, timingSafeEqual } from "node:crypto";
import { CodedError } from "@kontinuum/std";
import type { Authenticator, Credentials, UserInfo } from "../contract.ts";
import type { PeerCertificate } from "../wire/request.ts";

/** One static token. */
export interface StaticToken {
  readonly token: string;
  readonly user: UserInfo;
}

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/**
 * Static bearer tokens. A token that is not in the list is left to other authenticators. Compared in constant time:
 * digests have one length, and every entry is looked at.
 */
export function staticTokens(tokens: readonly StaticToken[]): Authenticator {
  const known = tokens.map(({ token, user }) => ({ digest: digest(token), user }));
  return {
    name: "static-token",
    authenticate({ bearer }) {
      if (bearer === undefined) return Promise.resolve(undefined);
      const presented = digest(bearer);
      let found: UserInfo | undefined;
      for (const entry of known) if (timingSafeEqual(entry.digest, presented)) found = entry.user;
      return Promise.resolve(found);
    },
  };
}

/** Largest token file, in lines. */
const maxTokenLines = 10_000;

/** Reads the CSV form of a token file: `token,user,uid[,"group1,group2"]` a line (Kubernetes' static token file). */
export function parseTokenFile(text: string): readonly StaticToken[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  if (lines.length > maxTokenLines)
    throw new CodedError("invalid_argument", `a token file holds at most ${maxTokenLines} lines`);
  return lines.map((line, index) => {
    const match = /^\s*([^,\s]+)\s*,\s*([^,]+?)\s*,\s*([^,]*?)\s*(?:,\s*"?([^"]*)"?\s*)?$/.exec(line);
    if (!match)
      throw new CodedError(
        "invalid_argument",
        `line ${index + 1} of the token file is not token,user,uid[,"groups"]`,
      );
    const [, token = "", name = "", uid = "", groups = ""] = match;
    const list = groups.split(",").map((group) => group.trim());
    return {
      token,
      user: { name, ...(uid === "" ? {} : { uid }), groups: list.filter((group) => group !== "") },
    };
  });
}

/** Client certificates that the listener has verified: user is the common name, groups the organizations. */
export function clientCertificates(): Authenticator {
  return {
    name: "x509",
    authenticate({ certificate }) {
      if (!certificate || certificate.commonName === "" || isProxy(certificate))
        return Promise.resolve(undefined);
      const extra = hasFingerprint(certificate)
        ? { "authentication.kubernetes.io/credential-id": [`X509SHA256=${certificate.fingerprint}`] }
        : {};
      return Promise.resolve({ name: certificate.commonName, groups: certificate.organizations, extra });
    },
  };
}

function hasFingerprint(certificate: object): certificate is PeerCertificate {
  return "fingerprint" in certificate && typeof certificate.fingerprint === "string";
}

function isProxy(certificate: object): boolean {
  return "issuer" in certificate && certificate.issuer === "requestheader";
}

/** Names of the headers a front proxy sets. */
export const remoteHeaders = {
  user: "x-remote-user",
  uid: "x-remote-uid",
  group: "x-remote-group",
  extra: "x-remote-extra-",
} as const;

/** Users named by a front proxy whose certificate the listener verified against the requestheader CA. */
export function requestHeader(allowedNames: readonly string[]): Authenticator {
  return {
    name: "requestheader",
    authenticate(credentials) {
      const { certificate } = credentials;
      if (!certificate || !isProxy(certificate)) return Promise.resolve(undefined);
      if (allowedNames.length > 0 && !allowedNames.includes(certificate.commonName))
        return Promise.resolve("invalid" as const);
      const name = values(credentials, remoteHeaders.user)[0];
      if (name === undefined || name === "") return Promise.resolve(undefined);
      const uid = values(credentials, remoteHeaders.uid)[0];
      const extra: Record<string, readonly string[]> = {};
      for (const key of Object.keys(credentials.headers)) {
        if (key.startsWith(remoteHeaders.extra))
          extra[decodeKey(key.slice(remoteHeaders.extra.length))] = values(credentials, key);
      }
      return Promise.resolve({
        name,
        ...(uid === undefined ? {} : { uid }),
        groups: values(credentials, remoteHeaders.group),
        extra,
      });
    },
  };
}

function values(credentials: Credentials, name: string): readonly string[] {
  const value = credentials.headers[name];
  if (value === undefined) return [];
  return Array.isArray(value) ? value : name === remoteHeaders.group ? value.split(/,\s*/) : [value];
}

/** Header names carry keys percent-encoded. */
export function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
