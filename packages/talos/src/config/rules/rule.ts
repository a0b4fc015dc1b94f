/**
 * What a validation rule is, and the words most rules are made of.
 *
 * A rule looks at one document and tells what is wrong in sentences that name the place and never show a value that
 * could be a secret.
 */
import { at, isObject } from "@kontinuum/std";
import { parseCertificate, parsePrivateKey } from "../../pki/pem.ts";
import { expressionError, type ExpressionPlace } from "../expression.ts";
import type { ConfigDocument } from "../config-document.ts";
import { isAddress, isNetwork } from "../ip-text.ts";
import { objects, textOf, texts } from "../machine-config-facts.ts";

/** What the rules know. */
export interface RuleContext {
  readonly mode: "metal" | "cloud" | "container";
  /** Talos 1.`minor`. */
  readonly minor: number;
  readonly installed: boolean;
  readonly documents: readonly ConfigDocument[];
}

/** An error, or nothing. */
export type Finding = string | false;

/** Judges one document. */
export type Rule = (document: ConfigDocument, context: RuleContext) => readonly Finding[];

/** Rules by kind of document. */
export type Rules = Readonly<Record<string, Rule>>;

/** A field that must not be empty. */
export const needs = (document: ConfigDocument, ...path: string[]): Finding =>
  textOf(at(document, ...path)) === "" && `${path.join(".")} is required`;

/** A list that must hold something. */
export const needsList = (document: ConfigDocument, ...path: string[]): Finding => {
  const value = at(document, ...path);
  return !(Array.isArray(value) && value.length > 0) && `${path.join(".")} is required`;
};

/** A mapping that must hold something. */
export const needsMapping = (document: ConfigDocument, ...path: string[]): Finding => {
  const value = at(document, ...path);
  return !(isObject(value) && Object.keys(value).length > 0) && `${path.join(".")} is required`;
};

/** The name must be an IP address; an empty one is told elsewhere. */
export const needsAddressName: Rule = (document) => [
  textOf(document["name"]) !== "" && !isAddress(textOf(document["name"])) && "name must be an IP address",
];

/** A number within bounds, if it is there. */
export const between = (document: ConfigDocument, key: string, low: number, high: number): Finding => {
  const value = document[key];
  return (
    value !== undefined &&
    value !== null &&
    !(Number(value) >= low && Number(value) <= high) &&
    `${key} must be between ${low} and ${high}`
  );
};

/** A duration that must not be negative. */
export const notNegative = (document: ConfigDocument, ...path: string[]): Finding =>
  /^-(?!0+$)/.test(textOf(at(document, ...path))) && `${path.join(".")} cannot be negative`;

/** An expression, if it is there. */
export const expression = (document: ConfigDocument, place: ExpressionPlace, ...path: string[]): Finding => {
  const text = textOf(at(document, ...path));
  const problem = text === "" ? undefined : expressionError(text, place);
  return problem !== undefined && `${path.join(".")} is not a valid expression: ${problem}`;
};

/** An expression that must be there. */
export const needsExpression = (
  document: ConfigDocument,
  place: ExpressionPlace,
  ...path: string[]
): Finding => needs(document, ...path) || expression(document, place, ...path);

/** Whether a text is a certificate in PEM. */
export function isPemCertificate(value: unknown): boolean {
  try {
    parseCertificate(textOf(value), "certificate");
    return true;
  } catch {
    return false;
  }
}

/** Whether a text is a private key in PEM. */
export function isPemKey(value: unknown): boolean {
  try {
    parsePrivateKey(textOf(value), "key");
    return true;
  } catch {
    return false;
  }
}

/** Whether every entry is a network or an address, or one left out with `!`. */
export function areSubnets(value: unknown): boolean {
  return texts(value).every((entry) => {
    const subnet = entry.replace(/^!/, "");
    return isNetwork(subnet) || isAddress(subnet);
  });
}

/** The first entry of a list for which something is wrong, told with its position. */
export function eachOf(
  document: ConfigDocument,
  key: string,
  judge: (entry: Readonly<Record<string, unknown>>) => readonly Finding[],
): Finding[] {
  return objects(document[key]).flatMap((entry, index) =>
    judge(entry).map((finding) => finding !== false && `${key}.${index}: ${finding}`),
  );
}
