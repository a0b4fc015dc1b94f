/**
 * A machine configuration as what it is on the wire: a stream of YAML documents.
 *
 * One document without `apiVersion` and `kind` is the main one (`v1alpha1`); the others carry both,
 * and mostly a name. Reading is bounded before it works and keeps what Go's YAML reads differently
 * (octal file modes); writing gives the layout Talos itself writes, with every long line whole.
 */
import { CodedError, isObject, messageOf, type JsonObject } from "@kontinuum/std";
import { isScalar, parseAllDocuments, stringify, visit, type Document, type ScalarTag } from "yaml";

/** One YAML document of a configuration or of a patch. */
export type ConfigDocument = JsonObject;

/** Largest configuration text, in characters: well above any real one, below the API's 32 MiB. */
const configTextMax = 4 * 1024 * 1024;
/** Most documents in one configuration. */
const documentsMax = 1_000;
/** Most line ends, commas and brackets: what bounds the number of values before any is made. */
const structureMax = 50_000;
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
  if (structureOf(text) > structureMax)
    throw invalid(`${what} holds more than ${structureMax} lines and items`);
  try {
    return parseDocuments(text, what);
  } catch (error) {
    if (error instanceof RangeError) throw invalid(`${what} nests too deeply`);
    throw error;
  }
}

function parseDocuments(text: string, what: string): unknown[] {
  const documents = parseAllDocuments(text, {
    merge: true,
    customTags: (tags) => [goOctal, ...tags],
    prettyErrors: false,
    // The library compares every key with every other one; `doubledKey` does it in one pass.
    uniqueKeys: false,
  });
  const values: unknown[] = [];
  for (const document of documents) {
    const [error] = document.errors;
    // The message without the source line: the line may hold a key.
    if (error) throw invalid(`${what} is not YAML: ${error.code} at character ${error.pos[0]}`);
    const doubled = doubledKey(document);
    if (doubled !== undefined)
      throw invalid(`${what} has the key ${JSON.stringify(doubled)} twice in one mapping`);
    const value = valueOf(document, what);
    if (value !== null && value !== undefined) values.push(value);
    if (values.length > documentsMax) throw invalid(`${what} holds more than ${documentsMax} documents`);
  }
  return values;
}

function valueOf(document: Document.Parsed, what: string): unknown {
  try {
    return document.toJS({ maxAliasCount: aliasMax });
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw invalid(`${what} is not usable YAML: ${messageOf(error)}`);
  }
}

function structureOf(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // Line end, comma, [, {: each begins at most one value.
    if (code === 0x0a || code === 0x2c || code === 0x5b || code === 0x7b) count++;
  }
  return count;
}

/** A key that a mapping of the document has twice, or `undefined`. */
function doubledKey(document: Document.Parsed): string | undefined {
  let doubled: string | undefined;
  visit(document, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const name = isScalar(key) ? String(key.value) : undefined;
        if (name === undefined || name === "<<") continue;
        if (seen.has(name)) {
          doubled = name.slice(0, 128);
          return visit.BREAK;
        }
        seen.add(name);
      }
      return undefined;
    },
  });
  return doubled;
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
