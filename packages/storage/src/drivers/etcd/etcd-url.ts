/**
 * URLs of remote stores: `etcd://[user:password@]host:port[,host:port…]`, `grpc://host:port`,
 * `unix:///path`. Query parameters choose TLS: `ca-file`, `cert-file`, `key-file` (PEM files), `tls=true`
 * for the system's certificates, `insecure-skip-verify=true` by explicit choice.
 */
import { readFileSync } from "node:fs";
import { CodedError } from "@kontinuum/std";
import type { EtcdTarget, EtcdTls } from "./channel.ts";

const parameters = ["tls", "ca-file", "cert-file", "key-file", "server-name", "insecure-skip-verify"];

/** The target of a URL whose scheme was cut off. Fails with `invalid_argument`. */
export function etcdTarget(scheme: "etcd" | "grpc" | "unix", rest: string): EtcdTarget {
  const [location = "", query = ""] = rest.split("?", 2);
  if (scheme === "unix") {
    if (!location.startsWith("/"))
      throw missing("unix://", "an absolute path, for example unix:///run/etcd.sock");
    return { endpoints: [`unix://${decodeURIComponent(location)}`] };
  }
  const at = location.lastIndexOf("@");
  const authority = location.slice(at + 1).replace(/\/.*$/s, "");
  const endpoints = authority.split(",").filter((endpoint) => endpoint !== "");
  if (endpoints.length === 0)
    throw missing(`${scheme}://`, `a host and port, for example ${scheme}://127.0.0.1:2379`);
  const credentials = at < 0 ? undefined : userInfo(location.slice(0, at));
  const tls = tlsOf(new URLSearchParams(query));
  return {
    endpoints: endpoints.map((endpoint) => withPort(scheme, endpoint)),
    ...(credentials ? { credentials } : {}),
    ...(tls ? { tls } : {}),
  };
}

function withPort(scheme: string, endpoint: string): string {
  if (!URL.canParse(`http://${endpoint}`))
    throw new CodedError("invalid_argument", `${scheme}:// has an endpoint that is not host:port`);
  return /:\d+$/.test(endpoint) ? endpoint : `${endpoint}:2379`;
}

function userInfo(text: string): { name: string; password: string } {
  const colon = text.indexOf(":");
  if (colon < 0)
    throw new CodedError("invalid_argument", "etcd:// has a user without a password: user:password@host");
  return {
    name: decodeURIComponent(text.slice(0, colon)),
    password: decodeURIComponent(text.slice(colon + 1)),
  };
}

function tlsOf(query: URLSearchParams): EtcdTls | undefined {
  for (const name of query.keys())
    if (!parameters.includes(name))
      throw new CodedError(
        "invalid_argument",
        `unknown parameter ${name} in a store URL: use ${parameters.join(", ")}`,
      );
  const file = (name: string): string | undefined => {
    const path = query.get(name);
    if (path === null) return undefined;
    try {
      return readFileSync(path, "utf8");
    } catch (cause) {
      throw new CodedError("invalid_argument", `${name} ${path} cannot be read`, { cause });
    }
  };
  const ca = file("ca-file");
  const cert = file("cert-file");
  const key = file("key-file");
  const servername = query.get("server-name") ?? undefined;
  const skip = query.get("insecure-skip-verify") === "true";
  if (ca === undefined && cert === undefined && query.get("tls") !== "true" && !skip) return undefined;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(servername === undefined ? {} : { servername }),
    ...(skip ? { rejectUnauthorized: false } : {}),
  };
}

function missing(scheme: string, what: string): CodedError {
  return new CodedError("invalid_argument", `${scheme} needs ${what}`);
}
