/**
 * The secrets of one cluster, in Talos' own two forms: `secrets.yaml` as `talosctl gen secrets`
 * writes it, and the JSON of its Go type, which is what is stored.
 *
 * A bundle made by the official tool loads here and ours loads there. Everything a cluster's nodes
 * and its administrators are ever given is derived from it, so it is made once and never again. A
 * loaded bundle is complete and its keys fit its certificates; otherwise loading fails, naming the
 * member and never its value.
 */
import { at, CodedError, isObject, stringAt, type Edges } from "@kontinuum/std";
import { stringify } from "yaml";
import { parseYamlStream } from "../config/config-document.ts";
import { parseVersionContract } from "../config/version-contract.ts";
import { generateAuthority, isPair, type CertificateAndKey } from "./certificates.ts";
import { generateKey } from "./keys.ts";
import { parsePrivateKey, talosKeyPem } from "./pem.ts";

/** A cluster's secrets. Certificates and keys are PEM texts. */
export interface SecretsBundle {
  readonly cluster: { readonly id: string; readonly secret: string };
  readonly secrets: {
    readonly bootstrapToken: string;
    /** Exactly one of the two: secretbox since Talos 1.3, AES-CBC before. */
    readonly secretboxEncryptionSecret?: string;
    readonly aescbcEncryptionSecret?: string;
  };
  readonly trustdInfo: { readonly token: string };
  readonly certs: {
    readonly etcd: CertificateAndKey;
    readonly k8s: CertificateAndKey;
    readonly k8sAggregator: CertificateAndKey;
    readonly k8sServiceAccount: { readonly key: string };
    readonly os: CertificateAndKey;
  };
}

/** A new bundle for the version contract of this Talos release (`v1.13` or `v1.13.0`). */
export async function generateSecretsBundle(options: {
  readonly talosVersion: string;
  readonly edges: Pick<Edges, "clock" | "random">;
}): Promise<SecretsBundle> {
  const { edges } = options;
  const { random } = edges;
  const contract = parseVersionContract(options.talosVersion);
  const secret = (): string => Buffer.from(random.bytes(32)).toString("base64");
  const [os, etcd, k8s, k8sAggregator, serviceAccount] = await Promise.all([
    generateAuthority({ organization: "talos", algorithm: "ed25519", edges }),
    generateAuthority({ organization: "etcd", algorithm: "p256", edges }),
    generateAuthority({ organization: "kubernetes", algorithm: "p256", edges }),
    generateAuthority({ algorithm: "p256", edges }),
    generateKey(contract.minor >= 7 ? "rsa4096" : "p256"),
  ]);
  return {
    cluster: {
      id: Buffer.from(random.bytes(32)).toString("base64").replaceAll("+", "-").replaceAll("/", "_"),
      secret: secret(),
    },
    secrets: {
      bootstrapToken: token(edges),
      ...(contract.minor >= 3
        ? { secretboxEncryptionSecret: secret() }
        : { aescbcEncryptionSecret: secret() }),
    },
    trustdInfo: { token: token(edges) },
    certs: { etcd, k8s, k8sAggregator, k8sServiceAccount: { key: talosKeyPem(serviceAccount) }, os },
  };
}

const tokenAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";

function token({ random }: Pick<Edges, "random">): string {
  const letters = (count: number): string =>
    Array.from({ length: count }, () => tokenAlphabet[random.integer(tokenAlphabet.length)]).join("");
  return `${letters(6)}.${letters(16)}`;
}

/** Names of the members in the two forms. */
interface FormNames {
  readonly cluster: readonly [string, string, string];
  readonly secrets: readonly [string, string, string, string];
  readonly trustd: readonly [string, string];
  readonly certs: string;
  readonly pairs: Readonly<Record<"etcd" | "k8s" | "k8sAggregator" | "k8sServiceAccount" | "os", string>>;
  readonly crt: string;
  readonly key: string;
}

const forms: Readonly<Record<"json" | "yaml", FormNames>> = {
  json: {
    cluster: ["Cluster", "Id", "Secret"],
    secrets: ["Secrets", "BootstrapToken", "AESCBCEncryptionSecret", "SecretboxEncryptionSecret"],
    trustd: ["TrustdInfo", "Token"],
    certs: "Certs",
    pairs: {
      etcd: "Etcd",
      k8s: "K8s",
      k8sAggregator: "K8sAggregator",
      k8sServiceAccount: "K8sServiceAccount",
      os: "OS",
    },
    crt: "Crt",
    key: "Key",
  },
  yaml: {
    cluster: ["cluster", "id", "secret"],
    secrets: ["secrets", "bootstraptoken", "aescbcencryptionsecret", "secretboxencryptionsecret"],
    trustd: ["trustdinfo", "token"],
    certs: "certs",
    pairs: {
      etcd: "etcd",
      k8s: "k8s",
      k8sAggregator: "k8saggregator",
      k8sServiceAccount: "k8sserviceaccount",
      os: "os",
    },
    crt: "crt",
    key: "key",
  },
};

/** The bundle as text: `json` (stored, the default) or `yaml` (`secrets.yaml`). */
export function serializeSecretsBundle(bundle: SecretsBundle, form: "json" | "yaml" = "json"): string {
  const names = forms[form];
  const base64 = (pem: string): string => Buffer.from(pem, "utf8").toString("base64");
  const pair = ({ crt, key }: CertificateAndKey) => ({ [names.crt]: base64(crt), [names.key]: base64(key) });
  const { certs, secrets } = bundle;
  const [clusterName, idName, secretName] = names.cluster;
  const [secretsName, bootstrapName, aescbcName, secretboxName] = names.secrets;
  const [trustdName, tokenName] = names.trustd;
  const value = {
    [clusterName]: { [idName]: bundle.cluster.id, [secretName]: bundle.cluster.secret },
    [secretsName]: {
      [bootstrapName]: secrets.bootstrapToken,
      ...(secrets.aescbcEncryptionSecret ? { [aescbcName]: secrets.aescbcEncryptionSecret } : {}),
      ...(secrets.secretboxEncryptionSecret ? { [secretboxName]: secrets.secretboxEncryptionSecret } : {}),
    },
    [trustdName]: { [tokenName]: bundle.trustdInfo.token },
    [names.certs]: {
      [names.pairs.etcd]: pair(certs.etcd),
      [names.pairs.k8s]: pair(certs.k8s),
      [names.pairs.k8sAggregator]: pair(certs.k8sAggregator),
      [names.pairs.k8sServiceAccount]: { [names.key]: base64(certs.k8sServiceAccount.key) },
      [names.pairs.os]: pair(certs.os),
    },
  };
  return form === "json" ? JSON.stringify(value) : stringify(value, { indent: 4, lineWidth: 0 });
}

/** Largest bundle text that is read, in characters. */
const bundleMax = 256 * 1024;

/** A bundle in either form. Fails with `invalid_argument` naming the member that is missing or wrong. */
export function parseSecretsBundle(text: string): SecretsBundle {
  if (text.length > bundleMax) throw wrong("exceeds 256 KiB");
  const [value] = parseYamlStream(text, "the secrets bundle");
  if (!isObject(value)) throw wrong("is not a mapping");
  return read(value, "Cluster" in value || "Certs" in value ? forms.json : forms.yaml);
}

function read(value: unknown, names: FormNames): SecretsBundle {
  const text = (...path: readonly string[]): string => {
    const found = stringAt(value, ...path);
    if (!found) throw wrong(`lacks ${path.join(".")}`);
    return found;
  };
  const pem = (...path: readonly string[]): string => Buffer.from(text(...path), "base64").toString("utf8");
  const pair = (member: keyof FormNames["pairs"]): CertificateAndKey => {
    const path = [names.certs, names.pairs[member]];
    const found = { crt: pem(...path, names.crt), key: pem(...path, names.key) };
    if (!isPair(found, `${path.join(".")} of the secrets bundle`)) {
      throw wrong(`has a key in ${path.join(".")} that does not fit its certificate`);
    }
    return found;
  };
  const [secretsName, bootstrapName, aescbcName, secretboxName] = names.secrets;
  const aescbc = stringAt(value, secretsName, aescbcName);
  const secretbox = stringAt(value, secretsName, secretboxName);
  if (!aescbc === !secretbox) {
    throw wrong(`needs exactly one of ${secretsName}.${secretboxName} and ${secretsName}.${aescbcName}`);
  }
  const serviceAccountPath = [names.certs, names.pairs.k8sServiceAccount, names.key];
  const serviceAccountKey = pem(...serviceAccountPath);
  parsePrivateKey(serviceAccountKey, `${serviceAccountPath.join(".")} of the secrets bundle`);
  if (!isObject(at(value, names.certs))) throw wrong(`lacks ${names.certs}`);
  return {
    cluster: {
      id: text(names.cluster[0], names.cluster[1]),
      secret: text(names.cluster[0], names.cluster[2]),
    },
    secrets: {
      bootstrapToken: text(secretsName, bootstrapName),
      ...(secretbox ? { secretboxEncryptionSecret: secretbox } : {}),
      ...(aescbc ? { aescbcEncryptionSecret: aescbc } : {}),
    },
    trustdInfo: { token: text(...names.trustd) },
    certs: {
      etcd: pair("etcd"),
      k8s: pair("k8s"),
      k8sAggregator: pair("k8sAggregator"),
      k8sServiceAccount: { key: serviceAccountKey },
      os: pair("os"),
    },
  };
}

function wrong(what: string): CodedError {
  return new CodedError("invalid_argument", `the secrets bundle ${what}`);
}
