/**
 * A machine configuration as what it is on the wire: a stream of YAML documents.
 *
 * One document without `apiVersion` and `kind` is the main one (`v1alpha1`); the others carry both,
 * and mostly a name. Reading is bounded before it works and keeps what Go's YAML reads differently
 * (octal file modes); writing gives the layout Talos itself writes, with every long line whole.
 */
import { CodedError, isObject, messageOf, type JsonObject } from "@kontinuum/std";
import { parseAllDocuments, stringify, type ScalarTag } from "yaml";

/** One YAML document of a configuration or of a patch. */
export type ConfigDocument = JsonObject;

/** Largest configuration text, in characters: well above any real one, below the API's 32 MiB. */
export const configTextMax = 4 * 1024 * 1024;
/** Most documents in one configuration. */
export const documentsMax = 1_000;
/** Most times an alias may be expanded. */
const aliasMax = 100;

/** Go reads `0644` as octal; YAML 1.2 would read it as decimal and change a file's mode. */
const goOctal: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^0[0-7]+$/,
  resolve: (text) => Number.parseInt(text, 8),
};

/** All values of a YAML stream, empty documents left out. Fails with `invalid_argument`. */
export function parseYamlStream(text: string, what: string): unknown[] {
  if (text.length > configTextMax) throw invalid(`${what} exceeds ${configTextMax} characters`);
  const documents = parseAllDocuments(text, {
    merge: true,
    customTags: (tags) => [goOctal, ...tags],
    prettyErrors: false,
  });
  const values: unknown[] = [];
  for (const document of documents) {
    const [error] = document.errors;
    // The message without the source line: the line may hold a key.
    if (error) throw invalid(`${what} is not YAML: ${error.code} at character ${error.pos[0]}`);
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: aliasMax });
    } catch (cause) {
      throw invalid(`${what} is not usable YAML: ${messageOf(cause)}`);
    }
    if (value !== null && value !== undefined) values.push(value);
    if (values.length > documentsMax) throw invalid(`${what} holds more than ${documentsMax} documents`);
  }
  return values;
}

/** The documents of a configuration text. Fails with `invalid_argument` when one is no mapping. */
export function parseConfigDocuments(text: string): ConfigDocument[] {
  return parseYamlStream(text, "the machine configuration").map((value, index) => {
    if (!isObject(value)) throw invalid(`document ${index + 1} of the machine configuration is no mapping`);
    return value;
  });
}

/** The documents as text. */
export function serializeConfigDocuments(documents: readonly ConfigDocument[]): string {
  return documents
    .map((document) => stringify(document, { indent: 4, lineWidth: 0, aliasDuplicateObjects: false }))
    .join("---\n");
}

/** Whether a document is the main one. */
export function isMainDocument(document: ConfigDocument): boolean {
  return !("apiVersion" in document) && !("kind" in document);
}

/** What makes a document the same as another: API version, kind and name, or `v1alpha1`. */
export function documentId(document: ConfigDocument): string {
  if (isMainDocument(document)) return "v1alpha1";
  const { apiVersion, kind, name } = document;
  const id = `${String(apiVersion)}/${String(kind)}`;
  return name === undefined ? id : `${id} ${String(name)}`;
}

function invalid(message: string): CodedError {
  return new CodedError("invalid_argument", message);
}
