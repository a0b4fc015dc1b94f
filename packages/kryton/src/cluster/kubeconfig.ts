/**
 * The operator's own kubeconfig, read without kubectl: server, CA, client certificate and token, inline or as files.
 *
 * Programs to run (`exec`, `auth-provider`), proxies and user names with passwords are refused by name rather than
 * ignored, so that nobody believes to be somebody they are not. Keys stay in memory.
 *
 * Source: Kubernetes documentation, kubeconfig (v1).
 */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { at, CodedError, isObject, messageOf, stringAt } from "@kontinuum/std";

/** Largest file that is read, bytes. */
const maxBytes = 1024 * 1024;

/** How to reach a cluster. */
export interface ClusterAccess {
  /** `http(s)://host[:port][/prefix]`, without a final slash. */
  readonly server: string;
  /** PEM. Absent: the CAs that Node trusts. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Read again when it may have changed. */
  readonly token?: () => Promise<string>;
  /** True: the server's certificate is not verified. Only ever an explicit choice. */
  readonly insecure: boolean;
}

/** Reads the current context of a kubeconfig. Fails with `invalid_argument`, naming file and field. */
export async function readKubeconfigFile(file: string): Promise<ClusterAccess> {
  const bad = (why: string): CodedError => new CodedError("invalid_argument", `kubeconfig ${file}: ${why}`);
  const config = await parse(await readText(file, bad), bad);
  const named = (list: string, name: string | undefined, kind: string): unknown => {
    const entries = at(config, list);
    const found: unknown = Array.isArray(entries)
      ? entries.find((entry) => stringAt(entry, "name") === name)
      : undefined;
    const value = at(found, kind);
    if (!isObject(value)) throw bad(`it has no ${kind} ${JSON.stringify(name ?? "")}`);
    return value;
  };
  const context = named("contexts", stringAt(config, "current-context"), "context");
  const cluster = named("clusters", stringAt(context, "cluster"), "cluster");
  const user = named("users", stringAt(context, "user"), "user");
  for (const field of ["exec", "auth-provider", "username", "password", "as"]) {
    if (at(user, field)) throw bad(`${field} is not supported; use a token or a client certificate`);
  }
  if (at(cluster, "proxy-url")) throw bad("proxy-url is not supported");
  const text = async (section: unknown, name: string): Promise<string | undefined> => {
    const inline = stringAt(section, `${name}-data`);
    if (inline) return Buffer.from(inline, "base64").toString("utf8");
    const path = stringAt(section, name);
    return path ? readText(resolve(dirname(file), path), bad) : undefined;
  };
  const ca = await text(cluster, "certificate-authority");
  const cert = await text(user, "client-certificate");
  const key = await text(user, "client-key");
  const inline = stringAt(user, "token");
  const tokenFile = stringAt(user, "tokenFile");
  const token = inline
    ? () => Promise.resolve(inline)
    : tokenFile
      ? () => readToken(resolve(dirname(file), tokenFile))
      : undefined;
  return {
    server: serverUrl(stringAt(cluster, "server") ?? "", bad),
    insecure: at(cluster, "insecure-skip-tls-verify") === true,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(token === undefined ? {} : { token }),
  };
}

/** The address of a server in the one form that is used; `bad` makes the error for anything else. */
export function serverUrl(text: string, bad: (why: string) => CodedError): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) throw bad("the server is not an http(s) URL");
  if (url.username !== "" || url.password !== "") throw bad("the server's URL must not carry user info");
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

/** The token in a file, trimmed. Fails with `unavailable`. */
export async function readToken(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    throw new CodedError("unavailable", `the token file ${file} cannot be read: ${messageOf(error)}`);
  }
}

/** A file as text. */
export async function readText(file: string, bad: (why: string) => CodedError): Promise<string> {
  try {
    const text = await readFile(file, "utf8");
    if (text.length > maxBytes) throw bad(`${file} is larger than ${maxBytes} bytes`);
    return text;
  } catch (error) {
    if (error instanceof CodedError) throw error;
    throw bad(`it cannot be read: ${messageOf(error)}`);
  }
}

async function parse(text: string, bad: (why: string) => CodedError): Promise<unknown> {
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, { uniqueKeys: true, logLevel: "silent" });
  if (document.errors.length > 0) throw bad("it is not YAML");
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    throw bad("it uses YAML aliases");
  }
}
