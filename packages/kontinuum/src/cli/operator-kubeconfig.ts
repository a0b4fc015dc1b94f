/**
 * The operator's own kubeconfig. Unlike one that came from a machine it is trusted: it may name files and a
 * program that gets a token, as kubectl allows.
 *
 * Source: Kubernetes documentation ("Organizing cluster access using kubeconfig files", client-go credential
 * plugins).
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { Kubeconfig } from "@kontinuum/controller";
import { at, CodedError, isObject, messageOf, stringAt } from "@kontinuum/std";
import { parse } from "yaml";

/** Which kubeconfig and which of its contexts. */
export interface KubeconfigChoice {
  /** A file; default: `$KUBECONFIG`, else `~/.kube/config`. */
  readonly kubeconfig?: string | undefined;
  /** Default: the current context. */
  readonly context?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Longest wait for a credential program, milliseconds; a browser sign-in may be part of it. */
const credentialProgramMs = 120_000;
/** Largest kubeconfig file and largest output of a credential program, bytes. */
const maxBytes = 1024 * 1024;

/** The files a choice stands for, first wins. */
export function kubeconfigFiles(
  { kubeconfig }: KubeconfigChoice,
  environment: Environment,
): readonly string[] {
  if (kubeconfig) return [kubeconfig];
  const listed = (environment["KUBECONFIG"] ?? "").split(path.delimiter).filter((file) => file !== "");
  return listed.length > 0 ? listed : [path.join(environment["HOME"] || os.homedir(), ".kube", "config")];
}

/** Reads the chosen context. Fails with `not_found` or `invalid_argument`, naming the file. */
export async function readOperatorKubeconfig(
  choice: KubeconfigChoice,
  environment: Environment,
): Promise<Kubeconfig> {
  const files = kubeconfigFiles(choice, environment);
  const parts = await Promise.all(files.map((file) => readPart(file)));
  const present = parts.filter((part) => part !== undefined);
  if (present.length === 0) {
    throw new CodedError(
      "not_found",
      `no kubeconfig at ${files.join(", ")}: pass --kubeconfig, set KUBECONFIG, or run kontinuum config import`,
    );
  }
  const find = (list: string, name: string, key: string): Found | undefined => {
    for (const part of present) {
      const entries = at(part.config, list);
      const entry: unknown = Array.isArray(entries)
        ? entries.find((one) => stringAt(one, "name") === name)
        : undefined;
      if (entry !== undefined) return { value: at(entry, key), dir: path.dirname(part.file) };
    }
    return undefined;
  };
  const current = present.map((part) => stringAt(part.config, "current-context")).find((name) => name);
  const name = choice.context ?? current ?? "";
  const context = find("contexts", name, "context");
  if (!context) {
    const why =
      name === "" ? "has no current context: pass --context" : `has no context ${JSON.stringify(name)}`;
    throw new CodedError("not_found", `the kubeconfig ${files.join(", ")} ${why}`);
  }
  const cluster = find("clusters", stringAt(context.value, "cluster") ?? "", "cluster");
  const user = find("users", stringAt(context.value, "user") ?? "", "user");
  return resolve(cluster, user, environment, files);
}

interface Found {
  readonly value: unknown;
  readonly dir: string;
}

async function readPart(
  file: string,
): Promise<{ readonly file: string; readonly config: unknown } | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new CodedError("invalid_argument", `cannot read the kubeconfig ${file}: ${messageOf(error)}`);
  }
  try {
    if (text.length > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    return { file, config: parse(text) };
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `the kubeconfig ${file} can't be used: ${messageOf(error).split("\n")[0] ?? ""}`,
    );
  }
}

async function resolve(
  cluster: Found | undefined,
  user: Found | undefined,
  environment: Environment,
  files: readonly string[],
): Promise<Kubeconfig> {
  const server = stringAt(cluster?.value, "server");
  if (server === undefined || !URL.canParse(server)) {
    throw new CodedError(
      "invalid_argument",
      `the kubeconfig ${files.join(", ")} names no server for this context`,
    );
  }
  const ca = await material(cluster, "certificate-authority");
  const plugin = at(user?.value, "exec");
  const fromPlugin = isObject(plugin) ? await runCredentialProgram(plugin, environment) : {};
  const cert = fromPlugin.cert ?? (await material(user, "client-certificate"));
  const key = fromPlugin.key ?? (await material(user, "client-key"));
  const tokenFile = stringAt(user?.value, "tokenFile");
  const token =
    fromPlugin.token ??
    stringAt(user?.value, "token") ??
    (tokenFile && user ? (await readFile(path.resolve(user.dir, tokenFile), "utf8")).trim() : undefined);
  return {
    server: server.replace(/\/$/, ""),
    insecure: at(cluster?.value, "insecure-skip-tls-verify") === true,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(token === undefined ? {} : { token }),
  };
}

/** PEM given inline (`<field>-data`, base64) or as a file (`<field>`, relative to its kubeconfig). */
async function material(found: Found | undefined, field: string): Promise<string | undefined> {
  const inline = stringAt(found?.value, `${field}-data`);
  if (inline) return Buffer.from(inline, "base64").toString("utf8");
  const file = stringAt(found?.value, field);
  if (!file || !found) return undefined;
  const full = path.resolve(found.dir, file);
  try {
    return await readFile(full, "utf8");
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `the kubeconfig names ${full}, which can't be read: ${messageOf(error)}`,
    );
  }
}

interface PluginCredentials {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
}

async function runCredentialProgram(
  plugin: Record<string, unknown>,
  environment: Environment,
): Promise<PluginCredentials> {
  const command = stringAt(plugin, "command") ?? "";
  const args = Array.isArray(plugin["args"]) ? plugin["args"].filter((arg) => typeof arg === "string") : [];
  const extra = Array.isArray(plugin["env"])
    ? plugin["env"].map((entry) => [stringAt(entry, "name") ?? "", stringAt(entry, "value") ?? ""])
    : [];
  const info = {
    apiVersion: stringAt(plugin, "apiVersion"),
    kind: "ExecCredential",
    spec: { interactive: false },
  };
  try {
    const { stdout } = await promisify(execFile)(command, args, {
      env: { ...environment, ...Object.fromEntries(extra), KUBERNETES_EXEC_INFO: JSON.stringify(info) },
      timeout: credentialProgramMs,
      maxBuffer: maxBytes,
    });
    const answer: unknown = JSON.parse(stdout);
    const [token, cert, key] = ["token", "clientCertificateData", "clientKeyData"].map((field) =>
      stringAt(answer, "status", field),
    );
    return {
      ...(token === undefined ? {} : { token }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    };
  } catch {
    // What the program printed may hold a credential, so it is not repeated.
    throw new CodedError(
      "unauthenticated",
      `the kubeconfig's credential program ${JSON.stringify(command)} gave no credential; run it by hand to see why`,
    );
  }
}
