/**
 * Discovery and OpenAPI documents: made once per change of the served resources, tagged and cached.
 */
import { createHash } from "node:crypto";
import { stringifyJson } from "../json/json.ts";
import {
  encodeOpenapiV2,
  openapiV2Document,
  openapiV2ProtobufType,
  openapiV3Document,
  openapiV3VersionDocument,
} from "../openapi/index.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { notAcceptable, routeNotFound } from "../status/status.ts";
import { parseMediaType } from "../wire/media-type.ts";
import { header } from "../wire/request.ts";
import { sendBytes } from "../wire/respond.ts";
import type { ResourceDefinition } from "../resource.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import { apiVersionOf, storagePlace } from "../registry/resource-store.ts";
import {
  aggregated,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  discoverGroups,
  type DiscoveredGroup,
  type RemoteGroupVersion,
} from "./groups.ts";

/** A document with its tag. */
interface Document {
  readonly bytes: Buffer;
  /** Hex SHA-512 of the bytes. */
  readonly hash: string;
}

/** What other servers contribute. */
export interface RemoteDiscovery {
  /** Group versions served elsewhere. */
  versions(): readonly RemoteGroupVersion[];
  /** The OpenAPI v3 document of one of them, as last fetched. */
  openapi(group: string, version: string): Buffer | undefined;
}

/** Documents larger than this are not kept as text but made again: none is expected to be. */
const maxDocuments = 500;

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Whether a client asked for the aggregated form that is served. */
function wantsAggregated(accept: string | undefined): boolean {
  for (const entry of (accept ?? "").split(",", 32)) {
    const { type, parameters } = parseMediaType(entry);
    if (type !== "application/json" && type !== "*/*") continue;
    if (parameters["as"] === undefined) return false;
    if (
      parameters["g"] === "apidiscovery.k8s.io" &&
      parameters["as"] === "APIGroupDiscoveryList" &&
      parameters["v"] === "v2"
    )
      return true;
  }
  return false;
}

/** Serves `/api*`, `/apis*` and `/openapi*`. */
export class DiscoveryDocuments {
  readonly #resources: ResourceSet;
  readonly #remote: RemoteDiscovery;
  readonly #documents = new Map<string, Document>();
  /** OpenAPI documents with the resources they were made of: one group's change leaves the others alone. */
  readonly #schemas = new Map<string, { readonly of: readonly unknown[]; readonly document: Document }>();
  #groups: readonly DiscoveredGroup[] | undefined;
  #terminating: ReadonlySet<string> = new Set();

  constructor(resources: ResourceSet, remote: RemoteDiscovery) {
    this.#resources = resources;
    this.#remote = remote;
    resources.onChange(() => this.invalidate());
  }

  /** Forgets everything derived. */
  invalidate(): void {
    this.#documents.clear();
    this.#groups = undefined;
  }

  /** Definitions being deleted lose their writing verbs; entries are `<group>/<plural>`. */
  set terminating(value: ReadonlySet<string>) {
    this.#terminating = value;
    this.invalidate();
  }

  get groups(): readonly DiscoveredGroup[] {
    this.#groups ??= discoverGroups(
      this.#resources.all(),
      storageHash,
      this.#terminating,
      this.#remote.versions(),
    );
    return this.#groups;
  }

  #document(id: string, make: () => unknown): Document {
    const known = this.#documents.get(id);
    if (known) return known;
    if (this.#documents.size >= maxDocuments) this.#documents.clear();
    const document = documentOf(make());
    this.#documents.set(id, document);
    return document;
  }

  /** Answers `/api`, `/apis` and below. Fails with 404. */
  async discovery(context: RequestContext): Promise<void> {
    const [root = "", group = "", version = "", ...more] = context.info.path.split("/").slice(1);
    if (more.length > 0) throw routeNotFound();
    if ((root === "api" && group === "") || (root === "apis" && group === ""))
      return this.#root(context, root);
    if (root === "api") {
      if (version !== "") throw routeNotFound();
      return this.#plain(context, `list/${group}`, () => this.#resourceList("", group));
    }
    if (version === "") {
      const found = this.groups.find((other) => other.group === group);
      if (!found || group === "") throw routeNotFound();
      return this.#plain(context, `group/${group}`, () => apiGroup(found));
    }
    return this.#plain(context, `list/${group}/${version}`, () => this.#resourceList(group, version));
  }

  #resourceList(group: string, version: string): unknown {
    const found = this.groups
      .find((other) => other.group === group)
      ?.versions.find((other) => other.version === version);
    if (!found) throw routeNotFound();
    return apiResourceList(group, found);
  }

  async #root(context: RequestContext, root: string): Promise<void> {
    const legacy = root === "api";
    if (wantsAggregated(header(context.request, "accept"))) {
      const document = this.#document(`aggregated/${root}`, () =>
        aggregated(this.groups.filter(({ group }) => (group === "") === legacy)),
      );
      return sendTagged(context, document, aggregatedType);
    }
    const id = `root/${root}`;
    return this.#plain(context, id, () => (legacy ? apiVersions() : apiGroupList(this.groups)));
  }

  #plain(context: RequestContext, id: string, make: () => unknown): Promise<void> {
    const { bytes } = this.#document(id, make);
    return sendBytes(context, 200, "application/json", bytes, { vary: "Accept" });
  }

  /** Answers `/openapi/v2`, `/openapi/v3` and below. Fails with 404 and 406. */
  async openapi(context: RequestContext): Promise<void> {
    const { path } = context.info;
    const accept = header(context.request, "accept");
    if (path === "/openapi/v2" && prefersProtobuf(accept)) {
      const document = this.#document("openapi/v2.pb", () =>
        Buffer.from(encodeOpenapiV2(describable(this.#resources.all(), openapiV2Document))),
      );
      return sendTagged(context, document, openapiV2ProtobufType, "Accept-Encoding, Accept");
    }
    if (!acceptsJson(accept)) throw notAcceptable(["application/json"]);
    if (path === "/openapi/v2") {
      const document = this.#document("openapi/v2", () =>
        describable(this.#resources.all(), openapiV2Document),
      );
      return sendTagged(context, document, "application/json", "Accept-Encoding, Accept");
    }
    if (path === "/openapi/v3") {
      const paths: Record<string, unknown> = {};
      for (const id of this.#openapiIds())
        paths[id] = { serverRelativeURL: `/openapi/v3/${id}?hash=${this.#openapiDocument(id).hash}` };
      return sendBytes(context, 200, "application/json", Buffer.from(stringifyJson({ paths })), {
        vary: "Accept",
      });
    }
    const id = path.startsWith("/openapi/v3/") ? path.slice("/openapi/v3/".length) : "";
    if (!this.#openapiIds().includes(id)) throw routeNotFound();
    const document = this.#openapiDocument(id);
    const asked = context.parameter("hash");
    if (asked !== undefined && asked.toUpperCase() !== document.hash) {
      context.response.writeHead(301, {
        location: `/openapi/v3/${id}?hash=${document.hash}`,
        "content-length": 0,
      });
      context.response.end();
      return;
    }
    const year = 365 * 24 * 3600 * 1000;
    const fresh =
      asked === undefined
        ? { "cache-control": "no-cache, private" }
        : { "cache-control": "public, immutable", expires: new Date(this.#now() + year).toUTCString() };
    return sendTagged(context, document, "application/json", "Accept", fresh);
  }

  #now: () => number = () => 0;

  /** Source of the current time, for `Expires`. */
  set now(value: () => number) {
    this.#now = value;
  }

  #openapiIds(): readonly string[] {
    const ids: string[] = [];
    for (const { group, versions } of this.groups) {
      for (const { version } of versions)
        ids.push(group === "" ? `api/${version}` : `apis/${group}/${version}`);
    }
    return [...ids, "version"];
  }

  #openapiDocument(id: string): Document {
    if (id === "version") return this.#document("openapi/version", openapiV3VersionDocument);
    const apiVersion = id.replace(/^apis?\//, "");
    const [group = "", version = ""] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    const own = this.#resources
      .all()
      .filter((resource) => resource.group === group && resource.version === version);
    const remote = own.length > 0 ? undefined : this.#remote.openapi(group, version);
    const of: readonly unknown[] = own.length > 0 ? own : [remote];
    const known = this.#schemas.get(id);
    if (known && known.of.length === of.length && known.of.every((part, index) => part === of[index]))
      return known.document;
    if (this.#schemas.size >= maxDocuments) this.#schemas.clear();
    const document = documentOf(
      remote ?? describable(own, (resources) => openapiV3Document(apiVersion, resources)),
    );
    this.#schemas.set(id, { of, document });
    return document;
  }
}

/** A document of those resources that can be described: one bad schema does not take the others' away. */
function describable<T>(
  resources: readonly ResourceDefinition[],
  make: (resources: readonly ResourceDefinition[]) => T,
): T {
  try {
    return make(resources);
  } catch {
    return make(
      resources.filter((resource) => {
        try {
          resource.openapi();
          return true;
        } catch {
          return false;
        }
      }),
    );
  }
}

function documentOf(made: unknown): Document {
  const bytes = Buffer.isBuffer(made) ? made : Buffer.from(stringifyJson(made));
  return { bytes, hash: createHash("sha512").update(bytes).digest("hex").toUpperCase() };
}

/** Whether the first form that a client accepts and we have is the protobuf one. */
function prefersProtobuf(accept: string | undefined): boolean {
  for (const entry of (accept ?? "").split(",", 32)) {
    const { type } = parseMediaType(entry);
    if (protobufTypes.has(type)) return true;
    if (type === "application/json" || type === "*/*" || type === "application/*") return false;
  }
  return false;
}

const protobufTypes: ReadonlySet<string> = new Set([
  openapiV2ProtobufType,
  "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
]);

function acceptsJson(accept: string | undefined): boolean {
  if (accept === undefined || accept === "") return true;
  return accept.split(",", 32).some((entry) => {
    const { type } = parseMediaType(entry);
    return type === "application/json" || type === "*/*" || type === "application/*";
  });
}

function sendTagged(
  context: RequestContext,
  { bytes, hash }: Document,
  contentType: string,
  vary: string = "Accept",
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const tag = `"${hash}"`;
  const out = { vary, "cache-control": "public", ...headers, etag: tag };
  if (header(context.request, "if-none-match") === tag) {
    context.response.writeHead(304, out);
    context.response.end();
    return Promise.resolve();
  }
  return sendBytes(context, 200, contentType, bytes, out);
}

const hashes = new WeakMap<ResourceDefinition, string>();

/** Base64 of eight bytes of the SHA-256 of the stored group, version and kind. */
function storageHash(resource: ResourceDefinition): string {
  if (!resource.verbs.includes("get")) return "";
  const known = hashes.get(resource);
  if (known !== undefined) return known;
  const place = storagePlace(resource);
  const text = `${apiVersionOf(place).includes("/") ? apiVersionOf(place) : `/${place.version}`}/${resource.kind}`;
  const hash = createHash("sha256").update(text).digest().subarray(0, 8).toString("base64");
  hashes.set(resource, hash);
  return hash;
}
