/**
 * The validation rules of all documents but the main one: what a field must hold to be of use. That it has the right
 * type is the shape's business.
 */
import { at, isObject } from "@kontinuum/std";
import { isMainDocument, type ConfigDocument } from "./config-document.ts";
import { documentKinds } from "./document-kinds.ts";
import { readMachineConfig, textOf } from "./machine-config-facts.ts";
import { blockRules } from "./rules/block-rules.ts";
import { containerRule } from "./rules/container-rules.ts";
import { kubernetesRules } from "./rules/kubernetes-rules.ts";
import { linkErrors, networkRules } from "./rules/network-rules.ts";
import type { RuleContext, Rules } from "./rules/rule.ts";
import { runtimeRules } from "./rules/runtime-rules.ts";
import { wholeErrors } from "./rules/whole-rules.ts";

const rules: Rules = {
  ...networkRules,
  ...blockRules,
  ...kubernetesRules,
  ...runtimeRules,
  ContainerConfig: containerRule,
};

/** Errors of all documents but the main one, and of documents together. */
export function documentErrors(context: RuleContext): string[] {
  const errors: string[] = [];
  for (const document of context.documents) {
    if (!isMainDocument(document)) errors.push(...errorsOf(document, context));
  }
  return [...errors, ...wholeErrors(context)];
}

function errorsOf(document: ConfigDocument, context: RuleContext): string[] {
  const errors: string[] = [];
  const kind = String(document["kind"]);
  const name = textOf(document["name"]);
  const place = name === "" ? kind : `${kind} ${name.slice(0, 128)}`;
  const known = Object.hasOwn(documentKinds, kind) ? documentKinds[kind] : undefined;
  if (known?.named && name === "") errors.push(`${kind}: name is required`);
  const found = (Object.hasOwn(rules, kind) && rules[kind]?.(document, context)) || [];
  const links = known?.link ? linkErrors(document) : [];
  for (const error of [...found, ...links]) if (error !== false) errors.push(`${place}: ${error}`);
  const { encryption } = document;
  const isEncrypted = isObject(encryption) && Object.keys(encryption).length > 0;
  if (isEncrypted && textOf(at(document, "encryption", "provider")) !== "luks2")
    errors.push(`${place}: encryption.provider must be luks2`);
  return errors;
}

/** What a node takes but is surely not meant. */
export function documentWarnings(documents: readonly ConfigDocument[]): string[] {
  return readMachineConfig(documents)
    .volumes.filter(({ keys }) => keys.some(({ kind, endpoint }) => kind === "kms" && !endpoint))
    .map(({ name }) => `encryption of ${name}: a KMS key without endpoint cannot be used`);
}
