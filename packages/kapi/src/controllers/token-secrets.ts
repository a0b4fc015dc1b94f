/**
 * Fills Secrets of type `kubernetes.io/service-account-token` and removes them with their account.
 */
import type { Controller, ControllerContext, Transport } from "@kontinuum/controller";
import { isObject, stringAt, type Edges, type JsonObject } from "@kontinuum/std";
import type { ObjectReader, ServiceAccountTokens } from "../auth/service-account-tokens.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import { entryObject } from "../watch-cache/entry.ts";
import { CacheWorker } from "./cache-worker.ts";
import { call, failedWith } from "./call.ts";

const type = "kubernetes.io/service-account-token";
const accountName = "kubernetes.io/service-account.name";
const accountUid = "kubernetes.io/service-account.uid";

/** What the controller needs. */
export interface TokenSecretsOptions {
  readonly edges: Edges;
  readonly secrets: ResourceStore;
  readonly accounts: ResourceStore;
  readonly transport: Transport;
  readonly tokens: ServiceAccountTokens;
  readonly read: ObjectReader;
  readonly authority: string;
}

/** Keeps token Secrets. */
export class TokenSecrets implements Controller {
  readonly name = "token-secrets";
  readonly #options: TokenSecretsOptions;

  constructor(options: TokenSecretsOptions) {
    this.#options = options;
  }

  async run({ signal }: ControllerContext): Promise<void> {
    const { edges, secrets, accounts } = this.#options;
    const { clock, log } = edges;
    const worker = new CacheWorker({ name: this.name, clock, log, reconcile: (key) => this.#reconcile(key) });
    await Promise.all([secrets.cache.load(), accounts.cache.load()]);
    const isToken = (rest: Buffer): boolean => rest.includes(`"type":"${type}"`);
    const stops = [
      worker.follow(secrets.cache, ({ entry }) => (entry && isToken(entry.rest) ? [entry.key] : [])),
      worker.follow(accounts.cache, ({ entry, previous }) => {
        const namespace = (entry ?? previous)?.namespace ?? "";
        return secrets.cache
          .list(secrets.scope(namespace))
          .filter(({ rest }) => isToken(rest))
          .map(({ key }) => key);
      }),
    ];
    try {
      await worker.run(signal);
    } finally {
      for (const stop of stops) stop();
    }
  }

  async #reconcile(key: string): Promise<undefined> {
    const { secrets, transport, tokens, read, authority } = this.#options;
    const entry = await secrets.read(key);
    if (!entry || entry.error !== undefined) return undefined;
    const secret: JsonObject = entryObject(entry);
    const { namespace, name } = entry;
    const annotations = isObject(secret["metadata"]) ? secret["metadata"]["annotations"] : undefined;
    const account = stringAt(annotations, accountName) ?? "";
    if (account === "" || secret["type"] !== type) return undefined;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(name)}`;
    const found = await read("serviceaccounts", namespace, account);
    const uid = stringAt(found, "metadata", "uid") ?? "";
    const bound = stringAt(annotations, accountUid) ?? "";
    try {
      if (!found || (bound !== "" && bound !== uid)) {
        await call(transport, "DELETE", path, {
          kind: "DeleteOptions",
          apiVersion: "v1",
          preconditions: { uid: entry.uid },
        });
        return undefined;
      }
      const data = isObject(secret["data"]) ? secret["data"] : {};
      if (bound === uid && data["token"] !== undefined && data["namespace"] !== undefined) return undefined;
      const encode = (value: string): string => Buffer.from(value).toString("base64");
      const token = await tokens.issueForSecret({ namespace, name: account, uid }, name);
      await call(transport, "PATCH", path, {
        metadata: { resourceVersion: String(entry.revision), annotations: { [accountUid]: uid } },
        data: {
          token: encode(token),
          namespace: encode(namespace),
          ...(authority === "" ? {} : { "ca.crt": encode(authority) }),
        },
      });
    } catch (error) {
      if (!failedWith(error, 404)) throw error;
    }
    return undefined;
  }
}
