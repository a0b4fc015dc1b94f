/**
 * `kryton-image`: lists, fetches and describes Linux images.
 *
 * Results go to standard output, errors to standard error with exit status 1.
 */
import { Command, CommanderError, Option } from "@commander-js/extra-typings";
import { CodedError, messageOf, OutboundClient, systemEdges, type Edges } from "@kontinuum/std";
import { ArtifactStore } from "../artifacts/artifact-store.ts";
import { signedDigest } from "../artifacts/signed-list.ts";
import { domainXml } from "../artifacts/domain-template.ts";
import { builtInCatalog, loadCatalog } from "../catalog/catalog.ts";
import type { CatalogImage } from "../model/image.ts";
import { renderCloudConfig } from "../model/initialization.ts";
import { normalizeFlags } from "./flag-syntax.ts";
import { processStreams, type Io } from "./io.ts";
import { refuseOldNode } from "./node-version.ts";
import { ProgressLine } from "./progress-line.ts";

const templateId = "00000000-0000-4000-8000-000000000001";

/** What the tool runs with; the outbound client is replaced in tests. */
export interface ImageToolOptions {
  readonly edges: Edges;
  readonly outbound: OutboundClient;
  /** Whether progress may be drawn. */
  readonly terminal: boolean;
}

/** Runs one command; the result is the exit status. */
export async function krytonImage(
  args: readonly string[],
  io: Io,
  options: ImageToolOptions,
): Promise<number> {
  const program = build(io, options);
  try {
    await program.parseAsync(normalizeFlags(program, args), { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 1;
    io.err(`kryton-image: ${messageOf(error)}\n`);
    return 1;
  }
}

function build(io: Io, { edges, outbound, terminal }: ImageToolOptions): Command {
  const program: Command = new Command("kryton-image")
    .description("Lists, fetches and describes Linux images for Kryton.")
    .exitOverride()
    .configureOutput({ writeOut: io.out, writeErr: io.err });
  const add = (name: string, description: string) =>
    program
      .command(name)
      .description(description)
      .allowExcessArguments(false)
      .addOption(new Option("--catalog <file>", "catalog file").default(io.env["KRYTON_IMAGES_FILE"] || ""))
      .option("--image <id>", "Linux image", "ubuntu-24.04")
      .option("--dir <directory>", "where fetched images lie", "/var/lib/kryton/images")
      .option("--sha256 <digest>", "expected SHA-256 of the image", "")
      .option("--checksums <file>", "the distribution's signed list of digests, instead of --sha256", "")
      .option("--signature <file>", "signature of --checksums; without it the list is clear-signed", "")
      .option("--keyring <file>", "keys that may have signed --checksums", "")
      .option("--url <url>", "source of the image", "")
      .option("--namespace <name>", "namespace of the data source", "kryton-images")
      .option("--storage-class <name>", "storage class of the volume", "")
      .option("--name <name>", "name of the template machine", "linux-template")
      .option("--disk <file>", "disk of the template machine", "/var/lib/kryton/template/root.qcow2")
      .option("--seed <file>", "seed image of the template machine", "/var/lib/kryton/template/seed.iso")
      .option("--network <name>", "libvirt network", "default");
  const linuxImages = async (catalog: string): Promise<CatalogImage[]> =>
    (catalog === "" ? builtInCatalog() : await loadCatalog(catalog)).images.filter(
      ({ os }) => os === "linux",
    );
  const linuxImage = async (catalog: string, id: string): Promise<CatalogImage> => {
    const found = (await linuxImages(catalog)).find((image) => image.id === id);
    if (!found)
      throw new CodedError(
        "invalid_argument",
        `${id} is not a Linux image of the catalog; see kryton-image list`,
      );
    return found;
  };
  const json = (value: unknown): void => io.out(`${JSON.stringify(value, null, 2)}\n`);

  add("list", "Linux images of the catalog").action(async ({ catalog }) => {
    json((await linuxImages(catalog)).map((image) => ({ ...image, ready: false })));
  });
  add("validate", "render every template").action(async ({ catalog, ...options }) => {
    for (const image of await linuxImages(catalog)) {
      cloudConfig(image, options.name);
      template(image, options);
    }
    json({ status: "templates valid", bootValidation: "not performed" });
  });
  add("fetch", "download and verify an image").action(async (options) => {
    const { catalog, image: id, dir, url } = options;
    const image = await linuxImage(catalog, id);
    const source = url || image.sourceUrl;
    if (!source) throw new CodedError("invalid_argument", `image ${id} has no source; give --url`);
    const sha256 = await expectedDigest(options, source, io.env);
    const store = new ArtifactStore({ directory: dir, edges, outbound });
    const progress = new ProgressLine(io, edges.clock, terminal);
    try {
      json(
        await store.fetch({
          imageId: id,
          url: source,
          sha256,
          onProgress: (bytes, total) => progress.show(bytes, total),
        }),
      );
    } finally {
      progress.end();
    }
  });
  add("cdi", "DataVolume and DataSource for KubeVirt").action(async (options) => {
    const image = await linuxImage(options.catalog, options.image);
    if (options.url === "") throw new CodedError("invalid_argument", "--url is required");
    json(cdiList(image, options));
  });
  add("libvirt", "domain XML of a template machine").action(async (options) => {
    io.out(template(await linuxImage(options.catalog, options.image), options));
  });
  add("cloud-init", "cloud-config of a template machine").action(async ({ catalog, image, name }) => {
    io.out(cloudConfig(await linuxImage(catalog, image), name));
  });
  return program;
}

/** The digest to expect: the one that was given, or the one of a signed list, or both when they agree. */
async function expectedDigest(
  options: Readonly<Record<"sha256" | "checksums" | "signature" | "keyring", string>>,
  source: string,
  env: Io["env"],
): Promise<string> {
  const { sha256, checksums, signature, keyring } = options;
  if (checksums === "") {
    if (sha256 !== "") return sha256;
    throw new CodedError(
      "invalid_argument",
      "--sha256 is required: take it from the distribution's signed list, or give that with --checksums and --keyring",
    );
  }
  if (keyring === "") throw new CodedError("invalid_argument", "--checksums needs --keyring");
  const name = URL.canParse(source) ? decodeURIComponent(new URL(source).pathname.replace(/^.*\//, "")) : "";
  const signed = await signedDigest({ checksums, signature, keyring, env }, name);
  if (sha256 === "" || sha256 === signed) return signed;
  throw new CodedError("invalid_argument", `--sha256 is not the digest that ${checksums} gives for ${name}`);
}

function cloudConfig(image: CatalogImage, name: string): string {
  return renderCloudConfig({ hostname: name, defaultUser: image.defaultUser, initialization: undefined });
}

function template(
  image: CatalogImage,
  options: { readonly name: string; readonly disk: string; readonly seed: string; readonly network: string },
): string {
  return domainXml({
    name: options.name,
    uuid: templateId,
    memoryMiB: image.minMemoryMiB,
    cpu: image.minCpu,
    firmware: image.firmware ?? "bios",
    diskPath: options.disk,
    seedPath: options.seed,
    network: options.network,
  });
}

/** Both objects in one List; the digest goes along, so that CDI checks what it imports. */
function cdiList(
  image: CatalogImage,
  options: {
    readonly url: string;
    readonly namespace: string;
    readonly storageClass: string;
    readonly sha256: string;
  },
): unknown {
  const url = URL.canParse(options.url) ? new URL(options.url) : undefined;
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "") {
    throw new CodedError("invalid_argument", "--url must be https without user info");
  }
  const metadata = {
    name: image.id,
    namespace: options.namespace,
    labels: { "app.kubernetes.io/managed-by": "kryton" },
  };
  const http = { url: options.url, ...(options.sha256 ? { checksum: `sha256:${options.sha256}` } : {}) };
  return {
    apiVersion: "v1",
    kind: "List",
    items: [
      {
        apiVersion: "cdi.kubevirt.io/v1beta1",
        kind: "DataVolume",
        metadata,
        spec: {
          source: { http },
          storage: {
            accessModes: ["ReadWriteOnce"],
            volumeMode: "Filesystem",
            resources: { requests: { storage: `${image.defaultDiskGiB}Gi` } },
            ...(options.storageClass ? { storageClassName: options.storageClass } : {}),
          },
        },
      },
      {
        apiVersion: "cdi.kubevirt.io/v1beta1",
        kind: "DataSource",
        metadata,
        spec: { source: { pvc: { name: image.id, namespace: options.namespace } } },
      },
    ],
  };
}

if (import.meta.main) {
  refuseOldNode("kryton-image");
  const edges = systemEdges();
  const allow = (process.env["KRYTON_OUTBOUND_ALLOW"] ?? "")
    .split(",")
    .map((entry) => entry.trim())
    .filter(Boolean);
  process.exitCode = await krytonImage(
    process.argv.slice(2),
    {
      ...processStreams("kryton-image"),
      env: process.env,
      random: edges.random,
    },
    {
      edges,
      outbound: new OutboundClient(edges.network, edges.clock, { allow }),
      terminal: process.stderr.isTTY === true,
    },
  );
}
