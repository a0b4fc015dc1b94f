/**
 * Fetching charts: from a Helm repository (its index, then the archive) or an OCI registry (tag, manifest, blob).
 *
 * Every call goes through the one outbound client, so no chart reference leads into this machine or to a metadata
 * service. What was fetched is a file named by its digest, kept as long as this process runs; helm itself never uses the
 * network for a chart.
 *
 * Sources: Helm documentation ("The Chart Repository Guide"), OCI Distribution Specification 1.1, OCI Image Manifest.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { at, CodedError, OutboundClient, stringAt, type Edges, type OutboundAnswer } from "@kontinuum/std";
import type { ChartRef } from "./addon.resolve.ts";
import { chartInIndex, newestVersion } from "./chart-index.ts";

/** A fetched chart. */
export interface FetchedChart {
  /** Archive on this machine. */
  readonly file: string;
  /** `sha256:<hex>` of the archive. */
  readonly digest: string;
  /** What was asked for, with the version that was found: the same text names the same chart. */
  readonly reference: string;
}

/** Largest index of a repository, answer of a registry, and archive; bytes. */
const maxIndexBytes = 64 * 1024 * 1024;
const maxAnswerBytes = 4 * 1024 * 1024;
const maxArchiveBytes = 64 * 1024 * 1024;
/** Longest call, milliseconds. */
const callMs = 60_000;
const maxRedirects = 5;
/** Archives that are kept. */
const maxArchives = 32;

const manifestType = "application/vnd.oci.image.manifest.v1+json";
const layerType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/** What a fetcher is made of. */
export interface ChartFetcherOptions {
  readonly edges: Pick<Edges, "network" | "clock">;
  /** Private folder for the archives, made on first use. */
  readonly folder: () => Promise<string>;
  /** Address ranges that may be called although the default refuses them. Default: none. */
  readonly allow?: readonly string[];
  /** PEM authorities; default: the system's. */
  readonly ca?: string;
}

/** See the module's comment. */
export class ChartFetcher {
  readonly #options: ChartFetcherOptions;
  readonly #client: OutboundClient;
  /** What is here already, by what was asked for and pinned. */
  readonly #fetched = new Map<string, FetchedChart>();

  constructor(options: ChartFetcherOptions) {
    this.#options = options;
    this.#client = new OutboundClient(options.edges.network, options.edges.clock, {
      allow: options.allow ?? [],
    });
  }

  /**
   * The archive of `chart`; `pin` is what its addon had before (see `addon.pin.ts`): with the same pin nothing is fetched
   * twice. Fails with `unavailable`, `not_found`, `permission_denied` or `data_loss` (it is not what its index says).
   */
  async fetch(chart: ChartRef, pin: string | undefined, signal: AbortSignal): Promise<FetchedChart> {
    const key = JSON.stringify([chart.repo, chart.name, chart.version, pin]);
    const known = this.#fetched.get(key);
    if (known && (await isFile(known.file))) return known;
    const found = chart.name.startsWith("oci://")
      ? this.#fromRegistry(chart, signal)
      : this.#fromRepository(chart, signal);
    const { archive, reference } = await found;
    const fetched = await this.#keep(archive, reference);
    if (this.#fetched.size >= maxArchives) this.#fetched.clear();
    this.#fetched.set(
      JSON.stringify([chart.repo, chart.name, chart.version, `${fetched.digest} ${reference}`]),
      fetched,
    );
    return fetched;
  }

  async #fromRepository({ repo = "", name, version }: ChartRef, signal: AbortSignal): Promise<Archive> {
    const base = repo.endsWith("/") ? repo : `${repo}/`;
    const index = await this.#get(new URL("index.yaml", base).href, maxIndexBytes, signal);
    const entry = chartInIndex(index.body.toString("utf8"), name, version);
    if (!entry)
      throw new CodedError(
        "not_found",
        `${repo} has no chart ${name}${version === undefined ? "" : ` ${version}`}`,
      );
    const { body } = await this.#get(new URL(entry.url, base).href, maxArchiveBytes, signal);
    const reference = `${repo} ${name} ${entry.version}`;
    if (entry.digest !== undefined) assertDigest(body, entry.digest, reference);
    return { archive: body, reference };
  }

  async #fromRegistry({ name, version }: ChartRef, signal: AbortSignal): Promise<Archive> {
    const [host = "", ...rest] = name.slice("oci://".length).split("/");
    const registry = host === "docker.io" ? "registry-1.docker.io" : host;
    const repository = rest.join("/");
    const session = new RegistrySession((url, limit, headers) => this.#get(url, limit, signal, headers));
    const base = `https://${registry}/v2/${repository}`;
    const tag = (version ?? newestVersion(tagsOf(await session.get(`${base}/tags/list`))))?.replaceAll(
      "+",
      "_",
    );
    if (tag === undefined) throw new CodedError("not_found", `${name} has no version`);
    const manifest = parseJson(await session.get(`${base}/manifests/${tag}`, { accept: manifestType }), name);
    const layers = at(manifest, "layers");
    const layer: unknown = Array.isArray(layers)
      ? layers.find((one) => stringAt(one, "mediaType") === layerType)
      : undefined;
    const digest = stringAt(layer, "digest");
    if (digest === undefined || !/^sha256:[0-9a-f]{64}$/.test(digest))
      throw new CodedError("unavailable", `${name} ${tag} is no Helm chart`);
    const { body } = await session.get(`${base}/blobs/${digest}`, {}, maxArchiveBytes);
    const reference = `${name} ${tag}`;
    assertDigest(body, digest.slice("sha256:".length), reference);
    return { archive: body, reference };
  }

  /** A 200, or a 401 for whoever can answer it. */
  async #get(
    url: string,
    maxBytes: number,
    signal: AbortSignal,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<OutboundAnswer> {
    const { ca } = this.#options;
    const answer = await this.#client.request({
      method: "GET",
      url,
      headers: { "user-agent": "kontinuum", ...headers },
      timeoutMs: callMs,
      maxBytes,
      redirects: maxRedirects,
      httpsOnly: true,
      signal,
      ...(ca === undefined ? {} : { tls: { ca } }),
    });
    if (answer.status === 200 || answer.status === 401) return answer;
    const { host } = new URL(url);
    const code = answer.status === 404 ? "not_found" : "unavailable";
    throw new CodedError(code, `${host} answered with status ${answer.status} for a chart`);
  }

  async #keep(archive: Buffer, reference: string): Promise<FetchedChart> {
    const hex = sha256(archive);
    const folder = await this.#options.folder();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const present = await readdir(folder);
    if (present.length >= maxArchives)
      await Promise.all(present.map((name) => rm(path.join(folder, name), { force: true })));
    const file = path.join(folder, `${hex}.tgz`);
    const temporary = `${file}.new`;
    await writeFile(temporary, archive, { mode: 0o600 });
    await rename(temporary, file);
    return { file, digest: `sha256:${hex}`, reference };
  }
}

interface Archive {
  readonly archive: Buffer;
  readonly reference: string;
}

type Get = (url: string, limit: number, headers: Readonly<Record<string, string>>) => Promise<OutboundAnswer>;

/** Calls to one repository of a registry, with the anonymous token the registry asks for (Docker token authentication). */
class RegistrySession {
  readonly #get: Get;
  #token: string | undefined;

  constructor(get: Get) {
    this.#get = get;
  }

  async get(
    url: string,
    headers: Readonly<Record<string, string>> = {},
    limit = maxAnswerBytes,
  ): Promise<OutboundAnswer> {
    const first = await this.#get(url, limit, this.#with(headers));
    if (first.status === 200) return first;
    const { host } = new URL(url);
    if (this.#token === undefined) {
      this.#token = await this.#ask(first.headers["www-authenticate"] ?? "", host);
      const second = await this.#get(url, limit, this.#with(headers));
      if (second.status === 200) return second;
    }
    throw new CodedError(
      "permission_denied",
      `${host} wants credentials for this chart; put it into KONTINUUM_CHART_DIR`,
    );
  }

  #with(headers: Readonly<Record<string, string>>): Record<string, string> {
    return { ...headers, ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }) };
  }

  async #ask(challenge: string, host: string): Promise<string> {
    const field = (name: string): string | undefined => new RegExp(`${name}="([^"]*)"`).exec(challenge)?.[1];
    const realm = field("realm");
    if (!/^bearer /i.test(challenge) || realm === undefined || !URL.canParse(realm))
      throw new CodedError("unavailable", `${host} asks for credentials in a way that is not known here`);
    const url = new URL(realm);
    for (const name of ["service", "scope"]) {
      const value = field(name);
      if (value !== undefined) url.searchParams.set(name, value);
    }
    const answer = parseJson(await this.#get(url.href, maxAnswerBytes, {}), host);
    const token = stringAt(answer, "token") ?? stringAt(answer, "access_token");
    if (token === undefined) throw new CodedError("unavailable", `${url.host} gave no token`);
    return token;
  }
}

function tagsOf(answer: OutboundAnswer): readonly string[] {
  const tags = at(parseJson(answer, "the registry"), "tags");
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [];
}

function parseJson({ body }: OutboundAnswer, name: string): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    throw new CodedError("unavailable", `the answer for ${name} is no JSON`);
  }
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

function assertDigest(archive: Buffer, expected: string, reference: string): void {
  if (sha256(archive) !== expected.toLowerCase())
    throw new CodedError(
      "data_loss",
      `the archive of ${reference} is not the one its publisher names (its SHA-256 differs)`,
    );
}

async function isFile(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isFile(),
    () => false,
  );
}
