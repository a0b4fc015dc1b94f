/**
 * CEL types as the checker knows them. String, bytes, list and map types may carry the greatest size that a
 * schema allows, which the cost estimate multiplies with; sizes play no part in type equality.
 */

/** A field of an object type. */
export interface ObjectField {
  readonly type: CelType;
  /** The name in JSON, when escaping changed it. */
  readonly jsonName: string;
}

/** Names of types without parameters. */
export type SimpleKind =
  | "dyn"
  | "null_type"
  | "bool"
  | "int"
  | "uint"
  | "double"
  | "string"
  | "bytes"
  | "timestamp"
  | "duration"
  | "type";

/** A type. */
export type CelType =
  | { readonly kind: SimpleKind; readonly max?: number }
  | { readonly kind: "list"; readonly item: CelType; readonly max?: number }
  | { readonly kind: "map"; readonly key: CelType; readonly value: CelType; readonly max?: number }
  | { readonly kind: "object"; readonly name: string; readonly fields: ReadonlyMap<string, ObjectField> }
  | { readonly kind: "optional"; readonly item: CelType }
  | { readonly kind: "opaque"; readonly name: string }
  /** A type parameter of a function declaration. */
  | { readonly kind: "param"; readonly name: string };

const simple = (kind: SimpleKind): CelType => ({ kind });

/** The types without parameters. */
export const types = {
  dyn: simple("dyn"),
  null: simple("null_type"),
  bool: simple("bool"),
  int: simple("int"),
  uint: simple("uint"),
  double: simple("double"),
  string: simple("string"),
  bytes: simple("bytes"),
  timestamp: simple("timestamp"),
  duration: simple("duration"),
  type: simple("type"),
} as const;

/** A list type. */
export const listOf = (item: CelType, max?: number): CelType => ({
  kind: "list",
  item,
  ...(max === undefined ? {} : { max }),
});

/** A map type. */
export const mapOf = (key: CelType, value: CelType, max?: number): CelType => ({
  kind: "map",
  key,
  value,
  ...(max === undefined ? {} : { max }),
});

/** An optional type. */
export const optionalOf = (item: CelType): CelType => ({ kind: "optional", item });

/** A type for people. */
export function printType(type: CelType): string {
  switch (type.kind) {
    case "list":
      return `list(${printType(type.item)})`;
    case "map":
      return `map(${printType(type.key)}, ${printType(type.value)})`;
    case "optional":
      return `optional_type(${printType(type.item)})`;
    case "object":
    case "opaque":
    case "param":
      return type.name;
    case "timestamp":
      return "google.protobuf.Timestamp";
    case "duration":
      return "google.protobuf.Duration";
    default:
      return type.kind;
  }
}

/** What type parameters stand for. */
export type Bindings = Map<string, CelType>;

/** `type` with bound parameters filled in; unbound ones become dyn. */
export function substitute(type: CelType, bindings: Bindings): CelType {
  switch (type.kind) {
    case "param":
      return bindings.get(type.name) ?? types.dyn;
    case "list":
      return { ...type, item: substitute(type.item, bindings) };
    case "map":
      return { ...type, key: substitute(type.key, bindings), value: substitute(type.value, bindings) };
    case "optional":
      return { ...type, item: substitute(type.item, bindings) };
    default:
      return type;
  }
}

const primitives = new Set(["bool", "int", "uint", "double"]);

/** True when a value of type `actual` may go where `wanted` is declared; binds parameters. */
export function assignable(wanted: CelType, actual: CelType, bindings: Bindings): boolean {
  if (wanted.kind === "param") {
    const bound = bindings.get(wanted.name);
    if (!bound || bound.kind === "dyn") {
      bindings.set(wanted.name, actual);
      return true;
    }
    if (assignable(bound, actual, bindings)) return true;
    // A parameter bound to something narrower widens when the other fits: null and objects, say.
    if (!assignable(actual, bound, bindings)) return false;
    bindings.set(wanted.name, actual);
    return true;
  }
  if (wanted.kind === "dyn" || actual.kind === "dyn") return true;
  if (actual.kind === "null_type" && wanted.kind !== "null_type")
    return (
      !primitives.has(wanted.kind) &&
      wanted.kind !== "string" &&
      wanted.kind !== "bytes" &&
      wanted.kind !== "list" &&
      wanted.kind !== "map"
    );
  if (wanted.kind !== actual.kind) return false;
  if (wanted.kind === "list" && actual.kind === "list") return assignable(wanted.item, actual.item, bindings);
  if (wanted.kind === "map" && actual.kind === "map")
    return assignable(wanted.key, actual.key, bindings) && assignable(wanted.value, actual.value, bindings);
  if (wanted.kind === "optional" && actual.kind === "optional")
    return assignable(wanted.item, actual.item, bindings);
  if (wanted.kind === "object" && actual.kind === "object") return wanted.name === actual.name;
  if (wanted.kind === "opaque" && actual.kind === "opaque") return wanted.name === actual.name;
  return true;
}

/** True for the type of `[]`, whose items may be taken for anything. */
const isEmptyList = (type: CelType): boolean =>
  type.kind === "list" && type.item.kind === "dyn" && type.max === 0;

/** A type both fit, or `undefined`. */
export function join(a: CelType, b: CelType): CelType | undefined {
  if (a.kind === "dyn") return a;
  if (b.kind === "dyn") return b;
  if (isEmptyList(a)) return b.kind === "list" ? b : undefined;
  if (isEmptyList(b)) return a.kind === "list" ? a : undefined;
  if (assignable(a, b, new Map())) return widen(a, b);
  return assignable(b, a, new Map()) ? widen(b, a) : undefined;
}

/** `a` with the larger size bound of the two; no bound when either has none. */
function widen(a: CelType, b: CelType): CelType {
  if (!("max" in a) || a.max === undefined) return a;
  const other = "max" in b ? b.max : undefined;
  if (other === undefined) {
    const { max: _, ...unbounded } = a;
    return unbounded;
  }
  return { ...a, max: Math.max(a.max, other) };
}

/** Parses the notation of function declarations: `list(string)`, `map(string, T)`, `optional(T)`, `kubernetes.IP`. */
export function parseType(text: string): CelType {
  const open = text.indexOf("(");
  if (open < 0) {
    if (/^[A-Z]$/.test(text)) return { kind: "param", name: text };
    const known = Object.entries(types).find(([name]) => name === text)?.[1];
    return known ?? { kind: "opaque", name: text };
  }
  const parts = splitArguments(text.slice(open + 1, -1)).map(parseType);
  const [first = types.dyn, second = types.dyn] = parts;
  switch (text.slice(0, open)) {
    case "list":
      return listOf(first);
    case "map":
      return mapOf(first, second);
    default:
      return optionalOf(first);
  }
}

function splitArguments(text: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "(") depth++;
    else if (text[i] === ")") depth--;
    else if (text[i] === "," && depth === 0) {
      parts.push(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  parts.push(text.slice(start).trim());
  return parts;
}
