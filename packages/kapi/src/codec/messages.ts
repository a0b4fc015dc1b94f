/**
 * The published types of the Kubernetes API as one table: every message, its fields, and what each field
 * is on the wire, in JSON and in a merge.
 *
 * Everything that must know the shape of a built-in kind (protobuf, pruning, patches, OpenAPI) reads this
 * table; nothing else describes a type. Names are the published OpenAPI names without `io.k8s.`. The data
 * is read once, on first use; messages are resolved one by one when asked for.
 */
import { readFileSync } from "node:fs";
import { CodedError } from "@kontinuum/std";

/** Where the generated tables lie. */
export const tablesFolder = new URL("../../../../third_party/kubernetes/tables/", import.meta.url);

/** Protobuf scalar types that occur in the Kubernetes API. */
export type Scalar = "string" | "bool" | "int32" | "int64" | "double" | "bytes";

/** What a field, a list item or a map value is. */
export type ValueType = { readonly scalar: Scalar } | { readonly message: Message };

/** Merge facts of a field (struct tags and markers of the published Go types). */
interface MergeFacts {
  readonly enum?: string;
  readonly list?: "atomic" | "set" | "map";
  readonly keys?: readonly string[];
  readonly map?: "atomic" | "granular";
  readonly patch?: readonly ("merge" | "replace" | "retainKeys")[];
  readonly patchKey?: string;
}

/** One field of a message. */
export interface Field {
  /** JSON key; `null` when the field's own fields appear in the parent, or it has no JSON form. */
  readonly json: string | null;
  readonly number: number;
  readonly value: ValueType;
  readonly shape: "single" | "list" | "map";
  /** Absence differs from the zero value. */
  readonly pointer: boolean;
  /** Zero values are left out of JSON. */
  readonly omitEmpty: boolean;
  /** A zero message is left out of JSON. */
  readonly omitZero: boolean;
  readonly inline: boolean;
  /** Came after the release that is served: decoded and encoded, but unknown to clients. */
  readonly newer: boolean;
  /** Required by the published schema. */
  readonly required: boolean;
  readonly merge: MergeFacts;
}

/** One message type. */
export interface Message {
  /** OpenAPI name without `io.k8s.`. */
  readonly name: string;
  /** Merged as one value. */
  readonly atomic: boolean;
  /** Objects of this type may say their own `apiVersion` and `kind`. */
  readonly typeMeta: boolean;
  /** In ascending field number. */
  readonly fields: readonly Field[];
  readonly byNumber: ReadonlyMap<number, Field>;
  /** By JSON key, fields of inlined messages included. */
  readonly byJson: ReadonlyMap<string, Field>;
}

type FieldRow = readonly [string | null, number, string, string, MergeFacts?];
interface MessageRow {
  readonly atomic?: boolean;
  readonly typeMeta?: boolean;
  readonly fields: readonly FieldRow[];
}
interface MessageTable {
  readonly messages: Readonly<Record<string, MessageRow>>;
  readonly enums: Readonly<Record<string, readonly string[]>>;
}

/** Reads one of our own generated tables; its shape is the generator's promise, checked by a test. */
export function readTable<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, tablesFolder), "utf8")) as T;
}

let loaded: MessageTable | undefined;
const table = (): MessageTable => (loaded ??= readTable<MessageTable>("messages.json"));

const scalars: ReadonlySet<string> = new Set(["string", "bool", "int32", "int64", "double", "bytes"]);
const isScalar = (name: string): name is Scalar => scalars.has(name);

class TableMessage implements Message {
  readonly name: string;
  readonly atomic: boolean;
  readonly typeMeta: boolean;
  readonly #rows: readonly FieldRow[];
  #fields: readonly Field[] | undefined;
  #byNumber: ReadonlyMap<number, Field> | undefined;
  #byJson: ReadonlyMap<string, Field> | undefined;

  constructor(name: string, row: MessageRow) {
    this.name = name;
    this.atomic = row.atomic === true;
    this.typeMeta = row.typeMeta === true;
    this.#rows = row.fields;
  }

  get fields(): readonly Field[] {
    return (this.#fields ??= this.#rows.map(fieldOf).toSorted((a, b) => a.number - b.number));
  }

  get byNumber(): ReadonlyMap<number, Field> {
    return (this.#byNumber ??= new Map(this.fields.map((field) => [field.number, field])));
  }

  get byJson(): ReadonlyMap<string, Field> {
    if (this.#byJson !== undefined) return this.#byJson;
    const byJson = new Map<string, Field>();
    for (const field of this.fields) {
      if (field.json !== null) byJson.set(field.json, field);
      else if (field.inline && "message" in field.value) {
        for (const [key, inner] of field.value.message.byJson) byJson.set(key, inner);
      }
    }
    return (this.#byJson = byJson);
  }
}

function fieldOf([json, number, type, flags, merge]: FieldRow): Field {
  const map = type.startsWith("map<");
  return {
    json,
    number,
    value: valueType(map ? type.slice(4, -1) : type),
    shape: map ? "map" : flags.includes("r") ? "list" : "single",
    pointer: flags.includes("p"),
    omitEmpty: flags.includes("o"),
    omitZero: flags.includes("z"),
    inline: flags.includes("i"),
    newer: flags.includes("n"),
    required: flags.includes("!"),
    merge: merge ?? {},
  };
}

const valueType = (name: string): ValueType =>
  isScalar(name) ? { scalar: name } : { message: message(name) };

const resolved = new Map<string, Message>();

/** The message of a name (`api.core.v1.Pod`). Throws `internal` for a name that is not in the table. */
export function message(name: string): Message {
  const known = resolved.get(name);
  if (known !== undefined) return known;
  const row = Object.hasOwn(table().messages, name) ? table().messages[name] : undefined;
  if (row === undefined) throw new CodedError("internal", `no Kubernetes API type is named ${name}`);
  const made = new TableMessage(name, row);
  resolved.set(name, made);
  return made;
}

/** The values an enumerated field may have (`api.core.v1.RestartPolicy`), or `undefined` for an unknown name. */
export function enumValues(name: string): readonly string[] | undefined {
  return Object.hasOwn(table().enums, name) ? table().enums[name] : undefined;
}

/** What the table knows of a kind. */
export interface KindFacts {
  readonly message: string;
  readonly list?: string;
  readonly resource?: string;
  readonly namespaced?: boolean;
  readonly verbs?: readonly string[];
}

interface KindTable {
  readonly kinds: Readonly<Record<string, Readonly<Record<string, KindFacts>>>>;
  readonly anywhere: Readonly<Record<string, string>>;
}
let loadedKinds: KindTable | undefined;
const kindTable = (): KindTable => (loadedKinds ??= readTable<KindTable>("kinds.json"));

/** What is known of a built-in kind, or `undefined`. */
export function kindFacts(apiVersion: string, kind: string): KindFacts | undefined {
  const group = Object.hasOwn(kindTable().kinds, apiVersion) ? kindTable().kinds[apiVersion] : undefined;
  return group !== undefined && Object.hasOwn(group, kind) ? group[kind] : undefined;
}

/** Kinds of `meta.k8s.io` that objects of every kind may be shown as. */
const partialKinds: ReadonlySet<string> = new Set(["PartialObjectMetadata", "PartialObjectMetadataList"]);

/**
 * The message that carries a kind, or `undefined` when the kind has no protobuf form. Options and watch
 * events exist in every group version.
 */
export function messageOf(apiVersion: string, kind: string): Message | undefined {
  const facts = kindFacts(apiVersion, kind);
  if (facts !== undefined) return message(facts.message);
  if (apiVersion.startsWith("meta.k8s.io/") && partialKinds.has(kind))
    return message(`apimachinery.pkg.apis.meta.v1.${kind}`);
  const anywhere = kindTable().anywhere;
  const shared = Object.hasOwn(anywhere, kind) ? anywhere[kind] : undefined;
  return shared === undefined ? undefined : message(shared);
}
