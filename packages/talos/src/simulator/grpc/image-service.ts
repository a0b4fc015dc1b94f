/**
 * `machine.ImageService` (from Talos 1.13): images by name only, since nothing is fetched from anywhere.
 */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ContainerdNamespace } from "../../gen/common/common_pb.ts";
import {
  ImageServicePullLayerProgress_Status as Status,
  type ImageService,
} from "../../gen/machine/image_pb.ts";
import { invalidArgument, notFound, unknownError } from "../call-error.ts";
import { imageOf, presentImages, type NodeImage } from "../node-programs.ts";
import type { SimulatedNode } from "../node.ts";
import { callerOf } from "./call-context.ts";
import { unknownBefore } from "./preconditions.ts";

/** Images one node remembers having been told to pull. */
const imageLimit = 1_000;
/** Bytes of an archive that is taken. */
const archiveLimit = 64 * 1024 * 1024;

/** What was pulled and removed by call; gone with the process. */
const pulled = new WeakMap<SimulatedNode, Map<string, { readonly isThere: boolean }>>();

const keyOf = (namespace: ContainerdNamespace, reference: string): string => `${namespace} ${reference}`;

function memoryOf(node: SimulatedNode): Map<string, { readonly isThere: boolean }> {
  const present = pulled.get(node) ?? new Map<string, { readonly isThere: boolean }>();
  pulled.set(node, present);
  return present;
}

/** Images of a node in one of containerd's namespaces, sorted by name. */
export async function imagesOn(node: SimulatedNode, namespace: ContainerdNamespace): Promise<NodeImage[]> {
  const isKubernetes = namespace === ContainerdNamespace.NS_CRI;
  const pods = isKubernetes ? ((await node.cluster?.podsOn(node)) ?? []) : [];
  const memory = memoryOf(node);
  const names = new Set(isKubernetes ? presentImages(node, pods) : []);
  for (const [key, { isThere }] of memory) {
    const [space, name = ""] = key.split(" ");
    if (space !== String(namespace)) continue;
    if (isThere) names.add(name);
    else names.delete(name);
  }
  return [...names].sort().map(imageOf);
}

/** Takes note of an image; returns its full name. */
export async function pullImage(
  node: SimulatedNode,
  namespace: ContainerdNamespace,
  reference: string,
): Promise<string> {
  const name = normalized(reference);
  const memory = memoryOf(node);
  if (memory.size >= imageLimit) throw unknownError("no space left on device");
  memory.set(keyOf(namespace, name), { isThere: true });
  return name;
}

/** `docker.io/library/nginx:latest` of `nginx` (container image references). */
function normalized(reference: string): string {
  if (!/^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,254}$/.test(reference))
    throw unknownError(
      `error parsing image reference: could not parse reference: ${reference.slice(0, 100)}`,
    );
  const [first = "", ...rest] = reference.split("/");
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  const named = isHost ? reference : `docker.io/${rest.length === 0 ? "library/" : ""}${reference}`;
  return /[:@]/.test(named.slice(named.lastIndexOf("/"))) ? named : `${named}:latest`;
}

function namespaceOf(instance: { readonly namespace: ContainerdNamespace } | undefined): ContainerdNamespace {
  return instance?.namespace ?? ContainerdNamespace.NS_SYSTEM;
}

function nodeOf(context: HandlerContext): SimulatedNode {
  const { node } = callerOf(context);
  unknownBefore(node, 13, "machine.ImageService");
  return node;
}

/** See the module's comment. */
export const imageService: ServiceImpl<typeof ImageService> = {
  async *list({ containerd }, context) {
    yield* await imagesOn(nodeOf(context), namespaceOf(containerd));
  },

  async *pull({ containerd, imageRef }, context) {
    const node = nodeOf(context);
    const name = await pullImage(node, namespaceOf(containerd), imageRef);
    const { size, digest } = imageOf(name);
    for (const status of [Status.DOWNLOADING, Status.EXTRACT_COMPLETE]) {
      const offset = status === Status.DOWNLOADING ? 0n : size;
      const progress = { status, offset, total: size };
      yield { response: { case: "pullProgress", value: { layerId: digest, progress } } };
    }
    yield { response: { case: "name", value: name } };
  },

  async import(requests, context) {
    const node = nodeOf(context);
    let namespace: ContainerdNamespace | undefined;
    let bytes = 0;
    for await (const { request } of requests) {
      if (request.case === "containerd") namespace = request.value.namespace;
      else if (request.case === "imageChunk") bytes += request.value.bytes.length;
      if (namespace === undefined) throw invalidArgument("containerd instance is required");
      if (bytes > archiveLimit) throw unknownError("no space left on device");
    }
    if (namespace === undefined) throw invalidArgument("containerd instance is required");
    if (bytes === 0) throw invalidArgument("no images imported from archive");
    return { name: await pullImage(node, namespace, `imported.invalid/archive:${bytes}`) };
  },

  async remove({ containerd, imageRef }, context) {
    const node = nodeOf(context);
    const namespace = namespaceOf(containerd);
    const present = await imagesOn(node, namespace);
    if (!present.some(({ name }) => name === imageRef))
      throw notFound(`image ${imageRef.slice(0, 200)} not found`);
    memoryOf(node).set(keyOf(namespace, imageRef), { isThere: false });
    return {};
  },

  verify({ imageRef }, context) {
    nodeOf(context);
    const name = normalized(imageRef);
    return {
      verified: false,
      message: "no verification rule matched",
      digestedImageRef: `${name}@${imageOf(name).digest}`,
    };
  },
};
