/**
 * What a request is about, read from its method and path alone: verb, resource, namespace, name.
 *
 * Authorization and audit decide on this, so it is computed once, before anything else looks at the path.
 */
import { badRequest } from "../status/status.ts";

/** The reading of a request line. */
export interface RequestInfo {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for other paths the lower-case method. */
  readonly verb: string;
  /** True for `/api/v1/…` and `/apis/<group>/<version>/…` with a resource. */
  readonly isResource: boolean;
  /** Decoded path without query. */
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  /** Plural name; empty when none. */
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** Path segments behind the subresource. */
  readonly rest: readonly string[];
}

/** Longest path with query that is read. */
export const maxUrlLength = 64 * 1024;

const subresourcesOfNamespaces = new Set(["status", "finalize"]);

const writeVerbs: Readonly<Record<string, string>> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

function isTrue(value: string | null): boolean {
  return value === "" || value === "1" || value === "t" || value === "T" || /^true$/i.test(value ?? "");
}

function decode(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw badRequest("the path holds an invalid escape sequence");
  }
}

/** The name of a `metadata.name=x` field selector: such a list or watch counts as named. */
function selectedName(query: URLSearchParams): string {
  const match = /^metadata\.name={1,2}([^,\\=!]+)$/.exec(query.get("fieldSelector") ?? "");
  return match?.[1] ?? "";
}

/** What is known of a request that is about no resource, or whose path can't be read. */
export function unreadable(method: string, path: string): RequestInfo {
  return {
    verb: method.toLowerCase(),
    isResource: false,
    path,
    group: "",
    version: "",
    namespace: "",
    resource: "",
    subresource: "",
    name: "",
    rest: [],
  };
}

/** Reads a request line. Fails with 400 on a path that can't be decoded. */
export function readRequestInfo(method: string, rawPath: string, query: () => URLSearchParams): RequestInfo {
  const segments = rawPath.split("/").slice(1);
  if (segments.at(-1) === "") segments.pop();
  const parts = segments.map(decode);
  const path = `/${parts.join("/")}`;
  const other = unreadable(method, path);
  let rest: string[];
  let group = "";
  if (parts[0] === "api" && parts.length >= 3) rest = parts.slice(1);
  else if (parts[0] === "apis" && parts.length >= 4) {
    group = parts[1] ?? "";
    rest = parts.slice(2);
  } else return other;
  const version = rest.shift() ?? "";
  let watch = false;
  if (rest[0] === "watch" && rest.length > 1) {
    watch = true;
    rest.shift();
  }
  let namespace = "";
  if (rest[0] === "namespaces" && rest[1] !== undefined) {
    namespace = rest[1];
    if (rest.length > 2 && !(rest.length === 3 && subresourcesOfNamespaces.has(rest[2] ?? "")))
      rest = rest.slice(2);
  }
  const [resource = "", name = "", subresource = "", ...behind] = rest;
  let verb = method === "GET" || method === "HEAD" ? "get" : (writeVerbs[method] ?? method.toLowerCase());
  let named = name;
  if (verb === "get" && (name === "" || watch)) {
    const asked = query().get("watch");
    verb = watch || (asked !== null && isTrue(asked)) ? "watch" : "list";
    if (name === "") named = selectedName(query());
  } else if (verb === "delete" && name === "") {
    verb = "deletecollection";
    named = selectedName(query());
  }
  return {
    verb,
    isResource: true,
    path,
    group,
    version,
    namespace,
    resource,
    subresource,
    name: named,
    rest: behind,
  };
}
