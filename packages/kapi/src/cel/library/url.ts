/**
 * The Kubernetes URL functions, with the rules of Go's `url.ParseRequestURI`: an absolute URI or a path.
 */
import { isUri } from "../../schema/formats.ts";
import { CelError } from "../error.ts";
import {
  global,
  member,
  traversalFactor,
  traversesFirst,
  type Overload,
  type OverloadOptions,
} from "../function.ts";
import { ArrayList, CelOpaque, EntryMap, sizeOf, type CelValue } from "../value.ts";

const typeName = "kubernetes.URL";

/** A parsed URL. */
class CelUrl extends CelOpaque {
  readonly typeName = typeName;
  readonly text: string;
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;

  constructor(text: string, scheme: string, host: string, path: string, query: string) {
    super();
    this.text = text;
    this.scheme = scheme;
    this.host = host;
    this.path = path;
    this.query = query;
  }

  override equals(other: CelOpaque): boolean {
    return other instanceof CelUrl && other.text === this.text;
  }
}

/** Longest URL looked at. */
const maxUrlLength = 65_536;

function parse(text: string): CelUrl | undefined {
  if (text.length > maxUrlLength || !isUri(text)) return undefined;
  const question = text.indexOf("?");
  const head = question < 0 ? text : text.slice(0, question);
  const query = question < 0 ? "" : text.slice(question + 1);
  const colon = head.startsWith("/") ? -1 : head.indexOf(":");
  const scheme = colon < 0 ? "" : head.slice(0, colon).toLowerCase();
  const rest = colon < 0 ? head : head.slice(colon + 1);
  if (!rest.startsWith("//") || colon < 0) return new CelUrl(text, scheme, "", rest, query);
  const slash = rest.indexOf("/", 2);
  const authority = slash < 0 ? rest.slice(2) : rest.slice(2, slash);
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  return new CelUrl(text, scheme, host, slash < 0 ? "" : rest.slice(slash), query);
}

function asUrl(value: CelValue): CelUrl {
  if (value instanceof CelUrl) return value;
  throw new CelError("no such overload");
}

function hostParts(host: string): { readonly name: string; readonly port: string } {
  const parts = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(host);
  return { name: parts?.[1] ?? parts?.[2] ?? host, port: parts?.[3] ?? "" };
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
};

function queryMap(query: string): EntryMap {
  const values = new Map<string, string[]>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const key = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? "" : decode(pair.slice(equals + 1));
    const known = values.get(key);
    if (known) known.push(value);
    else values.set(key, [value]);
  }
  return new EntryMap([...values].map(([key, list]) => [key, new ArrayList(list)] as const));
}

const parsing: OverloadOptions = {
  cost: traversesFirst,
  charge: ([text = ""]) => 60 + sizeOf(text) * traversalFactor,
};
const part: OverloadOptions = { resultSize: () => maxUrlLength };
const text = (name: string, read: (url: CelUrl) => string): Overload =>
  member(name, [typeName], "string", (value) => read(asUrl(value)), part);

/** All overloads of URLs. */
export const urlLibrary: readonly Overload[] = [
  global(
    "url",
    ["string"],
    typeName,
    (source) => {
      const url = parse(source);
      if (!url)
        throw new CelError(
          `URL parse error during conversion from string: parse ${JSON.stringify(source.slice(0, 200))}: invalid URI for request`,
        );
      return url;
    },
    parsing,
  ),
  global("isURL", ["string"], "bool", (source) => parse(source) !== undefined, parsing),
  text("getScheme", (url) => url.scheme),
  text("getHost", (url) => url.host),
  text("getHostname", (url) => hostParts(url.host).name),
  text("getPort", (url) => hostParts(url.host).port),
  text("getEscapedPath", (url) => url.path),
  member("getQuery", [typeName], "map(string, list(string))", (value) => queryMap(asUrl(value).query), {
    cost: () => 100,
    resultSize: () => maxUrlLength,
  }),
];
