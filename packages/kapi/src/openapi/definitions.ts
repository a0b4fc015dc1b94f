/**
 * The published OpenAPI definitions of the stable groups (third_party/kubernetes/facts/definitions.json), in
 * the form OpenAPI v3 documents use: references wrapped in `allOf`, the two types that are a number or a
 * string said as `oneOf`.
 *
 * The file is large and seldom wanted, so it is read when a document is built and released a while after.
 */
import { CodedError, isCoded, isObject, type JsonObject } from "@kontinuum/std";
import { enumValues, message, readTable, type Field, type Message, type Scalar } from "../codec/messages.ts";
import { specialMessages } from "../codec/special.ts";
import { publishedEnums } from "./published-enums.ts";

interface DefinitionsFile {
  readonly definitions: Readonly<Record<string, JsonObject>>;
}

/** Weakly held: one burst of documents shares it, an idle server does not keep it. */
let held: WeakRef<DefinitionsFile> | undefined;

function file(): DefinitionsFile {
  const known = held?.deref();
  if (known !== undefined) return known;
  const read = readTable<DefinitionsFile>("../facts/definitions.json");
  held = new WeakRef(read);
  return read;
}

/** Where OpenAPI v3 documents keep their schemas. */
export const schemaPrefix = "#/components/schemas/";
const v2Prefix = "#/definitions/";

/** A name of the common meta types, e.g. `meta("Status")`. */
export const meta = (kind: string): string => `io.k8s.apimachinery.pkg.apis.meta.v1.${kind}`;

/** A reference as v3 documents write it. */
export const reference = (name: string): JsonObject => ({ $ref: `${schemaPrefix}${name}` });

const quantityName = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const intOrStringName = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/** Types of the documents that are no message. */
const extra: Readonly<Record<string, JsonObject>> = {
  [meta("Patch")]: {
    description: "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.",
    type: "object",
  },
};

/** The v3 schema of a published type, or `undefined` when there is none of that name. */
function definition(name: string): JsonObject | undefined {
  if (Object.hasOwn(extra, name)) return extra[name];
  const { definitions } = file();
  const found = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  if (found === undefined) return undefined;
  const { type: _type, format: _format, ...described } = found;
  if (name === quantityName) return { ...described, oneOf: [{ type: "string" }, { type: "number" }] };
  if (name === intOrStringName) {
    return { ...described, format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] };
  }
  return annotate(name, convert(found));
}

/** The message of a definition, when there is one. */
function messageIfKnown(name: string): Message | undefined {
  try {
    return message(name);
  } catch (error) {
    if (isCoded(error, "internal")) return undefined;
    throw error;
  }
}

const zeros: Readonly<Partial<Record<Scalar, unknown>>> = {
  string: "",
  bool: false,
  int32: 0,
  int64: 0,
  double: 0,
};

/**
 * Adds to the properties of a type what its Go fields say: the values an enumeration has, and the value of a field that
 * is never absent.
 */
function annotate(name: string, schema: JsonObject): JsonObject {
  const type = messageIfKnown(name.replace(/^io\.k8s\./, ""));
  const { properties } = schema;
  if (type === undefined || !isObject(properties)) return schema;
  for (const [key, property] of Object.entries(properties)) {
    const field = type.byJson.get(key);
    if (field === undefined || !isObject(property)) continue;
    annotateProperty(field, property);
    // Ports are listed by number and protocol, which need not be said.
    if (key === "protocol" && /\.(ContainerPort|ServicePort)$/.test(name)) property.default = "TCP";
  }
  return schema;
}

function annotateProperty(field: Field, property: JsonObject): void {
  const inner =
    field.shape === "list"
      ? property.items
      : field.shape === "map"
        ? property.additionalProperties
        : property;
  if (!isObject(inner)) return;
  const isAlwaysThere = field.shape !== "single" || !field.pointer;
  if ("message" in field.value) {
    if (isAlwaysThere && !specialMessages.has(field.value.message.name) && inner.allOf !== undefined)
      inner.default = {};
    else delete inner.default;
    return;
  }
  const zero = zeros[field.value.scalar];
  if (zero !== undefined && isAlwaysThere && (field.shape !== "single" || !field.omitEmpty))
    inner.default ??= zero;
  const { enum: listed } = field.merge;
  const values = listed !== undefined && publishedEnums.has(listed) ? enumValues(listed) : undefined;
  if (values !== undefined) inner.enum ??= values.toSorted();
}

function convert(schema: JsonObject): JsonObject {
  const made: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "$ref" && typeof value === "string") {
      const name = value.slice(v2Prefix.length);
      const struct = name !== quantityName && name !== intOrStringName && !/\.(Micro)?Time$/.test(name);
      made.allOf = [reference(name)];
      if (struct) made.default = {};
    } else if (key === "properties" && isObject(value)) {
      made.properties = Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [name, isObject(inner) ? convert(inner) : inner]),
      );
    } else if ((key === "items" || key === "additionalProperties") && isObject(value))
      made[key] = convert(value);
    else made[key] = value;
  }
  return made;
}

/** Calls back for every schema name that a schema refers to. */
export function eachReference(value: unknown, call: (name: string) => void): void {
  if (Array.isArray(value)) for (const item of value) eachReference(item, call);
  else if (isObject(value)) {
    for (const [key, inner] of Object.entries(value)) {
      if (key === "$ref" && typeof inner === "string" && inner.startsWith(schemaPrefix)) {
        call(inner.slice(schemaPrefix.length));
      } else eachReference(inner, call);
    }
  }
}

/** Adds to a set of schemas every published type it refers to, directly or not. Throws on a dangling name. */
export function close(
  schemas: Record<string, JsonObject>,
  names: readonly string[] = [],
): Record<string, JsonObject> {
  const wanted = [...names];
  for (const schema of Object.values(schemas)) eachReference(schema, (name) => wanted.push(name));
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    if (Object.hasOwn(schemas, name)) continue;
    const found = definition(name);
    if (found === undefined) throw new CodedError("internal", `no OpenAPI definition is named ${name}`);
    schemas[name] = found;
    eachReference(found, (inner) => wanted.push(inner));
  }
  return schemas;
}
