/**
 * Tokens of service accounts: issued by TokenRequest and for token Secrets, checked against the account (and the
 * object they are bound to) as it stands now.
 *
 * The signing key lives in a Secret in the system namespace, so that every replica signs and accepts alike. Whoever
 * can read that Secret can be any service account.
 */
import {
  calculateJwkThumbprint,
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  jwtVerify,
  SignJWT,
  errors as joseErrors,
  decodeJwt,
} from "jose";
import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import type { Transport } from "@kontinuum/controller";
import { at, stringAt, type Clock, type JsonObject, type Random } from "@kontinuum/std";
import { LRUCache } from "lru-cache";
import type { Authenticator, Credentials, UserInfo } from "../contract.ts";
import { call, failedWith } from "../controllers/call.ts";

const algorithm = "ES256";
/** Answers about a token are kept this long. */
const cacheMs = 5_000;
const cacheSize = 10_000;

/** Name of the Secret with the signing key. */
export const signingKeySecret = "kapi-service-account-signing-key";
/** Issuer of tokens kept in Secrets. */
const legacyIssuer = "kubernetes/serviceaccount";

/** Reads an object through the API as the server itself; `undefined` when there is none. */
export type ObjectReader = (
  plural: string,
  namespace: string,
  name: string,
) => Promise<JsonObject | undefined>;

/** What tokens need. */
export interface TokenOptions {
  readonly transport: Transport;
  readonly read: ObjectReader;
  readonly namespace: string;
  readonly issuer: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** An object a token is bound to. */
export interface BoundObject {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

interface Keys {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly kid: string;
}

/** Issues and checks tokens. */
export class ServiceAccountTokens implements Authenticator {
  readonly name = "service-account";
  readonly #options: TokenOptions;
  readonly #known: LRUCache<string, { readonly user: UserInfo; readonly until: number }>;
  #keys: Promise<Keys> | undefined;

  constructor(options: TokenOptions) {
    this.#options = options;
    this.#known = new LRUCache({ max: cacheSize });
  }

  /** The signing key, made on first use by whichever replica is first. */
  #load(): Promise<Keys> {
    this.#keys ??= this.#loadOrCreate().catch((error: unknown) => {
      this.#keys = undefined;
      throw error;
    });
    return this.#keys;
  }

  async #loadOrCreate(): Promise<Keys> {
    const { transport, namespace } = this.#options;
    const collection = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
    const read = async (): Promise<string | undefined> => {
      try {
        const secret = await call(transport, "GET", `${collection}/${signingKeySecret}`);
        const data = stringAt(secret, "data", "key");
        return data === undefined ? undefined : Buffer.from(data, "base64").toString("utf8");
      } catch (error) {
        if (failedWith(error, 404)) return undefined;
        throw error;
      }
    };
    let pem = await read();
    if (pem === undefined) {
      const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
      pem = await exportPKCS8(privateKey);
      try {
        await call(transport, "POST", collection, {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name: signingKeySecret, namespace },
          type: "Opaque",
          data: { key: Buffer.from(pem).toString("base64") },
        });
      } catch (error) {
        if (!failedWith(error, 409)) throw error;
        pem = (await read()) ?? pem;
      }
    }
    const privateKey = createPrivateKey(pem);
    const publicKey = createPublicKey(privateKey);
    const kid = await calculateJwkThumbprint(await exportJWK(publicKey));
    return { privateKey, publicKey, kid };
  }

  /** Issues a token for an account. `seconds` is its time to live. */
  async issue(
    account: { readonly namespace: string; readonly name: string; readonly uid: string },
    audiences: readonly string[],
    seconds: number,
    bound?: BoundObject,
  ): Promise<{ readonly token: string; readonly expires: number }> {
    const { privateKey, kid } = await this.#load();
    const { clock, random, issuer } = this.#options;
    const now = Math.floor(clock.now() / 1000);
    const expires = now + seconds;
    const token = await new SignJWT({
      "kubernetes.io": {
        namespace: account.namespace,
        serviceaccount: { name: account.name, uid: account.uid },
        ...(bound ? { [bound.kind.toLowerCase()]: { name: bound.name, uid: bound.uid } } : {}),
      },
    })
      .setProtectedHeader({ alg: algorithm, kid })
      .setIssuer(issuer)
      .setSubject(`system:serviceaccount:${account.namespace}:${account.name}`)
      .setAudience(audiences.length > 0 ? [...audiences] : [issuer])
      .setIssuedAt(now)
      .setNotBefore(now)
      .setExpirationTime(expires)
      .setJti(random.uuid())
      .sign(privateKey);
    return { token, expires };
  }

  /** Issues the lasting token of a token Secret: valid while the Secret holds it. */
  async issueForSecret(
    account: { readonly namespace: string; readonly name: string; readonly uid: string },
    secret: string,
  ): Promise<string> {
    const { privateKey, kid } = await this.#load();
    return new SignJWT({
      "kubernetes.io/serviceaccount/namespace": account.namespace,
      "kubernetes.io/serviceaccount/secret.name": secret,
      "kubernetes.io/serviceaccount/service-account.name": account.name,
      "kubernetes.io/serviceaccount/service-account.uid": account.uid,
    })
      .setProtectedHeader({ alg: algorithm, kid })
      .setIssuer(legacyIssuer)
      .setSubject(`system:serviceaccount:${account.namespace}:${account.name}`)
      .sign(privateKey);
  }

  async authenticate(credentials: Credentials): Promise<UserInfo | "invalid" | undefined> {
    const { bearer, audiences } = credentials;
    if (bearer === undefined || bearer.split(".").length !== 3) return undefined;
    let issuer: string | undefined;
    try {
      issuer = decodeJwt(bearer).iss;
    } catch {
      return undefined;
    }
    if (issuer !== this.#options.issuer && issuer !== legacyIssuer) return undefined;
    const { clock } = this.#options;
    const id = `${(audiences ?? []).join(" ")}\n${bearer}`;
    const known = this.#known.get(id);
    if (known && clock.monotonic() < known.until) return known.user;
    const user = await this.#verify(bearer, issuer, audiences ?? [this.#options.issuer]);
    if (user !== "invalid") this.#known.set(id, { user, until: clock.monotonic() + cacheMs });
    return user;
  }

  async #verify(bearer: string, issuer: string, audiences: readonly string[]): Promise<UserInfo | "invalid"> {
    const { publicKey } = await this.#load();
    const legacy = issuer === legacyIssuer;
    let claims: JsonObject;
    try {
      const { payload } = await jwtVerify(bearer, publicKey, {
        algorithms: [algorithm],
        issuer,
        ...(legacy ? {} : { audience: [...audiences] }),
        currentDate: new Date(this.#options.clock.now()),
        clockTolerance: 10,
      });
      claims = { ...payload };
    } catch (error) {
      if (error instanceof joseErrors.JOSEError) return "invalid";
      throw error;
    }
    return legacy ? this.#legacyUser(bearer, claims) : this.#boundUser(claims);
  }

  async #legacyUser(bearer: string, claims: JsonObject): Promise<UserInfo | "invalid"> {
    const claim = (name: string): string => stringAt(claims, `kubernetes.io/serviceaccount/${name}`) ?? "";
    const namespace = claim("namespace");
    const name = claim("service-account.name");
    const uid = claim("service-account.uid");
    const secret = await this.#options.read("secrets", namespace, claim("secret.name"));
    const held = Buffer.from(stringAt(secret, "data", "token") ?? "", "base64").toString("utf8");
    if (held !== bearer || !(await this.#accountIs(namespace, name, uid))) return "invalid";
    return userOf(namespace, name, uid, {});
  }

  async #boundUser(claims: JsonObject): Promise<UserInfo | "invalid"> {
    const own = at(claims, "kubernetes.io");
    const namespace = stringAt(own, "namespace") ?? "";
    const name = stringAt(own, "serviceaccount", "name") ?? "";
    const uid = stringAt(own, "serviceaccount", "uid") ?? "";
    if (!(await this.#accountIs(namespace, name, uid))) return "invalid";
    const extra: Record<string, readonly string[]> = {};
    const jti = stringAt(claims, "jti");
    if (jti !== undefined) extra["authentication.kubernetes.io/credential-id"] = [`JTI=${jti}`];
    for (const [kind, plural] of [
      ["pod", "pods"],
      ["secret", "secrets"],
      ["node", "nodes"],
    ] as const) {
      const boundName = stringAt(own, kind, "name");
      const boundUid = stringAt(own, kind, "uid");
      if (boundName === undefined) continue;
      const bound = await this.#options.read(plural, kind === "node" ? "" : namespace, boundName);
      if (stringAt(bound, "metadata", "uid") !== boundUid) return "invalid";
      if (kind === "secret") continue;
      extra[`authentication.kubernetes.io/${kind}-name`] = [boundName];
      if (boundUid !== undefined) extra[`authentication.kubernetes.io/${kind}-uid`] = [boundUid];
    }
    return userOf(namespace, name, uid, extra);
  }

  async #accountIs(namespace: string, name: string, uid: string): Promise<boolean> {
    const account = await this.#options.read("serviceaccounts", namespace, name);
    return account !== undefined && stringAt(account, "metadata", "uid") === uid;
  }

  /** The public keys (RFC 7517). */
  async jwks(): Promise<JsonObject> {
    const { publicKey, kid } = await this.#load();
    return { keys: [{ ...(await exportJWK(publicKey)), use: "sig", alg: algorithm, kid }] };
  }

  /** The issuer's description (OpenID Connect Discovery). `url` is where this server is reached. */
  openidConfiguration(url: string): JsonObject {
    return {
      issuer: this.#options.issuer,
      jwks_uri: `${url}/openid/v1/jwks`,
      response_types_supported: ["id_token"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: [algorithm],
    };
  }
}

function userOf(
  namespace: string,
  name: string,
  uid: string,
  extra: Record<string, readonly string[]>,
): UserInfo {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    uid,
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`],
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
  };
}
