/**
 * Rules of ConfigMaps, Secrets, ServiceAccounts and Namespaces.
 */
import type { JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { forbidden, invalid, required, tooLong } from "../../schema/field-error.ts";
import { child, ensure, entries, has, isTrue, setDefaults, text, texts } from "../read.ts";
import { configKeyErrors, immutable, type Errors } from "./checks.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

/** Most bytes of all values of a ConfigMap or Secret. */
const maxDataBytes = 1024 * 1024;
function checkKeys(data: readonly [string, unknown][], path: string, errors: Errors): void {
  for (const [key] of data)
    for (const why of configKeyErrors(key)) errors.push(invalid(`${path}[${key}]`, key, why));
}

const base64Bytes = (value: unknown): number =>
  typeof value === "string" ? Buffer.byteLength(value, "base64") : 0;

/** An immutable object stays immutable and keeps its data. */
function checkImmutable(object: JsonObject, old: JsonObject, keys: readonly string[]): FieldError[] {
  if (!isTrue(old, "immutable")) return [];
  const errors: FieldError[] = [];
  if (!isTrue(object, "immutable"))
    errors.push(forbidden("immutable", "field is immutable when `immutable` is set"));
  for (const key of keys) {
    if (!equalJson(object[key] ?? {}, old[key] ?? {})) {
      errors.push(forbidden(key, "field is immutable when `immutable` is set"));
    }
  }
  return errors;
}

const configMap: KindRules = {
  validate(object) {
    const errors: FieldError[] = [];
    const data = entries(object, "data");
    const binary = entries(object, "binaryData");
    checkKeys(data, "data", errors);
    checkKeys(binary, "binaryData", errors);
    const names = new Set(binary.map(([key]) => key));
    for (const [key] of data) {
      if (names.has(key)) errors.push(invalid(`data[${key}]`, key, "duplicate of key present in binaryData"));
    }
    const size =
      data.reduce((sum, [, value]) => sum + Buffer.byteLength(String(value)), 0) +
      binary.reduce((sum, [, value]) => sum + base64Bytes(value), 0);
    if (size > maxDataBytes) errors.push(tooLong("", maxDataBytes));
    return errors;
  },
  validateUpdate: (object, old) => checkImmutable(object, old, ["data", "binaryData"]),
};

/** Keys that a Secret of a type must have. */
const neededKeys: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
};

function isJson(base64: unknown): boolean {
  try {
    JSON.parse(Buffer.from(typeof base64 === "string" ? base64 : "", "base64").toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

function checkSecretType(object: JsonObject, errors: Errors): void {
  const type = text(object, "type");
  const data = child(object, "data") ?? {};
  for (const key of neededKeys[type] ?? []) {
    if (!Object.hasOwn(data, key)) errors.push(required(`data[${key}]`));
    else if (type.startsWith("kubernetes.io/docker") && !isJson(data[key])) {
      errors.push(invalid(`data[${key}]`, "<secret contents redacted>", "invalid character in JSON"));
    }
  }
  if (
    type === "kubernetes.io/basic-auth" &&
    !Object.hasOwn(data, "username") &&
    !Object.hasOwn(data, "password")
  ) {
    errors.push(required("data[username]"), required("data[password]"));
  }
  if (type === "kubernetes.io/service-account-token") {
    const key = "kubernetes.io/service-account.name";
    if (text(object, "metadata", "annotations", key) === "")
      errors.push(required(`metadata.annotations[${key}]`));
  }
}

const secret: KindRules = {
  defaults(object) {
    // The write-only form is folded into the data and never kept.
    const plain = entries(object, "stringData");
    if (plain.length > 0) {
      const data = ensure(object, "data");
      for (const [key, value] of plain) data[key] = Buffer.from(String(value)).toString("base64");
    }
    delete object.stringData;
    setDefaults(object, { type: "Opaque" });
  },
  validate(object) {
    const errors: FieldError[] = [];
    const data = entries(object, "data");
    checkKeys(data, "data", errors);
    if (data.reduce((sum, [, value]) => sum + base64Bytes(value), 0) > maxDataBytes)
      errors.push(tooLong("data", maxDataBytes));
    checkSecretType(object, errors);
    return errors;
  },
  validateUpdate(object, old) {
    const errors = checkImmutable(object, old, ["data"]);
    immutable(object, old, ["type"], equalJson, errors);
    return errors;
  },
};

const kubernetesFinalizer = "kubernetes";

function nameLabel(object: JsonObject): void {
  const name = text(object, "metadata", "name");
  if (name !== "") ensure(ensure(object, "metadata"), "labels")["kubernetes.io/metadata.name"] = name;
}

const namespace: KindRules = {
  defaults: nameLabel,
  prepareCreate(object) {
    nameLabel(object);
    object.status = { phase: "Active" };
    const spec = ensure(object, "spec");
    const finalizers = texts(spec, "finalizers");
    if (!finalizers.includes(kubernetesFinalizer)) spec.finalizers = [...finalizers, kubernetesFinalizer];
  },
  prepareUpdate(object, old) {
    const kept = child(old, "spec");
    if (kept !== undefined) object.spec = cloneJson(kept);
  },
  prepareSubresource(object, old, { subresource }) {
    if (subresource !== "finalize") return;
    object.status = cloneJson(old.status);
  },
  validate(object) {
    const errors: FieldError[] = [];
    const labels = child(object, "metadata", "labels");
    const name = text(object, "metadata", "name");
    const label = labels?.["kubernetes.io/metadata.name"];
    if (label !== undefined && label !== name) {
      errors.push(
        invalid(
          "metadata.labels[kubernetes.io/metadata.name]",
          label,
          "must match the name of the namespace",
        ),
      );
    }
    for (const finalizer of texts(object, "spec", "finalizers")) {
      if (finalizer !== kubernetesFinalizer && !finalizer.includes("/")) {
        errors.push(
          invalid(
            "spec.finalizers",
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
          ),
        );
      }
    }
    return errors;
  },
};

/** Rules of configuration kinds. */
export const configurationRules: RuleTable = {
  "v1/ConfigMap": configMap,
  "v1/Secret": secret,
  "v1/Namespace": namespace,
  "v1/ServiceAccount": {
    warnings: (object) =>
      has(object, "secrets") &&
      text(object, "metadata", "annotations", "kubernetes.io/enforce-mountable-secrets") === "true"
        ? [
            "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
          ]
        : [],
  },
};
