/**
 * A decoded JSON or YAML body of a built-in kind to the object Go would hold: unknown fields taken out and
 * reported, types checked, quantities, times and base64 canonical, null and empty optional fields dropped,
 * fields that Go always prints added.
 *
 * Works in place. After it, an object from JSON and the same object from protobuf are equal.
 */
import { setOwn, stringifyJson } from "../json/json.ts";
import { CodedError, isObject, type JsonObject } from "@kontinuum/std";
import type { Field, Message, Scalar, ValueType } from "../codec/messages.ts";
import { canonicalTime, formatDuration, parseDuration } from "../codec/time.ts";
import { absent, fillAbsent, zeroOf } from "../codec/zero.ts";
import { jsonKind } from "../schema/json-value.ts";
import { canonicalQuantity, quantityError } from "./quantity.ts";

/** Deepest nesting of a body that is accepted. */
const maxDepth = 128;

/**
 * Normalises an object of a message type; returns the paths of the fields that were unknown. Throws
 * `invalid_argument` with the decoder's text when a value has a wrong type.
 */
export function normalize(message: Message, object: JsonObject): string[] {
  const walk = new Walk();
  walk.fields(message, object, true);
  return walk.unknown;
}

class Walk {
  readonly unknown: string[] = [];
  /** Keys and indexes from the root to here. */
  readonly #path: (string | number)[] = [];

  fields(message: Message, object: JsonObject, root = false): void {
    if (this.#path.length > maxDepth) {
      throw new CodedError("invalid_argument", `json: nested deeper than ${maxDepth} levels`);
    }
    for (const key of Object.keys(object)) {
      if ((root || message.typeMeta) && (key === "apiVersion" || key === "kind")) continue;
      const field = message.byJson.get(key);
      if (field === undefined || field.newer) {
        this.#path.push(key);
        this.unknown.push(this.#pathText());
        this.#path.pop();
        delete object[key];
        continue;
      }
      const value = object[key];
      if (value === null) {
        delete object[key];
        continue;
      }
      this.#path.push(key);
      const changed = this.#field(message, field, value);
      this.#path.pop();
      if (changed === undefined) delete object[key];
      else if (changed !== value) object[key] = changed;
    }
    fillAbsent(message, object);
  }

  #field(owner: Message, field: Field, value: unknown): unknown {
    if (field.shape === "list") {
      if (!Array.isArray(value)) throw this.#mismatch(owner, value, `[]${goName(field.value)}`);
      if (value.length === 0 && field.omitEmpty) return undefined;
      for (let index = 0; index < value.length; index++) {
        this.#path.push(index);
        value[index] = this.#value(owner, field.value, value[index] as unknown);
        this.#path.pop();
      }
      return value;
    }
    if (field.shape === "map") {
      if (!isObject(value)) throw this.#mismatch(owner, value, `map[string]${goName(field.value)}`);
      const keys = Object.keys(value);
      if (keys.length === 0 && field.omitEmpty) return undefined;
      for (const key of keys) {
        const item = value[key];
        if (typeof item === "string" && "scalar" in field.value && field.value.scalar === "string") continue;
        this.#path.push(key);
        setOwn(value, key, this.#value(owner, field.value, item));
        this.#path.pop();
      }
      return value;
    }
    const changed = this.#value(owner, field.value, value);
    if (!field.pointer && (changed === "" || changed === 0 || changed === false)) return absent(field);
    return changed === null ? absent(field) : changed;
  }

  /** One value of a field, a list or a map; null stands for the zero value. */
  #value(owner: Message, type: ValueType, value: unknown): unknown {
    if ("scalar" in type) return this.#scalar(owner, type.scalar, value);
    const { message } = type;
    const special = specials.get(message.name);
    if (special !== undefined) return this.#special(owner, special, value);
    if (schemaUnions.has(message.name)) return this.#schemaUnion(owner, message, value);
    if (value === null || value === undefined) return zeroOf(message);
    if (!isObject(value)) throw this.#mismatch(owner, value, goName(type));
    this.fields(message, value);
    return value;
  }

  #scalar(owner: Message, scalar: Scalar, value: unknown): unknown {
    if (value === null || value === undefined) return zeroScalar[scalar];
    switch (scalar) {
      case "string":
        if (typeof value === "string") return value;
        break;
      case "bool":
        if (typeof value === "boolean") return value;
        break;
      case "double":
        if (typeof value === "number" || typeof value === "bigint") return value;
        break;
      case "bytes":
        if (typeof value === "string") return this.#base64(value);
        break;
      case "int32":
        if (typeof value === "number" && (value | 0) === value) return value;
        break;
      case "int64":
        if (typeof value === "number" && Number.isSafeInteger(value)) return value;
        if (typeof value === "bigint" && BigInt.asIntN(64, value) === value) return value;
    }
    const numeric = (typeof value === "number" || typeof value === "bigint") && scalar.startsWith("int");
    throw this.#mismatch(owner, value, scalar === "double" ? "float64" : goScalar[scalar], numeric);
  }

  #base64(value: string): string {
    const bare = value.replaceAll(/[\r\n]/g, "");
    const bad = /[^A-Za-z0-9+/=]|=(?!=?$)/.exec(bare);
    if (bad !== null || bare.length % 4 !== 0) {
      const at = bad?.index ?? bare.length - (bare.length % 4);
      throw new CodedError("invalid_argument", `illegal base64 data at input byte ${at}`);
    }
    return bare;
  }

  #special(owner: Message, special: SpecialKind, value: unknown): unknown {
    switch (special) {
      case "time":
      case "microtime": {
        if (value === null || value === undefined) return null;
        if (typeof value !== "string") throw this.#mismatch(owner, value, "string");
        const canonical = canonicalTime(value, special === "microtime");
        if (canonical === undefined) {
          const layout =
            special === "time" ? "2006-01-02T15:04:05Z07:00" : "2006-01-02T15:04:05.000000Z07:00";
          throw new CodedError(
            "invalid_argument",
            `parsing time ${JSON.stringify(value)} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(value)}`,
          );
        }
        return canonical;
      }
      case "duration": {
        if (value === null || value === undefined) return "0s";
        const parsed = typeof value === "string" ? parseDuration(value) : undefined;
        if (parsed === undefined) {
          throw new CodedError("invalid_argument", `time: invalid duration ${stringifyJson(value)}`);
        }
        return formatDuration(parsed);
      }
      case "quantity": {
        if (value === null || value === undefined) return "0";
        const canonical = canonicalQuantity(value);
        if (canonical === undefined) throw new CodedError("invalid_argument", quantityError);
        return canonical;
      }
      case "intOrString":
        if (value === null || value === undefined) return 0;
        if (typeof value === "string" || (typeof value === "number" && (value | 0) === value)) return value;
        throw this.#mismatch(owner, value, "int32", typeof value === "number");
      case "strings":
        if (value === null || value === undefined) return null;
        if (!Array.isArray(value) || value.some((item) => typeof item !== "string" && item !== null)) {
          throw this.#mismatch(owner, value, "[]string");
        }
        return value.map((item: unknown) => item ?? "");
      case "any":
        return value ?? null;
    }
  }

  /** JSONSchemaPropsOrBool, -OrArray, -OrStringArray. */
  #schemaUnion(owner: Message, message: Message, value: unknown): unknown {
    const schema = message.fields.find((field) => field.json === "schema" || field.json === "Schema")?.value;
    if (isObject(value) && schema !== undefined && "message" in schema) {
      this.fields(schema.message, value);
      return value;
    }
    if (Array.isArray(value) && schema !== undefined && !message.name.endsWith("OrBool")) {
      const item: ValueType = message.name.endsWith("OrStringArray") ? { scalar: "string" } : schema;
      for (let index = 0; index < value.length; index++) {
        this.#path.push(index);
        value[index] = this.#value(owner, item, value[index] as unknown);
        this.#path.pop();
      }
      return value;
    }
    if (typeof value === "boolean" && message.name.endsWith("OrBool")) return value;
    throw new CodedError(
      "invalid_argument",
      message.name.endsWith("OrBool") ? "boolean or JSON schema expected" : "array or JSON schema expected",
    );
  }

  #pathText(): string {
    let text = "";
    for (const part of this.#path) {
      text += typeof part === "number" ? `[${part}]` : text === "" ? part : `.${part}`;
    }
    return text;
  }

  #mismatch(owner: Message, value: unknown, goType: string, number = false): CodedError {
    const dotted = this.#path.filter((part) => typeof part === "string").join(".");
    const found = number ? `number ${String(value)}` : jsonKind(value);
    return new CodedError(
      "invalid_argument",
      `json: cannot unmarshal ${found} into Go struct field ${lastName(owner.name)}.${dotted} of type ${goType}`,
    );
  }
}

const lastName = (name: string): string => name.slice(name.lastIndexOf(".") + 1);
const goScalar: Readonly<Record<Scalar, string>> = {
  string: "string",
  bool: "bool",
  int32: "int32",
  int64: "int64",
  double: "float64",
  bytes: "[]uint8",
};
const zeroScalar: Readonly<Record<Scalar, unknown>> = {
  string: "",
  bool: false,
  int32: 0,
  int64: 0,
  double: 0,
  bytes: "",
};

/** `v1.PodSpec` for a message, Go's name for a scalar. */
function goName(type: ValueType): string {
  if ("scalar" in type) return goScalar[type.scalar];
  const [kind = "", version = ""] = type.message.name.split(".").reverse();
  return `${version}.${kind}`;
}

type SpecialKind = "time" | "microtime" | "duration" | "quantity" | "intOrString" | "strings" | "any";
const specials: ReadonlyMap<string, SpecialKind> = new Map<string, SpecialKind>([
  ["apimachinery.pkg.apis.meta.v1.Time", "time"],
  ["apimachinery.pkg.apis.meta.v1.MicroTime", "microtime"],
  ["apimachinery.pkg.apis.meta.v1.Duration", "duration"],
  ["apimachinery.pkg.api.resource.Quantity", "quantity"],
  ["apimachinery.pkg.api.resource.QuantityValue", "quantity"],
  ["apimachinery.pkg.util.intstr.IntOrString", "intOrString"],
  ["apimachinery.pkg.apis.meta.v1.Verbs", "strings"],
  ["api.authentication.v1.ExtraValue", "strings"],
  ["api.authorization.v1.ExtraValue", "strings"],
  ["api.certificates.v1.ExtraValue", "strings"],
  ["apimachinery.pkg.apis.meta.v1.FieldsV1", "any"],
  ["apimachinery.pkg.runtime.RawExtension", "any"],
  ["apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "any"],
]);
const schemaUnions: ReadonlySet<string> = new Set(
  ["Bool", "Array", "StringArray"].map(
    (suffix) => `apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOr${suffix}`,
  ),
);
