/**
 * Whether a node would take a machine configuration, by the rules a node and `talosctl validate`
 * apply.
 *
 * Two stages, because a node answers them differently: decoding (unknown kinds and keys, doubled
 * documents) and validation (what is missing or contradicts itself). What only a node can know, its
 * disks and its own release, is `validateForNode`. Messages name places, never values.
 */
import { isCoded } from "@kontinuum/std";
import { documentId, isMainDocument, parseConfigDocuments, type ConfigDocument } from "./config-document.ts";
import { documentErrors, documentWarnings } from "./document-rules.ts";
import { documentKinds } from "./document-kinds.ts";
import { mainErrors } from "./main-rules.ts";
import { mainShape } from "./main-shape.ts";
import type { RuleContext } from "./rules/rule.ts";
import { misfits } from "./shape.ts";
import { parseVersionContract, supportedContracts } from "./version-contract.ts";

/** Where the node runs: on metal an installation target is demanded. */
export type ValidationMode = "metal" | "cloud" | "container";

/** Options of {@link validateMachineConfig}. */
export interface ValidationOptions {
  /** Release whose rules apply. Default: the newest known. */
  readonly talosVersion?: string;
  /** True for a node that is installed already. Default false. */
  readonly installed?: boolean;
}

/** The outcome. The configuration is good when both error lists are empty. */
export interface ConfigValidation {
  /** Whether a node takes it. */
  readonly valid: boolean;
  /** Why it cannot be read. */
  readonly decodeErrors: readonly string[];
  /** Why it is refused although it can be read. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** The documents, empty unless decoding succeeded. */
  readonly documents: readonly ConfigDocument[];
}

/** Validates a configuration text. Never throws on what the text holds. */
export function validateMachineConfig(
  text: string,
  mode: ValidationMode,
  options: ValidationOptions = {},
): ConfigValidation {
  const minor =
    options.talosVersion === undefined
      ? supportedContracts.newest
      : parseVersionContract(options.talosVersion).minor;
  const failed = (decodeErrors: readonly string[]): ConfigValidation => {
    return { valid: false, decodeErrors, errors: [], warnings: [], documents: [] };
  };
  let documents: ConfigDocument[];
  try {
    documents = parseConfigDocuments(text);
  } catch (error) {
    if (isCoded(error)) return failed([error.message]);
    throw error;
  }
  const decodeErrors = decodingErrors(documents, minor);
  if (decodeErrors.length > 0) return failed(decodeErrors);
  const context: RuleContext = { mode, minor, installed: options.installed ?? false, documents };
  const { errors, warnings } = mainErrors(context);
  errors.push(...documentErrors(context));
  warnings.push(...documentWarnings(documents));
  return { valid: errors.length === 0, decodeErrors: [], errors, warnings, documents };
}

function decodingErrors(documents: readonly ConfigDocument[], minor: number): string[] {
  if (documents.length === 0) return ["config not found"];
  const errors: string[] = [];
  const seen = new Set<string>();
  const links = new Map<string, string>();
  for (const document of documents) {
    const id = documentId(document);
    if (seen.has(id)) errors.push(`not allowed: document ${id} is there twice`);
    seen.add(id);
    errors.push(...documentMisfits(document, id, minor));
    const kind = document["kind"];
    const known =
      typeof kind === "string" && Object.hasOwn(documentKinds, kind) ? documentKinds[kind] : undefined;
    if (known?.link) {
      const name = String(document["name"]);
      const other = links.get(name);
      if (other !== undefined && other !== kind)
        errors.push(`${other} and ${kind} both configure link ${name}`);
      links.set(name, String(kind));
    }
  }
  return errors;
}

function documentMisfits(document: ConfigDocument, id: string, minor: number): string[] {
  if (isMainDocument(document)) {
    return describe(misfits(document, mainShape, minor), id);
  }
  const { apiVersion, kind } = document;
  if (typeof kind !== "string" || kind === "") return ["a document has apiVersion but no kind"];
  if (typeof apiVersion !== "string" || apiVersion === "") return [`document ${kind} has no apiVersion`];
  const known = Object.hasOwn(documentKinds, kind) ? documentKinds[kind] : undefined;
  if (apiVersion !== "v1alpha1" || !known || known.minor > minor) {
    return [
      `${JSON.stringify(kind.slice(0, 64))} ${JSON.stringify(apiVersion.slice(0, 64))}: not registered in Talos 1.${minor}`,
    ];
  }
  return describe(misfits(document, known.shape, minor), id);
}

function describe(found: ReturnType<typeof misfits>, id: string): string[] {
  const unknown = found.filter(({ problem }) => problem === "unknown key").map(({ path }) => path);
  const wrong = found.filter(({ problem }) => problem !== "unknown key");
  return [
    ...(unknown.length === 0 ? [] : [`unknown keys found during decoding: ${id}: ${unknown.join(", ")}`]),
    ...wrong.map(({ path, problem }) => `${id}: ${path || "document"}: ${problem}`),
  ];
}
