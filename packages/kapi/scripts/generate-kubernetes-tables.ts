/**
 * Turns the published facts about the Kubernetes API types (third_party/kubernetes/facts) into the compact
 * tables that the server reads at run time (third_party/kubernetes/tables).
 *
 * Run with `node packages/kapi/scripts/generate-kubernetes-tables.ts`; a test checks that the committed
 * tables are what this prints.
 *
 * Message names are the published OpenAPI names without their common `io.k8s.` prefix.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

interface SourceField {
  readonly name: string;
  readonly json: string | null;
  readonly number: number;
  readonly type: string;
  readonly repeated: boolean;
  readonly map: { readonly key: string; readonly value: string } | null;
  readonly inline: boolean;
  readonly pointer: boolean;
  readonly omitempty: boolean;
  readonly omitzero?: boolean;
  readonly optional?: boolean;
  readonly goType?: string;
  readonly enumOrScalarGoType?: string | null;
}

interface SourceKind {
  readonly message: string | null;
  readonly list?: { readonly kind: string; readonly message: string };
  readonly namespaced?: boolean;
  readonly resource?: string | null;
  readonly onlyVerbs?: readonly string[];
}

interface Facts {
  readonly messages: Readonly<Record<string, { readonly fields: readonly SourceField[] }>>;
  readonly kinds: Readonly<Record<string, Readonly<Record<string, SourceKind>>>>;
  readonly everyGroupVersionAlsoAccepts: Readonly<Record<string, string>>;
  readonly enums: Readonly<Record<string, readonly string[]>>;
}

interface MergeFact {
  readonly patchStrategy?: readonly string[];
  readonly patchMergeKey?: string;
  readonly listType?: string;
  readonly listMapKeys?: readonly string[];
  readonly mapType?: string;
  readonly structType?: string;
}

type Definitions = Readonly<
  Record<
    string,
    { readonly properties?: Readonly<Record<string, unknown>>; readonly required?: readonly string[] }
  >
>;

interface ColumnFact {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly priority: number;
  readonly description: string;
}

const root = new URL("../../../third_party/kubernetes/", import.meta.url);
const read = <T>(name: string): T => JSON.parse(readFileSync(new URL(`facts/${name}`, root), "utf8")) as T;

/** `k8s.io.api.core.v1.Pod` to `api.core.v1.Pod`; the two modules with a dash get it back. */
const shortName = (name: string): string =>
  name.replace(/^k8s\.io\./, "").replace(/^(apiextensions|kube)_/, "$1-");

/** Fields that came after the release we serve; the codec still reads and writes them. */
function isNewer(message: string, field: SourceField, definitions: Definitions): boolean {
  const properties = definitions[`io.k8s.${shortName(message)}`]?.properties;
  return properties !== undefined && field.json !== null && !Object.hasOwn(properties, field.json);
}

const isRequired = (message: string, field: SourceField, definitions: Definitions): boolean =>
  field.json !== null && definitions[`io.k8s.${shortName(message)}`]?.required?.includes(field.json) === true;

/** Whether objects of a type say their own apiVersion and kind. */
function hasTypeMeta(name: string, fields: readonly SourceField[], definitions: Definitions): boolean {
  const properties = definitions[`io.k8s.${shortName(name)}`]?.properties ?? {};
  const own = new Set(fields.map((field) => field.json));
  return ["apiVersion", "kind"].every((key) => Object.hasOwn(properties, key) && !own.has(key));
}

function fieldFlags(field: SourceField): string {
  return [
    field.repeated ? "r" : "",
    field.pointer ? "p" : "",
    field.omitempty ? "o" : "",
    field.omitzero ? "z" : "",
    field.inline ? "i" : "",
    field.optional ? "?" : "",
  ].join("");
}

function mergeOf(fact: MergeFact | undefined): Record<string, unknown> {
  if (fact === undefined) return {};
  const atomicMap = fact.mapType === "atomic" || fact.structType === "atomic";
  const granular = fact.mapType === "granular" || fact.structType === "granular";
  return {
    ...(fact.listType === undefined ? {} : { list: fact.listType }),
    ...(fact.listMapKeys === undefined ? {} : { keys: fact.listMapKeys }),
    ...(atomicMap ? { map: "atomic" } : granular ? { map: "granular" } : {}),
    ...(fact.patchStrategy === undefined ? {} : { patch: fact.patchStrategy }),
    ...(fact.patchMergeKey === undefined ? {} : { patchKey: fact.patchMergeKey }),
  };
}

/** The tables as file name to text. */
export function generate(): Record<string, string> {
  const facts = read<Facts>("protobuf.json");
  const merge = read<{ types: Record<string, MergeFact>; fields: Record<string, MergeFact> }>(
    "strategic-merge.json",
  );
  const { definitions } = read<{ definitions: Definitions }>("definitions.json");
  const columns = read<{ default: ColumnFact[]; columns: Record<string, Record<string, ColumnFact[]>> }>(
    "columns.json",
  );

  const messages: Record<string, unknown> = {};
  for (const [name, message] of Object.entries(facts.messages)) {
    const rows = message.fields.map((field) => {
      const type = field.map === null ? shortName(field.type) : `map<${shortName(field.map.value)}>`;
      const go = field.enumOrScalarGoType ?? undefined;
      const enumName = go !== undefined && Object.hasOwn(facts.enums, go) ? shortName(go) : undefined;
      const extra = {
        ...(enumName === undefined ? {} : { enum: enumName }),
        ...mergeOf(merge.fields[`${name}.${field.json ?? field.name}`]),
      };
      const row: unknown[] = [
        field.json,
        field.number,
        type,
        fieldFlags(field) +
          (isNewer(name, field, definitions) ? "n" : "") +
          (isRequired(name, field, definitions) ? "!" : ""),
      ];
      if (Object.keys(extra).length > 0) row.push(extra);
      return row;
    });
    const atomic = merge.types[name]?.structType === "atomic";
    messages[shortName(name)] = {
      ...(atomic ? { atomic } : {}),
      ...(hasTypeMeta(name, message.fields, definitions) ? { typeMeta: true } : {}),
      fields: rows,
    };
  }

  const kinds: Record<string, Record<string, unknown>> = {};
  for (const [apiVersion, group] of Object.entries(facts.kinds)) {
    const rows: Record<string, unknown> = {};
    for (const [kind, fact] of Object.entries(group)) {
      if (fact.message === null) continue;
      rows[kind] = {
        message: shortName(fact.message),
        ...(fact.list === undefined ? {} : { list: fact.list.kind }),
        ...(typeof fact.resource === "string"
          ? { resource: fact.resource, namespaced: fact.namespaced === true }
          : {}),
        ...(fact.onlyVerbs === undefined ? {} : { verbs: fact.onlyVerbs }),
      };
    }
    kinds[apiVersion] = rows;
  }

  const texts: string[] = [];
  const textIndex = (text: string): number => {
    const found = texts.indexOf(text);
    return found >= 0 ? found : texts.push(text) - 1;
  };
  const columnRow = (column: ColumnFact): unknown[] => [
    column.name,
    column.type,
    column.format,
    column.priority,
    textIndex(column.description),
  ];
  const columnTable: Record<string, Record<string, unknown[]>> = {};
  for (const [apiVersion, group] of Object.entries(columns.columns)) {
    columnTable[apiVersion] = Object.fromEntries(
      Object.entries(group).map(([kind, list]) => [kind, list.map(columnRow)]),
    );
  }

  const anywhere = Object.fromEntries(
    Object.entries(facts.everyGroupVersionAlsoAccepts).map(([kind, name]) => [kind, shortName(name)]),
  );
  const enums = Object.fromEntries(
    Object.entries(facts.enums).map(([name, values]) => [shortName(name), values]),
  );
  return {
    "messages.json": lines({ messages, enums }),
    "kinds.json": lines({ kinds, anywhere }),
    "columns.json": lines({ default: columns.default.map(columnRow), columns: columnTable, texts }),
  };
}

/** JSON with one line for each second-level entry: small, yet readable in a diff. */
function lines(value: Record<string, unknown>): string {
  const sections = Object.entries(value).map(([key, section]) => {
    if (Array.isArray(section)) {
      return `${JSON.stringify(key)}:[\n${section.map((item) => JSON.stringify(item)).join(",\n")}\n]`;
    }
    const rows = Object.entries(section as Record<string, unknown>).map(
      ([name, row]) => `${JSON.stringify(name)}:${JSON.stringify(row)}`,
    );
    return `${JSON.stringify(key)}:{\n${rows.join(",\n")}\n}`;
  });
  return `{\n${sections.join(",\n")}\n}\n`;
}

if (import.meta.main) {
  mkdirSync(new URL("tables/", root), { recursive: true });
  for (const [name, text] of Object.entries(generate())) writeFileSync(new URL(`tables/${name}`, root), text);
}
