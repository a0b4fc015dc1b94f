/**
 * Media types: what a client offers, what it accepts, and which answer form follows.
 *
 * Parsing is lenient, as clients are: an entry that can't be read is passed over. The first acceptable entry of an
 * `Accept` list wins; quality values are ignored, as in the upstream server.
 */
import { notAcceptable, badRequest } from "../status/status.ts";

/** A parsed media type. */
export interface MediaType {
  /** Lower case, without parameters: `application/json`. */
  readonly type: string;
  /** Names in lower case. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Greatest number of entries of an `Accept` header that are looked at. */
const maxEntries = 32;

/** Reads one media type with its parameters. */
export function parseMediaType(text: string): MediaType {
  const [type = "", ...rest] = text.split(";");
  const parameters: Record<string, string> = Object.create(null);
  for (const part of rest) {
    const [name = "", value = ""] = part.split("=", 2);
    parameters[name.trim().toLowerCase()] = value.trim().replace(/^"(.*)"$/, "$1");
  }
  return { type: type.trim().toLowerCase(), parameters };
}

/** Encodings of single objects and lists. */
export type Encoding = "json" | "yaml" | "protobuf";

/** The shape of the answer: the object itself, a table, or its metadata only. */
export type Shape = "object" | "table" | "metadata";

/** Version of `meta.k8s.io` that a table or partial metadata says of itself; the texts of both are the same. */
export type MetaVersion = "v1" | "v1beta1";

/** How an answer is to be encoded. */
export interface Negotiated {
  readonly encoding: Encoding;
  readonly shape: Shape;
  /** Only of meaning for tables and partial metadata. */
  readonly metaVersion: MetaVersion;
}

const encodings: Readonly<Record<string, Encoding>> = {
  "application/json": "json",
  "application/yaml": "yaml",
  "application/vnd.kubernetes.protobuf": "protobuf",
  "*/*": "json",
  "application/*": "json",
};

/** Media types of answers, by encoding. */
export const contentTypes: Readonly<Record<Encoding, string>> = {
  json: "application/json",
  yaml: "application/yaml",
  protobuf: "application/vnd.kubernetes.protobuf",
};

const plainJson: Negotiated = { encoding: "json", shape: "object", metaVersion: "v1" };

const isMetaVersion = (text: string | undefined): text is MetaVersion => text === "v1" || text === "v1beta1";

function shapeOf(parameters: MediaType["parameters"], list: boolean): Shape | undefined {
  const as = parameters["as"];
  if (as === undefined) return "object";
  if (parameters["g"] !== "meta.k8s.io" || !isMetaVersion(parameters["v"])) return undefined;
  if (as === "Table") return "table";
  return as === (list ? "PartialObjectMetadataList" : "PartialObjectMetadata") ? "metadata" : undefined;
}

/** What can be answered. */
export interface Offered {
  /** A list (not one object or a watch) is asked for. */
  readonly list: boolean;
  /** The kind has a protobuf form. */
  readonly protobuf: boolean;
  readonly yaml: boolean;
  /** The object has no metadata (reviews), so that only it itself can be shown. Default false. */
  readonly plain?: boolean;
}

/** Chooses the answer's form. Fails with 406. */
export function negotiate(accept: string | undefined, offered: Offered): Negotiated {
  if (accept === undefined || accept === "" || accept === "application/json" || accept === "*/*")
    return plainJson;
  for (const entry of accept.split(",", maxEntries)) {
    const { type, parameters } = parseMediaType(entry);
    const encoding = encodings[type];
    if (!encoding) continue;
    if (encoding === "yaml" && !offered.yaml) continue;
    const shape = shapeOf(parameters, offered.list);
    if (shape === undefined || (offered.plain === true && shape !== "object")) continue;
    // Every kind's metadata has a protobuf form, tables have none.
    const hasProtobuf = shape === "metadata" || (shape === "object" && offered.protobuf);
    if (encoding === "protobuf" && !hasProtobuf) continue;
    const version = parameters["v"];
    return { encoding, shape, metaVersion: shape !== "object" && isMetaVersion(version) ? version : "v1" };
  }
  throw notAcceptable([
    "application/json",
    ...(offered.yaml ? ["application/yaml"] : []),
    ...(offered.protobuf ? ["application/vnd.kubernetes.protobuf"] : []),
  ]);
}

/** What a table's rows carry. */
export type IncludeObject = "None" | "Metadata" | "Object";

/** Reads `includeObject`; absent means `Metadata`. Fails with 400. */
export function parseIncludeObject(value: string | undefined): IncludeObject {
  if (value === undefined || value === "") return "Metadata";
  if (value === "None" || value === "Metadata" || value === "Object") return value;
  throw badRequest(`unrecognized includeObject value: ${JSON.stringify(value)}`);
}
