/**
 * The shapes of all configuration documents but the main one, by kind, each with the Talos release
 * line that knows it first. Names and types are Talos' public configuration reference.
 */
import { blockKinds } from "./block-kinds.ts";
import type { DocumentKind } from "./document-kind.ts";
import { kubernetesKinds } from "./kubernetes-kinds.ts";
import { networkKinds } from "./network-kinds.ts";
import { runtimeKinds } from "./runtime-kinds.ts";

/** Every kind of document, by name. */
export const documentKinds: Readonly<Record<string, DocumentKind>> = {
  ...blockKinds,
  ...networkKinds,
  ...runtimeKinds,
  ...kubernetesKinds,
};
