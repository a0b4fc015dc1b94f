/**
 * The helm program: found once, run with argument arrays, a minimal environment and files of its own.
 *
 * Nothing of the operator's helm settings is used: homes and the plugin folder are private and empty. The
 * kubeconfig and the values are temporary files that only this user can read. What helm prints on stderr
 * becomes an error only after credentials were cut out of it. Works with helm 3.8 and later, and 4.
 */
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { CodedError, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { stringify } from "yaml";
import type { ChartSource } from "./chart-source.ts";

/** Largest output of helm, bytes: a rendered chart with big definitions. */
const maxOutputBytes = 64 * 1024 * 1024;
/** Longest text of helm in an error. */
const maxErrorText = 600;

/** A release as helm keeps it. */
export interface Release {
  /** helm's word: deployed, failed, pending-install, pending-upgrade, pending-rollback, … */
  readonly status: string;
  readonly revision: number;
  readonly description: string;
  /** RFC 3339. */
  readonly lastDeployed: string;
}

/** Where a release lives. */
export interface ReleaseTarget {
  readonly kubeconfig: string;
  readonly release: string;
  readonly namespace: string;
}

/** What one call may take. */
export interface HelmCall {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Runs helm. Make it with {@link openHelm}. */
export class Helm {
  readonly #program: string;
  readonly #home: string;

  constructor(program: string, home: string) {
    this.#program = program;
    this.#home = home;
  }

  /** Private folder for fetched charts; it goes with the others. */
  get charts(): string {
    return path.join(this.#home, "charts");
  }

  /** The release, or `undefined` when there is none. */
  async status(target: ReleaseTarget, call: HelmCall): Promise<Release | undefined> {
    try {
      const text = await this.#inCluster(target, call, ["status", target.release, "--output", "json"]);
      return parseRelease(text);
    } catch (error) {
      if (error instanceof CodedError && /release: not found/.test(error.message)) return undefined;
      throw error;
    }
  }

  /** Installs or upgrades, and returns at once: waiting for pods is not helm's business here. */
  async upgrade(
    target: ReleaseTarget,
    chart: ChartSource,
    values: JsonObject,
    description: string,
    call: HelmCall,
  ): Promise<void> {
    await this.#withValues(values, async (file) => {
      await this.#inCluster(target, call, [
        "upgrade",
        "--install",
        "--create-namespace",
        "--history-max",
        "5",
        "--description",
        description,
        "--values",
        file,
        "--",
        target.release,
        chart.chart,
      ]);
    });
  }

  /** Takes a release back to a revision that worked. */
  async rollback(target: ReleaseTarget, revision: number, call: HelmCall): Promise<void> {
    await this.#inCluster(target, call, ["rollback", "--", target.release, String(revision)]);
  }

  /** Removes a release and everything it made. */
  async uninstall(target: ReleaseTarget, call: HelmCall): Promise<void> {
    await this.#inCluster(target, call, ["uninstall", "--", target.release]);
  }

  /** Revisions, oldest first. */
  async history(target: ReleaseTarget, call: HelmCall): Promise<readonly Release[]> {
    const text = await this.#inCluster(target, call, ["history", target.release, "--output", "json"]);
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list.filter(isObject).map(parseHistoryEntry) : [];
  }

  /** The chart rendered without a cluster: YAML documents, definitions included. */
  async template(
    { release, namespace }: Pick<ReleaseTarget, "release" | "namespace">,
    chart: ChartSource,
    values: JsonObject,
    kubeVersion: string,
    call: HelmCall,
  ): Promise<string> {
    return this.#withValues(values, (file) =>
      this.#run(
        [
          "template",
          "--include-crds",
          "--no-hooks",
          "--namespace",
          namespace,
          "--kube-version",
          kubeVersion,
          "--values",
          file,
          "--",
          release,
          chart.chart,
        ],
        call,
      ),
    );
  }

  /** Removes the private folder. */
  async close(): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }

  #withValues<T>(values: JsonObject, work: (file: string) => Promise<T>): Promise<T> {
    return this.#withFile("values", stringify(values), work);
  }

  async #inCluster(target: ReleaseTarget, call: HelmCall, args: readonly string[]): Promise<string> {
    const [verb = "", ...rest] = args;
    return this.#withFile("addon-kubeconfig", target.kubeconfig, (file) =>
      this.#run([verb, "--kubeconfig", file, "--namespace", target.namespace, ...rest], call),
    );
  }

  async #withFile<T>(name: string, text: string, work: (file: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(path.join(this.#home, "call-"));
    try {
      const file = path.join(folder, `${name}.yaml`);
      await writeFile(file, text, { mode: 0o600 });
      return await work(file);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  #run(args: readonly string[], { timeoutMs, signal }: HelmCall): Promise<string> {
    const home = (name: string): string => path.join(this.#home, name);
    return new Promise((resolve, reject) => {
      execFile(
        this.#program,
        args,
        {
          cwd: this.#home,
          env: {
            HOME: this.#home,
            PATH: "/usr/bin:/bin",
            HELM_CACHE_HOME: home("cache"),
            HELM_CONFIG_HOME: home("config"),
            HELM_DATA_HOME: home("data"),
            HELM_PLUGINS: home("plugins"),
            HELM_DRIVER: "secret",
          },
          timeout: timeoutMs,
          killSignal: "SIGTERM",
          maxBuffer: maxOutputBytes,
          signal,
        },
        (error, stdout, stderr) => {
          if (!error) return resolve(stdout);
          if (signal.aborted)
            return reject(new CodedError("cancelled", "helm was stopped", { cause: error }));
          if (error.killed === true) {
            return reject(
              new CodedError("deadline_exceeded", `helm ${args[0] ?? ""} took longer than ${timeoutMs} ms`),
            );
          }
          reject(
            new CodedError(
              "unavailable",
              `helm ${args[0] ?? ""}: ${redactHelmText(stderr || error.message)}`,
            ),
          );
        },
      );
    });
  }
}

/** helm's words without credentials, temporary paths and line breaks, cut to a readable length. */
export function redactHelmText(text: string): string {
  return text
    .replaceAll(/\b([a-z][a-z0-9+.-]*:\/\/)[^/\s@"']*@/gi, "$1")
    .replaceAll(/-----BEGIN [^-]+-----[\s\S]*?(-----END [^-]+-----|$)/g, "[redacted]")
    .replaceAll(/\b(authorization|bearer|token|password|secret)(["']?\s*[:=]\s*|\s+)\S+/gi, "$1 [redacted]")
    .replaceAll(/\/[^\s"':]*\/call-[A-Za-z0-9]+\//g, "")
    .replace(/^Error: /, "")
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(0, maxErrorText);
}

function parseRelease(text: string): Release {
  const value: unknown = JSON.parse(text);
  const revision = isObject(value) ? value["version"] : undefined;
  return {
    status: stringAt(value, "info", "status") ?? "unknown",
    revision: typeof revision === "number" ? revision : 0,
    description: stringAt(value, "info", "description") ?? "",
    lastDeployed: stringAt(value, "info", "last_deployed") ?? "",
  };
}

function parseHistoryEntry(value: JsonObject): Release {
  const revision = value["revision"];
  return {
    status: stringAt(value, "status") ?? "unknown",
    revision: typeof revision === "number" ? revision : 0,
    description: stringAt(value, "description") ?? "",
    lastDeployed: stringAt(value, "updated") ?? "",
  };
}

/** Finds helm (`configured`, else on `searchPath`) and gives it a private home. Fails with `failed_precondition`. */
export async function openHelm(configured: string, searchPath: string): Promise<Helm> {
  const program = configured || (await findOnPath("helm", searchPath));
  if (program === undefined) {
    throw new CodedError(
      "failed_precondition",
      "there is no helm program: install helm, or name it in KONTINUUM_HELM",
    );
  }
  await removeLeftHomes();
  const home = await mkdtemp(path.join(os.tmpdir(), `${homePrefix}${process.pid}-`));
  await chmod(home, 0o700);
  for (const name of ["cache", "config", "data", "plugins"])
    await mkdir(path.join(home, name), { mode: 0o700 });
  return new Helm(program, home);
}

const homePrefix = "kontinuum-helm-";

/** Homes of processes that were killed: a kubeconfig may lie in them. */
async function removeLeftHomes(): Promise<void> {
  for (const name of await readdir(os.tmpdir())) {
    const pid = Number(new RegExp(`^${homePrefix}(\\d+)-`).exec(name)?.[1]);
    if (!Number.isSafeInteger(pid) || isAlive(pid)) continue;
    await rm(path.join(os.tmpdir(), name), { recursive: true, force: true }).catch(() => {});
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process: not ours to judge.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function findOnPath(name: string, searchPath: string): Promise<string | undefined> {
  const { access, constants } = await import("node:fs/promises");
  for (const folder of searchPath.split(path.delimiter).filter((one) => path.isAbsolute(one))) {
    const file = path.join(folder, name);
    const usable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return file;
  }
  return undefined;
}
